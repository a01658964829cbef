-- The ids of all posts or records. Columns: id.
SELECT posts.id
FROM posts
