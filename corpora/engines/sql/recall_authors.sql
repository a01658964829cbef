-- The authors of each wanted language: language, author. They have at least design.least_posts posts in the history, and
-- the predictor gives at least design.share_over / design.share_under of those the language; compared in whole numbers,
-- since engines round fractions differently.
WITH history AS (
    SELECT
        posts.id,
        posts.author
    FROM posts
    CROSS JOIN design
    WHERE posts.author <> '' AND posts.posted_at >= design.history_start AND posts.posted_at < design.history_end
),
active AS (
    SELECT
        author,
        count(*) AS posts
    FROM history
    GROUP BY author
),
writing AS (
    SELECT
        wanted.language,
        history.author,
        count(*) AS posts
    FROM history
    INNER JOIN predicted ON history.id = predicted.id
    INNER JOIN wanted ON predicted.label = wanted.language
    GROUP BY wanted.language, history.author
)
SELECT
    writing.language,
    writing.author
FROM writing
INNER JOIN active ON writing.author = active.author
CROSS JOIN design
WHERE active.posts >= design.least_posts AND writing.posts * design.share_under >= active.posts * design.share_over
