-- The kept pairs in the requested languages. Columns: those of `kept`.
SELECT kept.*
FROM kept
INNER JOIN wanted ON kept.language = wanted.language
