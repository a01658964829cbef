-- The earlier predictions that have changed. Columns: id, total (the number of all such rows). Parameter: the limit.
SELECT
    earlier.id,
    count(*) OVER () AS total
FROM earlier
LEFT JOIN staged ON earlier.id = staged.id
WHERE staged.label IS DISTINCT FROM earlier.label OR staged.score IS DISTINCT FROM earlier.score
ORDER BY earlier.id
LIMIT ?
