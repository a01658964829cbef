-- What is kept of a person's work in a task, after they answered or skipped a unit, or took that back.
-- Parameters: how many fewer units wait; today, how many more they answered; today, how many more they skipped; today;
-- the annotator, the task, and how many have to wait that so many fewer can.
UPDATE annotate_backlog
SET waiting = waiting - %s,
    answered = CASE WHEN day = %s THEN answered ELSE 0 END + %s,
    skipped = CASE WHEN day = %s THEN skipped ELSE 0 END + %s,
    day = %s
WHERE annotator_id = %s AND task_id = %s AND waiting >= %s
