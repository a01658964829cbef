-- The label of the majority for each post: id, label (the language that at least two of the three detectors name
-- first, else und), score (none).
SELECT
    id,
    CASE
        WHEN langid = cld2 OR langid = fasttext THEN langid
        WHEN cld2 = fasttext THEN cld2
        ELSE 'und'
    END AS label,
    CAST(NULL AS DOUBLE) AS score
FROM first_votes
