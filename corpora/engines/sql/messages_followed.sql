-- The links with twice their reach: each message is linked to the message to which its previous target is linked. If
-- the target has no link, because it is the first message of a thread, the link is dropped. Columns: id, above.
SELECT
    links.id,
    beyond.above
FROM links
INNER JOIN links AS beyond ON links.above = beyond.id
