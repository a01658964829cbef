-- Of each exported pair what must stay in one split: its message. id, language, part.
SELECT
    id,
    language,
    said AS part
FROM exported
