-- The number of posts and the number of authors in the frame of each requested language. Columns: language, posts,
-- authors.
WITH sizes AS (
    SELECT
        language,
        count(*) AS posts
    FROM frame
    GROUP BY language
),
writers AS (
    SELECT
        language,
        count(*) AS authors
    FROM authors
    GROUP BY language
)
SELECT
    wanted.language,
    coalesce(sizes.posts, 0) AS posts,
    coalesce(writers.authors, 0) AS authors
FROM wanted
LEFT JOIN sizes ON wanted.language = sizes.language
LEFT JOIN writers ON wanted.language = writers.language
ORDER BY wanted.language
