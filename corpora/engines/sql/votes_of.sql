-- The votes on the drawn items. Columns: id, and one for each voter.
SELECT
    votes.id,
    votes.every_voter
FROM votes
INNER JOIN drawn ON votes.id = drawn.id
