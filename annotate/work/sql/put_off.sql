-- Units that come to a person after others: what they gave back or let run out, and the work for which a gold answer
-- stood that they were given. So the unit after a gold answer is in any language, like the unit after work. Where a gold
-- answer that somebody gave back took the place of a unit, that unit comes last of all.
-- Parameters: annotator, whether any are put off, now, annotator, after how many answers none is put off any more;
-- annotator, whether any are put off.
SELECT COALESCE(own.instead_of_id, own.unit_id) AS unit_id
FROM annotate_lease AS own
WHERE own.annotator_id = %s
  AND %s
  AND (
      own.outcome IN ('released', 'expired')
      OR (own.closed_at IS NULL AND own.expires_at <= %s)
      OR (own.instead_of_id IS NOT NULL AND own.outcome IN ('answered', 'skipped', 'flagged'))
  )
  -- So that no more is counted than may matter, however much they have done.
  AND own.opened_at > COALESCE(
      (
          SELECT said.answered_at
          FROM annotate_judgment AS said
          WHERE said.annotator_id = %s
          ORDER BY said.answered_at DESC
          LIMIT 1 OFFSET %s
      ),
      '0001-01-02'
  )
  AND own.back_after > (
      SELECT COUNT(*)
      FROM annotate_judgment AS said
      WHERE said.annotator_id = own.annotator_id
        AND said.answered_at > own.opened_at
  )
UNION ALL
SELECT own.instead_of_id AS unit_id
FROM annotate_lease AS own
WHERE own.annotator_id = %s
  AND %s
  AND own.in_place
  AND own.outcome IN ('answered', 'skipped', 'flagged')
