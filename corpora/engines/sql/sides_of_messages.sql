-- The ids of the message and the reply of each pair. There are two rows for each pair. Columns: pair, id.
SELECT
    posts.id AS pair,
    posts.fields.message_id AS id
FROM posts
UNION ALL
SELECT
    posts.id AS pair,
    posts.id
FROM posts
