-- The staged scores that are about nothing of the corpus, in the order of the file: id, how many there are in all.
-- Parameter: how many of them to name.
SELECT
    staged.id,
    count(*) OVER () AS total
FROM staged
LEFT JOIN (SELECT DISTINCT id FROM sides) AS known ON staged.id = known.id
WHERE known.id IS NULL
ORDER BY staged.line
LIMIT ?
