-- The split of each part. In each language, parts are ordered by a hash of seed and part, and fill first the test split,
-- then valid, then train. A part that crosses a boundary is placed in the split that contains its midpoint. A part with
-- several languages counts towards the alphabetically first one. Columns: part, split.
WITH parts AS (
    SELECT
        parted.part,
        min(parted.language) AS language,
        count(*) AS pairs,
        md5(design.seed || ':split:' || parted.part) AS ticket
    FROM parted
    CROSS JOIN design
    GROUP BY parted.part, design.seed
),
placed AS (
    SELECT
        part,
        2 * sum(pairs) OVER (PARTITION BY language ORDER BY ticket, part) - pairs AS twice_middle,
        2 * sum(pairs) OVER (PARTITION BY language) AS twice_all
    FROM parts
)
SELECT
    placed.part,
    CASE
        WHEN placed.twice_middle * design.whole <= placed.twice_all * design.test THEN 'test'
        WHEN placed.twice_middle * design.whole <= placed.twice_all * (design.test + design.valid) THEN 'valid'
        ELSE 'train'
    END AS split
FROM placed
CROSS JOIN design
