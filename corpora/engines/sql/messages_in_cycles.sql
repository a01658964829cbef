-- The messages that are the target of at least one link. Columns: id.
SELECT DISTINCT target_id AS id
FROM links
