-- The staged scores whose ids are not in the corpus, in the order of the file. Columns: id, total (the number of such
-- scores). Parameter: the limit.
SELECT
    staged.id,
    count(*) OVER () AS total
FROM staged
LEFT JOIN (SELECT DISTINCT id FROM sides) AS known ON staged.id = known.id
WHERE known.id IS NULL
ORDER BY staged.line
LIMIT ?
