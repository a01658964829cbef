-- The unread posts to which the predictor assigns a requested language although the detectors agree on a different
-- label. The table `alike` lists the pairs of labels that do not count as different. Columns: language, id.
SELECT
    wanted.language,
    unread.id
FROM predicted
INNER JOIN wanted ON predicted.label = wanted.language
INNER JOIN unread ON predicted.id = unread.id
LEFT JOIN alike ON predicted.label = alike.said AND unread.label = alike.given
WHERE alike.said IS NULL
