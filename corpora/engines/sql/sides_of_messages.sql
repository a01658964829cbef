-- Each pair twice, with the ids of message and reply. Columns: pair, id.
SELECT
    posts.id AS pair,
    posts.fields.message_id AS id
FROM posts
UNION ALL
SELECT
    posts.id AS pair,
    posts.id
FROM posts
