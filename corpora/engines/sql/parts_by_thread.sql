-- The part to which each exported pair belongs. All pairs of a part are placed in the same split. Here, a part consists
-- of the threads that are connected by equal messages. Columns: id, language, part.
SELECT
    exported.id,
    exported.language,
    components.part
FROM exported
INNER JOIN components ON exported.said = components.said
