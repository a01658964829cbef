-- The dropped pairs. A pair occurs once for each scorer that drops it.
-- Columns: id, message_id, thread, language, certainty, scorer, score.
SELECT
    posts.id,
    posts.fields.message_id,
    posts.fields.thread,
    posts.language,
    CAST(posts.fields.certainty AS DOUBLE) AS certainty,
    scores.scorer,
    scores.score
FROM posts
INNER JOIN scores ON posts.id = scores.id
WHERE scores.dropped
ORDER BY posts.id, scores.scorer
