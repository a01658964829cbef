-- The staged rows whose id occurred before, either in the same file or in an earlier part, in the order of the file.
-- Rows in earlier parts count as line 0. Texts are compared by their digests. Columns: line, same_text.
-- same_text: whether the text is the same as in the first row with the id
WITH known AS (
    SELECT posts.id, 0 AS line, md5(posts.text) AS digest
    FROM posts
    WHERE posts.id IN (SELECT staged.id FROM staged)
    UNION ALL
    SELECT staged.id, staged.line, md5(staged.text) AS digest
    FROM staged
),
compared AS (
    SELECT
        line,
        digest = first_value(digest) OVER (PARTITION BY id ORDER BY line) AS same_text
    FROM known
    QUALIFY row_number() OVER (PARTITION BY id ORDER BY line) > 1
)
SELECT line, same_text
FROM compared
ORDER BY line
