"""Functions that take a qualification test and use the introductory pages without a browser."""

from itertools import count

from annotate.controls.qualification import next_question
from annotate.models import Trial
from tests.annotate.acts import answer, begin

POOL = ["1", "0"] * 4
GOLD = {"practice": ["1", "0"], "test": POOL}
OTHER = {"1": "0", "0": "1"}
HTMX = {"HX-Request": "true"}
PATH = "/tasks/crowd/qualification/en/"


def go_through(annotator, task, kind, *, wrong=0, language="en"):
    """Practise or take a test, starting with `wrong` incorrect answers, and return the trial."""
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


def practised(annotator, task, language="en"):
    """Practise, start the test, and return it."""
    practise(annotator, task, language=language)
    return begin(annotator, task, language, "test")


def says(client, question, label, **headers):
    return client.post(f"{PATH}answer/", {"question": question.pk, "answer": label}, headers=headers)
