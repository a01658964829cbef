-- The messages that are the target of at least one link. Columns: id.
SELECT DISTINCT above AS id
FROM links
