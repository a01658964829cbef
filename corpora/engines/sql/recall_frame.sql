-- The posts in the window by the authors who qualify for each requested language. The posts may be in any language.
-- Columns: language, id.
SELECT
    authors.language,
    posts.id
FROM posts
INNER JOIN authors ON posts.author = authors.author
CROSS JOIN design
WHERE posts.posted_at >= design.window_start AND posts.posted_at < design.window_end
