-- The ranked labels of the requested documents, best first. Columns: id, labels.
SELECT
    ranked.id,
    ranked.labels
FROM ranked
INNER JOIN asked ON ranked.id = asked.id
