-- Every pair of the corpus: id, language, dropped (by how many scorers), lacking (of how many scorers a score is
-- missing). Pairs without scores are kept.
SELECT
    posts.id,
    posts.language,
    count(CASE WHEN scores.dropped THEN 1 END) AS dropped,
    count(CASE WHEN scores.lacking THEN 1 END) AS lacking
FROM posts
LEFT JOIN scores ON posts.id = scores.id
GROUP BY posts.id, posts.language
