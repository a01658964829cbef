-- How many records of each language came with which labels: language, declared, records.
SELECT
    posts.language,
    posts.declared,
    count(*) AS records
FROM posts
GROUP BY posts.language, posts.declared
ORDER BY posts.language, posts.declared
