-- The links with doubled reach: each message with the message that its link target links to. Links that would pass the
-- first message of a thread are dropped. Columns: id, above.
SELECT
    links.id,
    beyond.above
FROM links
INNER JOIN links AS beyond ON links.above = beyond.id
