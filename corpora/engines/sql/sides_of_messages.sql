-- Each pair of the corpus twice, for the message and the reply, whose id it has: pair, id.
SELECT
    posts.id AS pair,
    posts.fields.message_id AS id
FROM posts
UNION ALL
SELECT
    posts.id AS pair,
    posts.id
FROM posts
