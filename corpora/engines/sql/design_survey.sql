-- What a design for one language finds in the corpus, one row: posts, those with an author, those with a time, the first
-- and the last time, the posts with an author in the history, the posts in the window, those of them with an author.
SELECT
    count(*) AS posts,
    count(*) FILTER (WHERE posts.author <> '') AS authored,
    count(posts.posted_at) AS timed,
    min(posts.posted_at) AS first_time,
    max(posts.posted_at) AS last_time,
    count(*) FILTER (
        WHERE posts.author <> '' AND posts.posted_at >= design.history_start AND posts.posted_at < design.history_end
    ) AS in_history,
    count(*) FILTER (
        WHERE posts.posted_at >= design.window_start AND posts.posted_at < design.window_end
    ) AS in_window,
    count(*) FILTER (
        WHERE posts.author <> '' AND posts.posted_at >= design.window_start AND posts.posted_at < design.window_end
    ) AS authored_in_window
FROM posts
CROSS JOIN design
