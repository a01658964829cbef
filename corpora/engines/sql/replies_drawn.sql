-- Random distinct replies of each language, in the order of a hash of seed and reply. Columns: language, reply.
-- Parameter: the number of replies in each language.
WITH distinct_replies AS (
    SELECT DISTINCT
        language,
        answer
    FROM placed
)
SELECT
    distinct_replies.language,
    distinct_replies.answer AS reply
FROM distinct_replies
CROSS JOIN design
QUALIFY row_number() OVER (
    PARTITION BY distinct_replies.language
    ORDER BY md5(design.seed || ':random:' || distinct_replies.answer), distinct_replies.answer
) <= ?
ORDER BY distinct_replies.language, md5(design.seed || ':random:' || distinct_replies.answer), distinct_replies.answer
