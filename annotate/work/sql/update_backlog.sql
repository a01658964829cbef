-- Update an annotator's backlog in a task after a judgment, or after a judgment is undone.
-- Parameters: decrease in waiting units; today, increase in answers; today, increase in skips; today; annotator; task;
-- minimum number of waiting units required for the decrease.
UPDATE annotate_backlog
SET waiting = waiting - %s,
    answered = CASE WHEN day = %s THEN answered ELSE 0 END + %s,
    skipped = CASE WHEN day = %s THEN skipped ELSE 0 END + %s,
    day = %s
WHERE annotator_id = %s AND task_id = %s AND waiting >= %s
