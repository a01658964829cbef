-- The rows drawn from each part, in shuffled order. The table `sizes` contains the number of rows to draw from each
-- part, over all languages. The rows are selected by a hash of seed and id, and shuffled by a second hash.
-- Columns: id, language, part. Parameters: the seed, twice.
WITH ticketed AS (
    SELECT
        parts.id,
        parts.language,
        parts.part,
        sizes.size,
        md5(? || ':' || parts.id) AS ticket,
        md5(? || ':order:' || parts.id) AS place
    FROM parts
    INNER JOIN sizes ON parts.part = sizes.part
),
drawn AS (
    SELECT
        id,
        language,
        part,
        place
    FROM ticketed
    QUALIFY row_number() OVER (PARTITION BY part ORDER BY ticket, id) <= size
)
SELECT
    drawn.id,
    drawn.language,
    drawn.part
FROM drawn
ORDER BY drawn.place, drawn.id
