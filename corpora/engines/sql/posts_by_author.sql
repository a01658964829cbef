-- The posts of one author, the latest first: id, text, posted_at, url.
SELECT id, text, posted_at, url
FROM posts
WHERE author = ?
ORDER BY posted_at DESC NULLS LAST, id
LIMIT ?
