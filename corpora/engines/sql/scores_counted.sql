-- Of one scorer's staged table: pairs, those without one of their scores, those that it drops, rows of the file that
-- count.
SELECT
    count(*) AS pairs,
    count(CASE WHEN lacking THEN 1 END) AS lacking,
    count(CASE WHEN dropped THEN 1 END) AS dropped
FROM scored
