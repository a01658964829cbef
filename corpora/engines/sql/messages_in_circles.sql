-- The distinct ends of the links. Columns: id.
SELECT DISTINCT above AS id
FROM links
