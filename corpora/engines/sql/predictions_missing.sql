-- The posts that have no staged prediction. Columns: id, total (the number of such posts). Parameter: the limit.
SELECT
    posts.id,
    count(*) OVER () AS total
FROM posts
LEFT JOIN staged ON posts.id = staged.id
WHERE staged.id IS NULL
ORDER BY posts.id
LIMIT ?
