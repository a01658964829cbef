-- What the scorers say of the pairs that are asked for: id, scorer, score, lacking, dropped.
SELECT
    scores.id,
    scores.scorer,
    scores.score,
    scores.lacking,
    scores.dropped
FROM scores
INNER JOIN asked ON scores.id = asked.id
ORDER BY scores.id, scores.scorer
