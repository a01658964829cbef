-- Which of the posts asked for the frame of each wanted language holds: language, id.
SELECT
    frame.language,
    frame.id
FROM frame
INNER JOIN asked ON frame.id = asked.id
