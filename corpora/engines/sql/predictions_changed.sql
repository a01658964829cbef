-- The earlier predictions that are other now: id, how many there are in all. Parameter: how many of them to name.
SELECT
    earlier.id,
    count(*) OVER () AS total
FROM earlier
LEFT JOIN staged ON earlier.id = staged.id
WHERE staged.label IS DISTINCT FROM earlier.label OR staged.score IS DISTINCT FROM earlier.score
ORDER BY earlier.id
LIMIT ?
