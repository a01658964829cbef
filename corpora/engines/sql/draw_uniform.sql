-- The drawn posts with their votes, in the order of a hash of seed and id. Columns: those of posts and votes.
-- Parameters: the seed, the limit, the offset.
WITH drawn AS (
    SELECT posts.id, md5(? || ':' || posts.id) AS ticket
    FROM posts
    ORDER BY ticket, posts.id
    LIMIT ? OFFSET ?
)
SELECT
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
ORDER BY drawn.ticket, drawn.id
