-- The records drawn in each requested language: all records of the first design.size groups, except those in left_out.
-- Groups are ordered by a hash of seed, language and the group's value. Records in a group are ordered by a hash of
-- seed, language and id. Columns: those of posts.
WITH ticketed AS (
    SELECT
        grouped.language,
        grouped.id,
        grouped.value,
        design.size,
        md5(design.seed || ':' || grouped.language || ':' || grouped.value) AS group_ticket,
        md5(design.seed || ':' || grouped.language || ':' || grouped.id) AS ticket
    FROM grouped
    INNER JOIN wanted ON grouped.language = wanted.language
    CROSS JOIN design
    LEFT JOIN left_out ON grouped.id = left_out.id
    WHERE left_out.id IS NULL
),
drawn AS (
    SELECT
        id,
        value,
        group_ticket,
        ticket
    FROM ticketed
    QUALIFY dense_rank() OVER (PARTITION BY language ORDER BY group_ticket, value) <= size
)
SELECT
    drawn.id,
    posts.text,
    posts.author,
    posts.posted_at,
    posts.url,
    posts.language,
    posts.fields,
    posts.declared
FROM drawn
INNER JOIN posts ON drawn.id = posts.id
ORDER BY posts.language, drawn.group_ticket, drawn.value, drawn.ticket, drawn.id
