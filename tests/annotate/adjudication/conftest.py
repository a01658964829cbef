"""Tasks of which something waits for an adjudicator."""

import pytest

from annotate.kinds import Answer
from annotate.work.adjudication import UNANSWERED, settle, to_adjudicate
from annotate.work.judgments import judge, skip
from annotate.work.queue import release, take
from tests.annotate.conftest import AGREED, DISPUTED


def say(reader, task, unit, word):
    lease = take(reader, task)
    if lease is None or lease.unit_id != unit.pk:  # the other's skip has sent it to the adjudicator already
        if lease:
            release(reader, lease.pk)
    elif word == "-":
        skip(reader, lease.pk)
    else:
        judge(reader, lease.pk, Answer(word))


@pytest.fixture
def two_say(make_task, person):
    """two_say("de de", "de en", "de -", "- -") is a task with a unit for each, of which two readers said this; "-" is a
    skip. All wait for an adjudicator but those of which both said the same.
    """

    def make(*said, name="task", **knobs):
        task = make_task([DISPUTED] * len(said), name=name, redundancy=2, rounds=1, skip_limit=1, **knobs)
        readers = [person(f"{name}-{number}", "de") for number in range(2)]
        for unit, words in zip(task.units.order_by("position"), said, strict=True):
            for reader, word in zip(readers, words.split(), strict=True):
                say(reader, task, unit, word)
        return task

    return make


@pytest.fixture
def checked(make_task, person, ada, eve, monkeypatch):
    """A task with blind cases of each origin (doubted audits, rechecked audits, checks of readers, second opinions) and
    with cases that are not blind; second opinions come to eve.
    """
    # Of all that ada settles, so that some of the few cases are sure to be second opinions.
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
