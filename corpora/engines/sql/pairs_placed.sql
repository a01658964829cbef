-- The exported pairs, each with its split. Columns: those of `exported`, and split.
SELECT
    exported.*,
    splits.split
FROM exported
INNER JOIN parted ON exported.id = parted.id
INNER JOIN splits ON parted.part = splits.part
