-- The first units of one queue that a person may be given: not judged by them, with a free place.
-- Beside put_off.sql, for each row of `queue`. Parameters: task, whether the annotator takes what others found disturbing,
-- annotator, annotator, whether the annotator adjudicates, now, now, how many.
SELECT unit.id
FROM annotate_unit AS unit
WHERE unit.task_id = %s
  AND unit.stage = 'QUEUED'
  AND unit.language = queue.value
  AND NOT unit.honeypot
  AND (%s OR NOT unit.disturbing)
  -- A hidden unit whose text they have seen: eligible.py.
  AND NOT ({seen})
  -- Counted, and not asked whether there is one: PostgreSQL would make a join of that, and might read all that the
  -- person ever judged. And less than 1, not 0, of which it would think that it is rare, and look through the queue.
  AND (
      SELECT COUNT(*)
      FROM annotate_judgment AS judgment
      WHERE judgment.unit_id = unit.id
        AND judgment.annotator_id = %s
        AND (judgment.voided_at IS NULL OR judgment.voided_by_id IS NOT NULL)
  ) < 1
  -- Adjudicators could read there what others had answered.
  AND NOT (%s AND EXISTS (
      SELECT 1
      FROM annotate_transition AS transition
      WHERE transition.unit_id = unit.id
        AND transition.event = 'reopened'
        AND transition.from_stage = 'ADJUDICATION'
  ))
  -- A place is held by an answer, by a lease that runs, and by one of a gold answer that stands for the unit.
  AND (
      SELECT COUNT(*)
      FROM annotate_lease AS lease
      WHERE lease.unit_id = unit.id
        AND lease.place IS NOT NULL
        AND (lease.closed_at IS NOT NULL OR lease.expires_at > %s)
  ) + (
      SELECT COUNT(*)
      FROM annotate_lease AS lease
      WHERE lease.instead_of_id = unit.id
        AND lease.closed_at IS NULL
        AND lease.expires_at > %s
  ) < unit.redundancy
  AND unit.id NOT IN (SELECT unit_id FROM put_off)
ORDER BY unit.position
LIMIT %s
