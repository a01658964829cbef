-- The unread posts that the predictor labels with each wanted language although they have been given another label:
-- language, id. In alike stand the labels that are no other one for what is said, itself among them.
SELECT
    wanted.language,
    unread.id
FROM predicted
INNER JOIN wanted ON predicted.label = wanted.language
INNER JOIN unread ON predicted.id = unread.id
LEFT JOIN alike ON predicted.label = alike.said AND unread.label = alike.given
WHERE alike.said IS NULL
