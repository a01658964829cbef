-- The pairs that no scorer drops. Columns: id, language, message, reply, thread, message_id, certainty.
SELECT
    posts.id,
    posts.language,
    posts.fields.message,
    posts.fields.reply,
    posts.fields.thread,
    posts.fields.message_id,
    CAST(posts.fields.certainty AS DOUBLE) AS certainty
FROM posts
INNER JOIN filtered ON posts.id = filtered.id
WHERE filtered.dropped = 0
