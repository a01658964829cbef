-- The first design.kept of all pairs that are kept and the first design.dropped of those that are dropped, in the order of
-- a hash of seed and id, of the wanted languages together and without those left out: the columns of posts, and is_dropped.
WITH ticketed AS (
    SELECT
        filtered.id,
        filtered.dropped > 0 AS is_dropped,
        CASE WHEN filtered.dropped > 0 THEN design.dropped ELSE design.kept END AS size,
        md5(design.seed || ':' || filtered.id) AS ticket
    FROM filtered
    INNER JOIN wanted ON filtered.language = wanted.language
    CROSS JOIN design
    LEFT JOIN left_out ON filtered.id = left_out.id
    WHERE left_out.id IS NULL
),
drawn AS (
    SELECT
        id,
        is_dropped,
        ticket
    FROM ticketed
    QUALIFY row_number() OVER (PARTITION BY is_dropped ORDER BY ticket, id) <= size
)
SELECT
    drawn.id,
    drawn.is_dropped,
    posts.text,
    posts.author,
    posts.posted_at,
    posts.url,
    posts.language,
    posts.fields,
    posts.declared
FROM drawn
INNER JOIN posts ON drawn.id = posts.id
ORDER BY drawn.ticket, drawn.id
