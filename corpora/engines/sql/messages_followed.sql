-- The links with their length doubled: each message is linked to its current target's target. A link is dropped if its
-- target has no link, because it is the first message of a thread. Columns: id, above.
SELECT
    links.id,
    beyond.above
FROM links
INNER JOIN links AS beyond ON links.above = beyond.id
