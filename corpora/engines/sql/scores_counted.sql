-- Counts for a scorer's entry in the manifest. Columns: pairs, lacking, dropped.
-- lacking: the number of pairs with a missing score
-- dropped: the number of pairs that the scorer drops
SELECT
    count(*) AS pairs,
    count(CASE WHEN lacking THEN 1 END) AS lacking,
    count(CASE WHEN dropped THEN 1 END) AS dropped
FROM scored
