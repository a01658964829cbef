-- The filter's result for each pair of the corpus. A pair without scores is kept. Columns: id, language, dropped,
-- lacking.
-- dropped: the number of scorers that drop the pair
-- lacking: the number of scorers with a missing score
SELECT
    posts.id,
    posts.language,
    count(CASE WHEN scores.dropped THEN 1 END) AS dropped,
    count(CASE WHEN scores.lacking THEN 1 END) AS lacking
FROM posts
LEFT JOIN scores ON posts.id = scores.id
GROUP BY posts.id, posts.language
