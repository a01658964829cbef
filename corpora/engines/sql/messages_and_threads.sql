-- Which messages, by the digests of their texts, stand in which threads, each once: said, thread.
SELECT DISTINCT
    said,
    thread
FROM exported
ORDER BY said, thread
