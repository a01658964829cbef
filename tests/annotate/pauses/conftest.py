"""Tasks in which people are paused or their answers voided, and functions that answer in one way or another."""

import pytest

from annotate.core import pause_rule
from annotate.kinds import Answer
from annotate.models import Judgment
from annotate.work.judgments import judge
from annotate.work.queue import take

WATCHED = {"gold_share": 0.5, "redundancy": 3}
KNOWN = {"queue": ["1", "0"] * 4}
YES, NO = Answer("1"), Answer("0")


def right_answer(unit):
    return Answer(unit.known_answer) if unit.honeypot else YES


def wrong(unit):
    return Answer("0" if right_answer(unit).label == "1" else "1")


def work(annotator, task, say=right_answer, units=1000):
    """Answer up to this many units, and return the judgments."""
    made = []
    while len(made) < units and (lease := take(annotator, task)):
        made.append(judge(annotator, lease.pk, say(lease.unit)))
    return made


def gold_count(judgments):
    return sum(judgment.unit.honeypot for judgment in judgments)


def live(annotator):
    return Judgment.objects.filter(annotator=annotator, voided_at=None)


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Allow pauses from the third gold answer on."""
    monkeypatch.setattr(pause_rule, "LEAST", 3)


@pytest.fixture
def watched(make_records_task):
    return make_records_task(count=12, gold=KNOWN, **WATCHED)


@pytest.fixture
def three(make_records_task, person):
    """A task with six units and no gold answers, and three people who gave the same answers to all units."""
    task = make_records_task(count=6, redundancy=3)
    people = [person(name, "en") for name in ("ann", "bea", "cem")]
    for annotator in people:
        work(annotator, task)
    assert set(task.units.values_list("stage", "label")) == {("LABELLED", "1")}
    return task, *people
