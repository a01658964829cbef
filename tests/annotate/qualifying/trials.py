"""A task with a test, and somebody who takes it."""

from itertools import count

from annotate.controls.qualification import next_question
from annotate.models import Trial
from tests.annotate.acts import answer, begin

POOL = ["1", "0"] * 4
GOLD = {"practice": ["1", "0"], "test": POOL}
OTHER = {"1": "0", "0": "1"}


def go_through(annotator, task, kind, *, wrong=0, language="en"):
    """Practise, or take a test, with so many wrong answers at its beginning. Returns the trial."""
    trial = begin(annotator, task, language, kind)
    for number in count():
        question = next_question(trial)
        if question is None:
            trial.refresh_from_db()
            return trial
        right = question.gold_answer.label
        answer(annotator, question.pk, OTHER[right] if number < wrong else right)


def practise(annotator, task, **fields):
    return go_through(annotator, task, Trial.PRACTICE, **fields)


def take_test(annotator, task, **fields):
    return go_through(annotator, task, Trial.TEST, **fields)
