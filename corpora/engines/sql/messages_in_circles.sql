-- The ends of the links, each once: id.
SELECT DISTINCT above AS id
FROM links
