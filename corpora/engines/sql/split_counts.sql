-- The number of pairs in each split by language. Columns: language, split, pairs.
SELECT
    language,
    split,
    count(*) AS pairs
FROM placed
GROUP BY language, split
ORDER BY language, split
