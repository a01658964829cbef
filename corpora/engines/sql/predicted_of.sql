-- The predicted labels of the requested posts. The label is null if the post does not exist or has no prediction.
-- Columns: id, label.
SELECT
    asked.id,
    predicted.label
FROM asked
LEFT JOIN predicted ON asked.id = predicted.id
