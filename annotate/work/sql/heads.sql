-- The first units in a queue that an annotator has not judged and that have a free place.
-- Used together with put_off.sql, for each row of `queue`. Parameters: task, whether the annotator has opted in to
-- disturbing units, annotator, annotator, whether the annotator may have seen answers, now, now, number of units.
SELECT unit.id
FROM annotate_unit AS unit
WHERE unit.task_id = %s
  AND unit.stage = 'QUEUED'
  AND unit.language = queue.value
  AND NOT unit.honeypot
  AND (%s OR NOT unit.disturbing)
  -- Exclude hidden units whose text the annotator has seen (see eligible.py).
  AND NOT ({seen})
  -- Count instead of using NOT EXISTS: PostgreSQL may turn NOT EXISTS into a join that reads all of the annotator's
  -- judgments. Compare with "< 1": PostgreSQL assumes that "= 0" is rarely true and would scan the queue.
  AND (
      SELECT COUNT(*)
      FROM annotate_judgment AS judgment
      WHERE judgment.unit_id = unit.id
        AND judgment.annotator_id = %s
        AND (judgment.voided_at IS NULL OR judgment.voided_by_id IS NOT NULL)
  ) < 1
  -- Exclude reopened units for adjudicators, who could have seen the answers to them.
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
