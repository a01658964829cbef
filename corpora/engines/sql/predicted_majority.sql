-- The majority label of each post: the language that more than half of the voters rank first, else und. Columns: id,
-- label, score (null).
SELECT
    id,
    majority_of_voters AS label,
    CAST(NULL AS DOUBLE) AS score
FROM first_votes
