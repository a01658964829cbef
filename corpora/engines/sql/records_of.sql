-- The requested records, sorted by id. Columns: those of posts.
SELECT
    posts.id,
    posts.text,
    posts.author,
    posts.posted_at,
    posts.url,
    posts.language,
    posts.fields,
    posts.declared
FROM posts
INNER JOIN wanted ON posts.id = wanted.id
ORDER BY posts.id
