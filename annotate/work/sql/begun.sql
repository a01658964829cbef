-- First transitions of new units. Parameters pair each stage with its event.
INSERT INTO annotate_transition (unit_id, event, from_stage, to_stage, round, language, label, at)
SELECT
    unit.id,
    CASE unit.stage WHEN %s THEN %s WHEN %s THEN %s WHEN %s THEN %s WHEN %s THEN %s END,
    %s,
    unit.stage,
    unit.round,
    unit.language,
    unit.label,
    %s
FROM annotate_unit unit
WHERE unit.task_id = %s AND unit.position >= %s
ORDER BY unit.position
