-- The languages that occur in the frame. Columns: language.
SELECT DISTINCT frame.language
FROM frame
ORDER BY frame.language
