-- The number of posts for each combination of the voters' first languages. Long and short texts are counted separately.
-- Columns: one for each voter (und if it casts no vote), is_long, posts.
-- Parameter: the minimum number of letters in a long text.
SELECT
    every_voter,
    is_long,
    count(*) AS posts
FROM (
    SELECT
        every_voter,
        letters >= ? AS is_long
    FROM first_votes
) AS voted
GROUP BY every_voter, is_long
ORDER BY every_voter, is_long
