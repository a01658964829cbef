-- The posts that no staged prediction is about: id, how many such posts there are in all. Parameter: how many of them
-- to name.
SELECT
    posts.id,
    count(*) OVER () AS total
FROM posts
LEFT JOIN staged ON posts.id = staged.id
WHERE staged.id IS NULL
ORDER BY posts.id
LIMIT ?
