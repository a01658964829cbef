-- All posts, with an empty language. Columns: id, language.
SELECT
    posts.id,
    '' AS language
FROM posts
