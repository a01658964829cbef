-- The first units in one queue that an annotator may be given. The annotator has not judged these units, and each has a
-- free place.
-- This is used together with put_off.sql, for each row of `queue`. Parameters: task, whether the annotator accepts
-- disturbing units, annotator, annotator, whether the annotator may have read answers, now, now, number of units.
SELECT unit.id
FROM annotate_unit AS unit
WHERE unit.task_id = %s
  AND unit.stage = 'QUEUED'
  AND unit.language = queue.value
  AND NOT unit.honeypot
  AND (%s OR NOT unit.disturbing)
  -- Leave out hidden units whose text the annotator has seen, see eligible.py.
  AND NOT ({seen})
  -- Use a count instead of NOT EXISTS, which PostgreSQL would turn into a join that might read all judgments of the
  -- annotator. Use "< 1" instead of "= 0", which PostgreSQL would consider rare, so that it would scan the queue.
  AND (
      SELECT COUNT(*)
      FROM annotate_judgment AS judgment
      WHERE judgment.unit_id = unit.id
        AND judgment.annotator_id = %s
        AND (judgment.voided_at IS NULL OR judgment.voided_by_id IS NOT NULL)
  ) < 1
  -- Leave out reopened units for adjudicators, who could have read the answers to them.
  AND NOT (%s AND EXISTS (
      SELECT 1
      FROM annotate_transition AS transition
      WHERE transition.unit_id = unit.id
        AND transition.event = 'reopened'
        AND transition.from_stage = 'ADJUDICATION'
  ))
  -- A place is held by an answer, by a running lease, or by a running lease of a gold answer that replaces the unit.
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
