-- How many pairs the scorers drop together, and how many lack a score of one: pairs, dropped, lacking.
SELECT
    count(*) AS pairs,
    count(CASE WHEN dropped > 0 THEN 1 END) AS dropped,
    count(CASE WHEN lacking > 0 THEN 1 END) AS lacking
FROM filtered
