-- The kept pairs of the wanted languages: the columns of kept.
SELECT kept.*
FROM kept
INNER JOIN wanted ON kept.language = wanted.language
