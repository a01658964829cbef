-- The messages that answer one that is there: id, above, the id of that.
SELECT
    replies.id,
    replies.parent AS above
FROM messages AS replies
INNER JOIN messages AS parents ON replies.parent = parents.id
