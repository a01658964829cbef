-- The messages that repeat an earlier id, in the order of the files. Columns: file, line, id, same.
SELECT
    file,
    line,
    id,
    same
FROM repeated
ORDER BY file, line, turn
