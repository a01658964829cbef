-- The records of the wanted languages, in order of their ids: what they say, and the labels that came with them.
SELECT
    posts.id,
    posts.language,
    posts.fields,
    posts.declared
FROM posts
INNER JOIN wanted ON posts.language = wanted.language
ORDER BY posts.id
