-- The posts drawn for each language, with their votes. These are the first design.size posts of each language's frame,
-- in the order of a hash of seed, language and id. Columns: language, and the columns of posts and votes.
WITH ticketed AS (
    SELECT
        frame.language,
        frame.id,
        design.size,
        md5(design.seed || ':' || frame.language || ':' || frame.id) AS ticket
    FROM frame
    CROSS JOIN design
),
drawn AS (
    SELECT
        language,
        id,
        ticket
    FROM ticketed
    QUALIFY row_number() OVER (PARTITION BY language ORDER BY ticket, id) <= size
)
SELECT
    drawn.language,
    drawn.id,
    posts.text,
    posts.author,
    posts.posted_at,
    posts.url,
    votes.letters,
    votes.every_voter
FROM drawn
INNER JOIN posts ON drawn.id = posts.id
INNER JOIN votes ON drawn.id = votes.id
ORDER BY drawn.language, drawn.ticket, drawn.id
