-- The unread posts to which the predictor assigns a requested language, although the detectors agree on a different
-- label. The table `equal_labels` lists the pairs of labels that count as equal. Columns: language, id.
SELECT
    wanted.language,
    unread.id
FROM predicted
INNER JOIN wanted ON predicted.label = wanted.language
INNER JOIN unread ON predicted.id = unread.id
LEFT JOIN equal_labels ON predicted.label = equal_labels.predicted AND unread.label = equal_labels.agreed
WHERE equal_labels.predicted IS NULL
