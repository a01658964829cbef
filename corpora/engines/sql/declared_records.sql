-- The records in the requested languages with their declared labels, sorted by id. Columns: id, language, fields,
-- declared.
SELECT
    posts.id,
    posts.language,
    posts.fields,
    posts.declared
FROM posts
INNER JOIN wanted ON posts.language = wanted.language
ORDER BY posts.id
