-- Of each wanted language how many pairs the scorers keep, and how many they drop, without those left out: language, kept,
-- dropped.
SELECT
    filtered.language,
    count(CASE WHEN filtered.dropped = 0 THEN 1 END) AS kept,
    count(CASE WHEN filtered.dropped > 0 THEN 1 END) AS dropped
FROM filtered
INNER JOIN wanted ON filtered.language = wanted.language
LEFT JOIN left_out ON filtered.id = left_out.id
WHERE left_out.id IS NULL
GROUP BY filtered.language
ORDER BY filtered.language
