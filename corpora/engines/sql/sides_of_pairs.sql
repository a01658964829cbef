-- The id under which each pair is scored, if pairs are scored as a whole. Columns: pair, id.
SELECT
    posts.id AS pair,
    posts.id
FROM posts
