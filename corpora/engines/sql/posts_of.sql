-- The posts of the wanted ids with their votes, in order of the ids: the columns of posts and votes.
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
