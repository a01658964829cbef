-- How many posts the predictor gives each label that the other predictor does not give them: label, posts.
SELECT
    predicted.label,
    count(*) AS posts
FROM predicted
INNER JOIN other_predicted ON predicted.id = other_predicted.id
WHERE predicted.label <> other_predicted.label
GROUP BY predicted.label
ORDER BY predicted.label
