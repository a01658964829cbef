-- The replies that did not become pairs when the corpus was created, and the kept pairs in other languages.
-- Columns: id, message_id, thread, reason, language, certainty.
SELECT
    id,
    message_id,
    thread,
    reason,
    language,
    certainty
FROM left_out
UNION ALL
SELECT
    kept.id,
    kept.message_id,
    kept.thread,
    'small_language' AS reason,
    kept.language,
    kept.certainty
FROM kept
LEFT JOIN wanted ON kept.language = wanted.language
WHERE wanted.language IS NULL
ORDER BY reason, id
