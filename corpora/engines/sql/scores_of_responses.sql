-- The score of each reply, sorted by its text. Columns: id (the text), scorer, score, lacking, dropped.
-- dropped: whether the score exceeds the threshold
-- Parameters: the scorer, the threshold.
SELECT
    id,
    ? AS scorer,
    score,
    FALSE AS lacking,
    score > ? AS dropped
FROM staged
ORDER BY id
