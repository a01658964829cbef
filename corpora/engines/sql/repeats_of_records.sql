-- The staged records whose id occurred before, as in repeats.sql. Their fields, language and labels are compared. The
-- joined text could be the same for different fields, because a field may contain newlines. Columns: line, same.
WITH known AS (
    SELECT posts.id, 0 AS line, md5(posts.language || to_json(posts.fields) || coalesce(CAST(to_json(posts.declared) AS STRING), '')) AS digest
    FROM posts
    WHERE posts.id IN (SELECT staged.id FROM staged)
    UNION ALL
    SELECT staged.id, staged.line, md5(staged.language || to_json(staged.fields) || coalesce(CAST(to_json(staged.declared) AS STRING), '')) AS digest
    FROM staged
),
compared AS (
    SELECT
        line,
        digest = first_value(digest) OVER (PARTITION BY id ORDER BY line) AS same
    FROM known
    QUALIFY row_number() OVER (PARTITION BY id ORDER BY line) > 1
)
SELECT line, same
FROM compared
ORDER BY line
