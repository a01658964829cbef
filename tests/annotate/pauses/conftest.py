"""Fixtures: tasks in which people are paused, or their answers voided."""

import pytest

from annotate.core import pause_rule
from tests.annotate.pauses.answering import KNOWN, WATCHED, work


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
