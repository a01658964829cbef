-- The part to which each exported pair belongs. All pairs of a part are placed in the same split. Here, a part consists
-- of the pairs with equal messages. Columns: id, language, part.
SELECT
    id,
    language,
    said AS part
FROM exported
