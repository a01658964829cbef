-- Of each exported pair what must stay in one split: the threads that share messages. id, language, part.
SELECT
    exported.id,
    exported.language,
    components.part
FROM exported
INNER JOIN components ON exported.said = components.said
