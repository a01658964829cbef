-- How many pairs each split of each language has: language, split, pairs.
SELECT
    language,
    split,
    count(*) AS pairs
FROM placed
GROUP BY language, split
ORDER BY language, split
