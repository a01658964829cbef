-- The languages of the frame: language.
SELECT DISTINCT frame.language
FROM frame
ORDER BY frame.language
