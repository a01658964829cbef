-- Each pair once, scored as a whole. Columns: pair, id.
SELECT
    posts.id AS pair,
    posts.id
FROM posts
