-- The label of the majority for each post: id, label (the language that more than half of the voters name first, else
-- und), score (none).
SELECT
    id,
    majority_of_voters AS label,
    CAST(NULL AS DOUBLE) AS score
FROM first_votes
