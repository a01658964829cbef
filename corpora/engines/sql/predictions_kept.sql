-- The staged predictions about posts of the corpus, by id: id, label, score.
SELECT
    staged.id,
    staged.label,
    staged.score
FROM staged
INNER JOIN posts ON staged.id = posts.id
ORDER BY staged.id
