-- The number of posts by predicted label, where the other predictor gives a different label. Columns: label, posts.
SELECT
    predicted.label,
    count(*) AS posts
FROM predicted
INNER JOIN other_predicted ON predicted.id = other_predicted.id
WHERE predicted.label <> other_predicted.label
GROUP BY predicted.label
ORDER BY predicted.label
