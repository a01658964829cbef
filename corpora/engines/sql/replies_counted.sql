-- The replies that are seen often enough, the most frequent first: language, reply, pairs. Parameters: all or train, for the
-- pairs that count; the least number of pairs.
SELECT
    language,
    answer AS reply,
    count(*) AS pairs
FROM placed
WHERE ? = 'all' OR split = 'train'
GROUP BY language, answer
HAVING count(*) >= ?
ORDER BY language, pairs DESC, reply
