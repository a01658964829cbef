-- The number of pairs by language and split. Columns: language, split, pairs.
SELECT
    language,
    split,
    count(*) AS pairs
FROM placed
GROUP BY language, split
ORDER BY language, split
