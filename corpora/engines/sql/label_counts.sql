-- The number of posts with each predicted label. Columns: label, posts.
SELECT
    label,
    count(*) AS posts
FROM predicted
GROUP BY label
ORDER BY label
