-- The earlier predictions that differ from the staged ones. Columns: id, total (the number of such predictions).
-- Parameter: the limit.
SELECT
    earlier.id,
    count(*) OVER () AS total
FROM earlier
LEFT JOIN staged ON earlier.id = staged.id
WHERE staged.label IS DISTINCT FROM earlier.label OR staged.score IS DISTINCT FROM earlier.score
ORDER BY earlier.id
LIMIT ?
