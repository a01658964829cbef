-- How many posts the predictor gives each label: label, posts.
SELECT
    label,
    count(*) AS posts
FROM predicted
GROUP BY label
ORDER BY label
