-- The exported pairs, sorted by language and split and then by a hash of seed and id. A missing score is -1.
-- Columns: id, language, split, message, reply, thread, message_id, certainty, scorers, scores.
WITH scored AS (
    SELECT
        id,
        array_agg(scorer) AS scorers,
        array_agg(coalesce(score, -1.0)) AS scores
    FROM scores
    GROUP BY id
)
SELECT
    placed.id,
    placed.language,
    placed.split,
    placed.message,
    placed.reply,
    placed.thread,
    placed.message_id,
    placed.certainty,
    scored.scorers,
    scored.scores
FROM placed
CROSS JOIN design
LEFT JOIN scored ON placed.id = scored.id
ORDER BY placed.language, placed.split, md5(design.seed || ':order:' || placed.id), placed.id
