-- The number of records in each language. Columns: language, records, left_out, groups.
-- left_out: the number of records that are outside the frame
-- groups: the number of groups in the frame
SELECT
    grouped.language,
    count(*) AS records,
    count(left_out.id) AS left_out,
    count(DISTINCT CASE WHEN left_out.id IS NULL THEN grouped.value END) AS groups
FROM grouped
LEFT JOIN left_out ON grouped.id = left_out.id
GROUP BY grouped.language
ORDER BY grouped.language
