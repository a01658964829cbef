-- What a person gave back or let run out, and the work for which a gold answer stood that they gave back: units that come
-- to them after others.
-- Parameters: annotator, whether any are put off, now, annotator, after how many answers none is put off any more.
SELECT COALESCE(own.instead_of_id, own.unit_id) AS unit_id
FROM annotate_lease AS own
WHERE own.annotator_id = %s
  AND %s
  AND (own.outcome IN ('released', 'expired') OR (own.closed_at IS NULL AND own.expires_at <= %s))
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
