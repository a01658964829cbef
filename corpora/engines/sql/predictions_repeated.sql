-- The staged predictions whose id occurred before, in the order of the file. Columns: id, line, first_line, total.
-- first_line: the line on which the id occurred first
-- total: the number of such predictions
-- Parameter: the limit.
WITH numbered AS (
    SELECT
        id,
        line,
        min(line) OVER (PARTITION BY id) AS first_line
    FROM staged
)
SELECT
    id,
    line,
    first_line,
    count(*) OVER () AS total
FROM numbered
WHERE line > first_line
ORDER BY line
LIMIT ?
