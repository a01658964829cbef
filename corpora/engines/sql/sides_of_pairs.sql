-- Each pair of the corpus, as the one thing that was scored: pair, id.
SELECT
    posts.id AS pair,
    posts.id
FROM posts
