-- The replies with a minimum frequency, most frequent first. Columns: language, reply, pairs. Parameters: all or train,
-- the pairs to count; the minimum number of pairs.
SELECT
    language,
    answer AS reply,
    count(*) AS pairs
FROM placed
WHERE ? = 'all' OR split = 'train'
GROUP BY language, answer
HAVING count(*) >= ?
ORDER BY language, pairs DESC, reply
