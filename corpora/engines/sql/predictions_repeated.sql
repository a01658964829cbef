-- The staged predictions whose id came before, in the order of the file: id, line, the line where it came first, how
-- many such rows there are in all. Parameter: how many of them to name.
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
