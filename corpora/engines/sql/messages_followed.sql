-- The links, each from a message to the one that lies twice as far above it; without those that pass the beginning of a
-- thread.
SELECT
    links.id,
    beyond.above
FROM links
INNER JOIN links AS beyond ON links.above = beyond.id
