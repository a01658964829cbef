-- The replies that occur in a minimum number of pairs, most frequent first within each language.
-- Columns: language, reply, pairs.
-- Parameters: which pairs to count (all or train); the minimum number of pairs.
SELECT
    language,
    answer AS reply,
    count(*) AS pairs
FROM placed
WHERE ? = 'all' OR split = 'train'
GROUP BY language, answer
HAVING count(*) >= ?
ORDER BY language, pairs DESC, reply
