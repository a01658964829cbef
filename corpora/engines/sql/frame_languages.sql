-- The languages of the frame. Columns: language.
SELECT DISTINCT frame.language
FROM frame
ORDER BY frame.language
