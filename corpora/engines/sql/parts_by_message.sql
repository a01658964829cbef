-- The part of each exported pair, which stays in one split: its message. Columns: id, language, part.
SELECT
    id,
    language,
    said AS part
FROM exported
