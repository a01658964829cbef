-- The number of pairs, of pairs that at least one scorer drops, and of pairs with a missing score.
-- Columns: pairs, dropped, lacking.
SELECT
    count(*) AS pairs,
    count(CASE WHEN dropped > 0 THEN 1 END) AS dropped,
    count(CASE WHEN lacking > 0 THEN 1 END) AS lacking
FROM filtered
