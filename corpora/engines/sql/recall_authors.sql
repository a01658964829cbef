-- The authors who qualify for each requested language. An author qualifies with at least design.least_posts posts in the
-- history, if the predictor assigns the language to at least design.share_over / design.share_under of these posts.
-- Shares are compared as integers, because engines round fractions differently. Columns: language, author.
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
