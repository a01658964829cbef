-- The number of records with each combination of declared labels in each language. Columns: language, declared,
-- records.
SELECT
    posts.language,
    posts.declared,
    count(*) AS records
FROM posts
GROUP BY posts.language, posts.declared
ORDER BY posts.language, posts.declared
