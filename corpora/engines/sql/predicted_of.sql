-- The predicted labels of the requested posts. Columns: id, label (null if there is no such post).
SELECT
    asked.id,
    predicted.label
FROM asked
LEFT JOIN predicted ON asked.id = predicted.id
