-- Each combination of a message's digest (`said`) and a thread that contains the message. Columns: said, thread.
SELECT DISTINCT
    said,
    thread
FROM exported
ORDER BY said, thread
