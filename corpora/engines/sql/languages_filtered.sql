-- The languages of the corpus's pairs: language.
SELECT DISTINCT filtered.language
FROM filtered
ORDER BY filtered.language
