-- Each combination of a message's digest and a thread that contains the message. Columns: message_digest, thread.
SELECT DISTINCT
    message_digest,
    thread
FROM exported
ORDER BY message_digest, thread
