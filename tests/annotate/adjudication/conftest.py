"""Tasks with pending cases for an adjudicator, and functions that look up cases."""

import pytest

from annotate.kinds import Answer
from annotate.work.adjudication import UNANSWERED, settle, to_adjudicate
from annotate.work.judgments import judge, skip
from annotate.work.queue import release, take
from tests.annotate.conftest import AGREED, DISPUTED

LIST = "/tasks/task/adjudication/"


def where(unit):
    unit.refresh_from_db()
    return unit.stage, unit.label


def positions(task, annotator, *cut):
    return [unit.position for unit in to_adjudicate(task, annotator, *cut)]


def _say(reader, task, unit, word):
    lease = take(reader, task)
    if lease is None or lease.unit_id != unit.pk:  # the skip by the other person has already sent it to the adjudicator
        if lease:
            release(reader, lease.pk)
    elif word == "-":
        skip(reader, lease.pk)
    else:
        judge(reader, lease.pk, Answer(word))


@pytest.fixture
def two_say(make_task, person):
    """Return a function that creates a task. two_say("de de", "de en", "de -", "- -") creates a unit for each pair of
    answers by two readers; "-" is a skip. A unit goes to an adjudicator unless both answers are equal.
    """

    def make(*answers, name="task", **knobs):
        task = make_task([DISPUTED] * len(answers), name=name, redundancy=2, rounds=1, skip_limit=1, **knobs)
        readers = [person(f"{name}-{number}", "de") for number in range(2)]
        for unit, words in zip(task.units.order_by("position"), answers, strict=True):
            for reader, word in zip(readers, words.split(), strict=True):
                _say(reader, task, unit, word)
        return task

    return make


@pytest.fixture
def checked(make_task, person, ada, eve, monkeypatch):
    """Return a task with blind cases of each type (doubted audits, rechecked audits, reader checks, second opinions)
    and with cases that are not blind. Eve receives the second opinions.
    """
    # All of Ada's decisions, so that some of the few cases are certainly second opinions.
    monkeypatch.setattr("annotate.controls.checks.is_seconded", lambda task, key: True)
    entries = [DISPUTED, AGREED] * 12
    task, ann = make_task(entries, audit_least=10, audit_recheck=0.5, check_share=0.4, rounds=1), person("ann", "de")
    number = 0
    while lease := take(ann, task):
        number += 1
        if number % 4 == 0:
            skip(ann, lease.pk)
        else:
            judge(ann, lease.pk, Answer("fr" if number % 3 == 0 else "de"))
    for unit in list(to_adjudicate(task, ada, "", UNANSWERED))[:4]:
        settle(ada, unit.pk, Answer("de", "I read it"))
    return task
