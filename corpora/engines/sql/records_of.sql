-- The records of the wanted ids, in order of the ids: the columns of posts.
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
