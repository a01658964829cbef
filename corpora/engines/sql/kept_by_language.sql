-- The number of kept pairs in each language. Columns: language, pairs.
SELECT
    language,
    count(*) AS pairs
FROM kept
GROUP BY language
ORDER BY language
