-- Units that an annotator gets only after other units: units that they returned or let expire, and units of work that a
-- gold answer replaced. Otherwise, the unit after a gold answer would always be in the same language, unlike the unit
-- after work. Units come last if they were replaced by a gold answer that another annotator had returned.
-- Parameters: annotator, whether to put units off, now, annotator, number of answers after which no unit is put off;
-- annotator, whether to put units off.
SELECT COALESCE(own.instead_of_id, own.unit_id) AS unit_id
FROM annotate_lease AS own
WHERE own.annotator_id = %s
  AND %s
  AND (
      own.outcome IN ('released', 'expired')
      OR (own.closed_at IS NULL AND own.expires_at <= %s)
      OR (own.instead_of_id IS NOT NULL AND own.outcome IN ('answered', 'skipped', 'flagged'))
  )
  -- Consider only recent leases, so the count below stays cheap even if the annotator has judged many units.
  AND own.opened_at > COALESCE(
      (
          SELECT judgment.answered_at
          FROM annotate_judgment AS judgment
          WHERE judgment.annotator_id = %s
          ORDER BY judgment.answered_at DESC
          LIMIT 1 OFFSET %s
      ),
      '0001-01-02'
  )
  AND own.back_after > (
      SELECT COUNT(*)
      FROM annotate_judgment AS judgment
      WHERE judgment.annotator_id = own.annotator_id
        AND judgment.answered_at > own.opened_at
  )
UNION ALL
SELECT own.instead_of_id AS unit_id
FROM annotate_lease AS own
WHERE own.annotator_id = %s
  AND %s
  AND own.in_place
  AND own.outcome IN ('answered', 'skipped', 'flagged')
