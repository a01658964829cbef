"""Functions for tasks with annotators, which a manager views."""

from annotate.kinds import Answer
from annotate.models import Judgment
from annotate.work.judgments import judge
from annotate.work.queue import take

# Options of a task with a qualification test.
TESTED = {"gold": {"test": ["1", "0"] * 4}, "test_items": 5, "tries": 2}


def work(annotator, task, label="1", units=1000, seconds=None):
    made = []
    while len(made) < units and (lease := take(annotator, task)):
        answer = lease.unit.known_answer if lease.unit.honeypot else label
        made.append(judge(annotator, lease.pk, Answer(answer), active_seconds=seconds))
    return made


def at(judgment, when, **fields):
    Judgment.objects.filter(pk=judgment.pk).update(answered_at=when, shown_at=None, **fields)


def by(rows, key="language"):
    return {row[key]: row for row in rows}
