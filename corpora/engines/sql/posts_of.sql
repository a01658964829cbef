-- The requested posts with their votes, sorted by id. Columns: those of posts and votes.
SELECT
    posts.id,
    posts.text,
    posts.author,
    posts.posted_at,
    posts.url,
    votes.letters,
    votes.every_voter
FROM posts
INNER JOIN votes ON posts.id = votes.id
INNER JOIN wanted ON posts.id = wanted.id
ORDER BY posts.id
