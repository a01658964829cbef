-- Whether the filter kept or dropped each pair. Only pairs in requested languages are included, except those in
-- left_out. Columns: id, language, part.
SELECT
    filtered.id,
    filtered.language,
    CASE WHEN filtered.dropped > 0 THEN 'dropped' ELSE 'kept' END AS part
FROM filtered
INNER JOIN wanted ON filtered.language = wanted.language
LEFT JOIN left_out ON filtered.id = left_out.id
WHERE left_out.id IS NULL
