-- What the predictor says of the posts that are asked for: id, label (none where there is no such post).
SELECT
    asked.id,
    predicted.label
FROM asked
LEFT JOIN predicted ON asked.id = predicted.id
