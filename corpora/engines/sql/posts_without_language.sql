-- All posts, as rows of no declared language: id, language.
SELECT
    posts.id,
    '' AS language
FROM posts
