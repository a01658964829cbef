-- The staged messages whose id occurred before. Columns: file, line, turn, id, same.
-- same: whether the content is the same as in the first message with the id
WITH digested AS (
    SELECT
        file,
        line,
        turn,
        id,
        md5(parent || chr(9) || thread || chr(9) || CAST(deleted AS STRING) || chr(9) || text) AS digest
    FROM staged_messages
)
SELECT
    file,
    line,
    turn,
    id,
    digest = first_value(digest) OVER (PARTITION BY id ORDER BY file, line, turn) AS same
FROM digested
QUALIFY row_number() OVER (PARTITION BY id ORDER BY file, line, turn) > 1
