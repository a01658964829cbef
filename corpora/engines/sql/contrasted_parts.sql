-- Whether two predictors agree on each row of the frame. Only rows in requested languages are included, except those in
-- left_out. Labels in the table `folded` are replaced with their coarse labels before the comparison. Columns: id,
-- language, part.
SELECT
    frame.id,
    frame.language,
    CASE
        WHEN coalesce(one.coarse, predicted.label) = coalesce(other.coarse, other_predicted.label) THEN 'agree'
        ELSE 'differ'
    END AS part
FROM frame
INNER JOIN wanted ON frame.language = wanted.language
INNER JOIN predicted ON frame.id = predicted.id
INNER JOIN other_predicted ON frame.id = other_predicted.id
LEFT JOIN folded AS one ON predicted.label = one.label
LEFT JOIN folded AS other ON other_predicted.label = other.label
LEFT JOIN left_out ON frame.id = left_out.id
WHERE left_out.id IS NULL
