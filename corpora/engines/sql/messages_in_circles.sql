-- The messages to which at least one link leads. Columns: id.
SELECT DISTINCT above AS id
FROM links
