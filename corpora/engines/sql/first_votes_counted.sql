-- The number of posts by the voters' first languages. Columns: one for each voter (und for none), is_long (whether the
-- text has the minimum length), posts. Parameter: the minimum length in letters.
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
