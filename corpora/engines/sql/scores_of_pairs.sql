-- Every pair of the corpus by id: id, scorer, the greater score of its sides, if any has one, whether a side lacks
-- one, and whether the score is above the threshold. Parameters: the scorer, the threshold.
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
