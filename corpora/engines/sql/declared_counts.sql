-- The number of records by language and declared labels. Columns: language, declared, records.
SELECT
    posts.language,
    posts.declared,
    count(*) AS records
FROM posts
GROUP BY posts.language, posts.declared
ORDER BY posts.language, posts.declared
