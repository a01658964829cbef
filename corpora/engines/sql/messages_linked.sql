-- The messages whose parent exists, with the parent's id (`above`). Columns: id, above.
SELECT
    replies.id,
    replies.parent AS above
FROM messages AS replies
INNER JOIN messages AS parents ON replies.parent = parents.id
