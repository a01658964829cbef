-- The messages whose parent exists. Columns: id, above (the id of the parent).
SELECT
    replies.id,
    replies.parent AS above
FROM messages AS replies
INNER JOIN messages AS parents ON replies.parent = parents.id
