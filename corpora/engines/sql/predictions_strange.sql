-- The staged predictions whose ids are not in the corpus, in the order of the file. Columns: id, total (the number of
-- such predictions). Parameter: the limit.
SELECT
    staged.id,
    count(*) OVER () AS total
FROM staged
LEFT JOIN posts ON staged.id = posts.id
WHERE posts.id IS NULL
ORDER BY staged.line
LIMIT ?
