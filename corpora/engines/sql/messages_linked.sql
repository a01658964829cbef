-- The messages whose parent exists, linked to the parent. Columns: id, target_id (the parent's id).
SELECT
    replies.id,
    replies.parent AS target_id
FROM messages AS replies
INNER JOIN messages AS parents ON replies.parent = parents.id
