-- The posts to which the predictor assigns a requested language. If the design has a window, only posts in the window
-- are included. Columns: language, id.
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
