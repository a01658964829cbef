-- The part of each exported pair, which stays in one split: threads connected by equal messages. Columns: id, language,
-- part.
SELECT
    exported.id,
    exported.language,
    components.part
FROM exported
INNER JOIN components ON exported.said = components.said
