-- The id under which each pair is scored if scorers score whole pairs. Columns: pair, id.
SELECT
    posts.id AS pair,
    posts.id
FROM posts
