-- How many rows there are of each part in each language: language, part, number.
SELECT
    parts.language,
    parts.part,
    count(*) AS number
FROM parts
GROUP BY parts.language, parts.part
ORDER BY parts.language, parts.part
