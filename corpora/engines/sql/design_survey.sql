-- Counts of the posts that meet the requirements of a recall- or precision-oriented draw, in a single row.
-- Columns: posts, authored, timed, first_time, last_time, in_history, in_window, authored_in_window.
-- authored and timed: posts with an author, and posts with a time
-- in_history: posts in the history with an author
-- in_window and authored_in_window: posts in the window, and those with an author
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
