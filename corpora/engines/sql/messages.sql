-- The staged messages. If an id is repeated, only the first message with this id is included.
SELECT staged_messages.*
FROM staged_messages
LEFT JOIN repeated
    ON staged_messages.file = repeated.file
    AND staged_messages.line = repeated.line
    AND staged_messages.turn = repeated.turn
WHERE repeated.id IS NULL
