-- How many pairs are kept of each language: language, pairs.
SELECT
    language,
    count(*) AS pairs
FROM kept
GROUP BY language
ORDER BY language
