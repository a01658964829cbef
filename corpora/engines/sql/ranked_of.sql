-- The ranked labels of the requested documents. Columns: id, labels (best first).
SELECT
    ranked.id,
    ranked.labels
FROM ranked
INNER JOIN asked ON ranked.id = asked.id
