-- How often the voters name which languages first: a column for each voter (und if it names none), is_long (whether
-- the text has so many letters), posts. Parameter: the number of letters.
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
