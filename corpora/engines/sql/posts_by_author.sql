-- The posts of an author, latest first. Columns: id, text, posted_at, url. Parameters: the author, the limit.
SELECT id, text, posted_at, url
FROM posts
WHERE author = ?
ORDER BY posted_at DESC NULLS LAST, id
LIMIT ?
