-- The scores of the requested pairs. Columns: id, scorer, score, lacking, dropped.
SELECT
    scores.id,
    scores.scorer,
    scores.score,
    scores.lacking,
    scores.dropped
FROM scores
INNER JOIN asked ON scores.id = asked.id
ORDER BY scores.id, scores.scorer
