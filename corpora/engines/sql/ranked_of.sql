-- The labels that the predictor ranks for the documents that are asked for: id, labels, the best first.
SELECT
    ranked.id,
    ranked.labels
FROM ranked
INNER JOIN asked ON ranked.id = asked.id
