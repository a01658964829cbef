-- The ids of all posts or records.
SELECT posts.id
FROM posts
