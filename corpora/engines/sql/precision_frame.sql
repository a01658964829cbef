-- The posts with a wanted predicted label, within the window if there is one. Columns: language, id.
SELECT
    wanted.language,
    posts.id
FROM predicted
INNER JOIN wanted ON predicted.label = wanted.language
INNER JOIN posts ON predicted.id = posts.id
CROSS JOIN design
WHERE
    design.window_start IS NULL
    OR (posts.posted_at >= design.window_start AND posts.posted_at < design.window_end)
