-- The score of each pair, sorted by id. Columns: id, scorer, score, lacking, dropped.
-- score: the higher score of the message and the reply, or null if neither has one
-- lacking: whether a score is missing
-- dropped: whether the score exceeds the threshold
-- Parameters: the scorer, the threshold.
SELECT
    sides.pair AS id,
    ? AS scorer,
    max(staged.score) AS score,
    count(staged.score) < count(*) AS lacking,
    coalesce(max(staged.score) > ?, FALSE) AS dropped
FROM sides
LEFT JOIN staged ON sides.id = staged.id
GROUP BY sides.pair
ORDER BY sides.pair
