-- The requested posts that are in the frame of each requested language. Columns: language, id.
SELECT
    frame.language,
    frame.id
FROM frame
INNER JOIN asked ON frame.id = asked.id
