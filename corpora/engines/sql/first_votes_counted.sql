-- How often the detectors name which languages first: langid, cld2, fasttext (und if one names none), is_long (whether
-- the text has so many letters), posts. Parameter: the number of letters.
SELECT
    langid,
    cld2,
    fasttext,
    is_long,
    count(*) AS posts
FROM (
    SELECT
        langid,
        cld2,
        fasttext,
        letters >= ? AS is_long
    FROM first_votes
) AS voted
GROUP BY langid, cld2, fasttext, is_long
ORDER BY langid, cld2, fasttext, is_long
