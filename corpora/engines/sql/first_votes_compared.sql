-- The number of items for each combination of the voters' first labels, the record's language and the true labels. Long
-- and short texts are counted separately. Columns: one for each voter (und if it casts no vote), is_long, language (null
-- for posts), labels (null if the truth is unknown), items.
-- Parameter: the minimum number of letters in a long text.
SELECT
    every_voter,
    is_long,
    language,
    labels,
    count(*) AS items
FROM (
    SELECT
        first_votes.every_voter,
        first_votes.letters >= ? AS is_long,
        places.language,
        truths.labels
    FROM first_votes
    LEFT JOIN places ON first_votes.id = places.id
    LEFT JOIN truths ON first_votes.id = truths.id
) AS voted
GROUP BY every_voter, is_long, language, labels
ORDER BY every_voter, is_long, language, labels
