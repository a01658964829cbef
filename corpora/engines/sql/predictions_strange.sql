-- The staged predictions about no post of the corpus, in the order of the file: id, how many there are in all.
-- Parameter: how many of them to name.
SELECT
    staged.id,
    count(*) OVER () AS total
FROM staged
LEFT JOIN posts ON staged.id = posts.id
WHERE posts.id IS NULL
ORDER BY staged.line
LIMIT ?
