-- The part that each exported pair belongs to. All pairs of a part are placed in the same split. Here, a part consists
-- of all threads that are connected by shared messages. Columns: id, language, part.
SELECT
    exported.id,
    exported.language,
    components.part
FROM exported
INNER JOIN components ON exported.message_digest = components.message_digest
