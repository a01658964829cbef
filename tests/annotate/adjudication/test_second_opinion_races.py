"""Adjudicators who decide one unit at once, or take a decision back meanwhile, each with their own connection."""

import pytest

from annotate.controls import checks
from annotate.core import stages
from annotate.core.refusals import NothingToUndo
from annotate.kinds import Answer
from annotate.models import Judgment, Unit
from annotate.work.adjudication import settle, unsettle
from annotate.work.judgments import skip
from annotate.work.queue import take
from tests.annotate.conftest import DISPUTED
from tests.together import at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres_only]


@pytest.fixture
def waiting(make_task, person):
    """A unit that waits for an adjudicator."""
    task, reader = make_task([DISPUTED], rounds=1, check_share=1.0), person("reader", "de")
    skip(reader, take(reader, task).pk)
    return task.units.get()


@pytest.fixture
def people(person):
    return [person(f"judge{number}", adjudicates=True) for number in range(4)]


def settling(annotator, unit, label):
    return lambda: settle(annotator, unit.pk, Answer(label, "I read it"))


def counted(unit):
    found = checks.report(unit.task)["adjudicators"]
    return [found[key] for key in ("decisions", "seconded", "differed", "waiting")]


def test_of_two_who_agree_at_once_both_decisions_are_kept_and_the_unit_is_labelled_once(waiting, people):
    said = at_once(*(settling(each, waiting, "de") for each in people[:2]))
    assert [type(each) for each in said] == [Judgment] * 2, said
    waiting.refresh_from_db()
    assert (waiting.stage, waiting.label) == (stages.LABELLED, "de")
    assert [move.event for move in waiting.transitions.all()][-2:] == ["seconded", "settled"]
    assert counted(waiting) == [1, 1, 0, 0]


def test_of_three_at_once_who_all_differ_the_last_decides(waiting, people):
    at_once(*(settling(*each) for each in zip(people, [waiting] * 3, ("de", "fr", "en"), strict=False)))
    waiting.refresh_from_db()
    last = waiting.judgments.decisions().last()
    assert (waiting.stage, waiting.label) == (stages.LABELLED, last.label)
    assert counted(waiting) == [1, 1, 1, 0]


def test_of_four_at_once_three_at_most_are_counted(waiting, people):
    said = at_once(
        *(settling(each, waiting, label) for each, label in zip(people, ["de", "fr", "en", "he"], strict=True))
    )
    assert sum(isinstance(each, Judgment) for each in said) == 3, said
    waiting.refresh_from_db()
    assert waiting.stage == stages.LABELLED
    assert waiting.judgments.decisions().count() == 3


def test_who_takes_back_while_another_agrees_loses_neither_decision(waiting, people):
    first, second, *_ = people
    settle(first, waiting.pk, Answer("de", "I read it"))
    said = at_once(lambda: unsettle(first, waiting.pk), settling(second, waiting, "de"))
    assert [type(each) for each in said] == [Unit, Judgment], said
    waiting.refresh_from_db()
    assert (waiting.stage, waiting.label) == (stages.ADJUDICATION, "")
    assert [each.annotator for each in waiting.judgments.live().decisions()] == [second]
    assert counted(waiting) == [1, 0, 0, 1]


def test_a_decision_taken_back_twice_at_once_is_taken_back_once(waiting, people):
    first, second, *_ = people
    for each in (first, second):
        settle(each, waiting.pk, Answer("de", "I read it"))
    said = at_once(*[lambda: unsettle(first, waiting.pk)] * 2)
    assert sorted(type(each).__name__ for each in said) == ["NothingToUndo", "Unit"], said
    assert any(isinstance(each, NothingToUndo) for each in said)
    assert waiting.transitions.filter(event="unsettled").count() == 1
