-- The staged predictions for posts in the corpus, sorted by id. Columns: id, label, score.
SELECT
    staged.id,
    staged.label,
    staged.score
FROM staged
INNER JOIN posts ON staged.id = posts.id
ORDER BY staged.id
