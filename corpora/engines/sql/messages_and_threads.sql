-- The distinct pairs of message digest and thread. Columns: said, thread.
SELECT DISTINCT
    said,
    thread
FROM exported
ORDER BY said, thread
