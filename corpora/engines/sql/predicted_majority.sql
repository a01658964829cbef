-- The majority label of each post: the language that more than half of the voters rank first, or und if there is none.
-- The score is null. Columns: id, label, score.
SELECT
    id,
    majority_of_voters AS label,
    CAST(NULL AS DOUBLE) AS score
FROM first_votes
