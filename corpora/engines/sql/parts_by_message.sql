-- The part that each exported pair belongs to. All pairs of a part are placed in the same split. Here, a part consists
-- of all pairs with the same message. Columns: id, language, part.
SELECT
    id,
    language,
    message_digest AS part
FROM exported
