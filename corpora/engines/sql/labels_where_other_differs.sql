-- The number of posts with each predicted label. A post is counted only if the second predictor gives it a different
-- label.
-- Columns: label, posts.
SELECT
    predicted.label,
    count(*) AS posts
FROM predicted
INNER JOIN other_predicted ON predicted.id = other_predicted.id
WHERE predicted.label <> other_predicted.label
GROUP BY predicted.label
ORDER BY predicted.label
