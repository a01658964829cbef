-- All messages that have a parent, each with its parent, in the order of the files.
-- Columns: file, id, message_id, thread, author, posted_at, message, reply, declared, reason.
-- declared: the language stated in the file
-- reason: why the message and its parent cannot become a pair (corpora/threads/messages.py), or empty
SELECT
    replies.file,
    replies.id,
    replies.parent AS message_id,
    replies.thread,
    replies.author,
    replies.posted_at,
    coalesce(parents.text, '') AS message,
    replies.text AS reply,
    CASE WHEN replies.language = '' THEN coalesce(parents.language, '') ELSE replies.language END AS declared,
    CASE
        WHEN parents.id IS NULL THEN 'unknown_parent'
        WHEN cycles.id IS NOT NULL THEN 'circle'
        WHEN replies.deleted OR parents.deleted THEN 'deleted'
        WHEN replies.low OR parents.low THEN 'low'
        WHEN replies.empty OR parents.empty THEN 'empty'
        ELSE ''
    END AS reason
FROM messages AS replies
LEFT JOIN messages AS parents ON replies.parent = parents.id
LEFT JOIN cycles ON replies.id = cycles.id
WHERE replies.parent <> ''
ORDER BY replies.file, replies.line, replies.turn
