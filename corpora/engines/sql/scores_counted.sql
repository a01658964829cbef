-- The counts for a scorer's table. Columns: pairs, lacking (pairs with a missing score), dropped (pairs that it drops).
SELECT
    count(*) AS pairs,
    count(CASE WHEN lacking THEN 1 END) AS lacking,
    count(CASE WHEN dropped THEN 1 END) AS dropped
FROM scored
