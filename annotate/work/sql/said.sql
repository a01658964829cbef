-- Updates an annotator's backlog in a task after an answer or a skip, or after one is taken back.
-- Parameters: decrease in waiting units; today, increase in answers; today, increase in skips; today; annotator; task;
-- least number of waiting units for which the decrease is possible.
UPDATE annotate_backlog
SET waiting = waiting - %s,
    answered = CASE WHEN day = %s THEN answered ELSE 0 END + %s,
    skipped = CASE WHEN day = %s THEN skipped ELSE 0 END + %s,
    day = %s
WHERE annotator_id = %s AND task_id = %s AND waiting >= %s
