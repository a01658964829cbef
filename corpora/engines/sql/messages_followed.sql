-- The links with their length doubled: each message is linked to its current target's target. A link is dropped if its
-- target has no link, because it is the first message of a thread. Columns: id, target_id.
SELECT
    links.id,
    beyond.target_id
FROM links
INNER JOIN links AS beyond ON links.target_id = beyond.id
