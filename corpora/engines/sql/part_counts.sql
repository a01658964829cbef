-- The number of rows in each part by language. Columns: language, part, number.
SELECT
    parts.language,
    parts.part,
    count(*) AS number
FROM parts
GROUP BY parts.language, parts.part
ORDER BY parts.language, parts.part
