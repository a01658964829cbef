"""Second opinions on adjudicators: who gives them, their outcome, and how they are undone."""

import itertools
import re
from contextlib import suppress

import pytest
from django.db import transaction
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from annotate.controls import check_report
from annotate.core import stages
from annotate.core.draws import hash_order
from annotate.core.refusals import NotAllowed, NothingToUndo, Refusal, WrongStage
from annotate.figures.task_overview import undecidable
from annotate.kinds import Answer
from annotate.models import Judgment, Pause, Unit
from annotate.work.adjudication import (
    discard,
    for_others,
    settle,
    to_adjudicate,
    unsettle,
    waiting_counts,
)
from tests.annotate.adjudication.conftest import where
from tests.together import at_once


def say(annotator, unit, label):
    """Settle a unit, or discard it if the label is empty; return its new stage and label."""
    if label:
        settle(annotator, unit.pk, Answer(label, "I read the language"))
    else:
        discard(annotator, unit.pk, "nobody can tell")
    return where(unit)


def counted(task):
    counts = check_report.report(task)["adjudicators"]
    return [counts[key] for key in ("decisions", "seconded", "differed", "waiting")]


@pytest.fixture
def judges(person):
    return [person(f"judge{number}", adjudicates=True) for number in range(3)]


@pytest.fixture
def seconded(skipped):
    """seconded(2) returns a task and its two units, which their reader skipped; all need a second decision."""

    def make(count=1, **options):
        task = skipped(count, **{"check_share": 1.0} | options)
        return task, list(task.units.order_by("position"))

    return make


NUMBERS = itertools.count()
WAITS = (stages.ADJUDICATION, "")


def test_randomly_chosen_units_wait_for_another_adjudicator_and_the_rest_are_labelled(seconded, ada, eve):
    task, units = seconded(30, check_share=0.3)
    places = {unit.item.key: say(ada, unit, "de") for unit in units}
    by_lot = {key for key in places if hash_order.is_drawn(0.3, lots=task.lots, purpose="second", key=key)}
    assert 0 < len(by_lot) < 30
    assert {key for key, at in places.items() if at == WAITS} == by_lot
    assert {at for key, at in places.items() if key not in by_lot} == {(stages.LABELLED, "de")}


@pytest.mark.parametrize(
    ("decisions", "adjudicators", "end", "counts"),
    [
        ("de", 1, "de", [1, 0, 0, 0]),  # there is nobody else
        ("discard", 2, "", [1, 0, 0, 0]),  # a first decision to discard gets no second opinion
        ("de de", 2, "de", [1, 1, 0, 0]),
        ("de fr", 2, "de", [1, 1, 1, 0]),  # without a third person the first decision stands
        ("de discard", 2, "de", [1, 1, 1, 0]),
        ("de fr de", 3, "de", [1, 1, 1, 0]),
        ("de fr fr", 3, "fr", [1, 1, 1, 0]),
        ("de fr en", 3, "en", [1, 1, 1, 0]),
        ("de fr discard", 3, "", [1, 1, 1, 0]),
        ("de discard discard", 3, "", [1, 1, 1, 0]),
    ],
)
def test_two_who_agree_decide_and_if_they_differ_a_third_or_the_first_does(
    seconded, person, decisions, adjudicators, end, counts
):
    task, (unit,) = seconded()
    people = [person(f"judge{number}", adjudicates=True) for number in range(adjudicators)]
    *before, last = [label.replace("discard", "") for label in decisions.split()]
    for number, label in enumerate(before):
        assert say(people[number], unit, label) == WAITS
        assert unit.transitions.last().event == ("differed" if number else "seconded")
        assert counted(task) == [1, number, number, 1]
    assert say(people[len(before)], unit, last) == ((stages.LABELLED, end) if end else (stages.DISCARDED, ""))
    assert counted(task) == counts


def test_nobody_is_waited_for_who_has_left_is_paused_or_has_read_the_unit(seconded, ada, eve, person):
    task, (first, second, third) = seconded(3)
    eve.user.is_active = False
    eve.user.save()
    assert say(ada, first, "de")[0] == stages.LABELLED
    kim = person("kim", adjudicates=True)
    Pause.objects.create(annotator=kim, task=task, right=0, asked=0, at=task.created_at)
    assert say(ada, second, "de")[0] == stages.LABELLED
    reader = third.judgments.get().annotator
    reader.adjudicates = True
    reader.save()
    assert say(ada, third, "de")[0] == stages.LABELLED


def test_the_first_is_not_shown_it_again_and_the_second_is_not_shown_the_first(seconded, ada, eve, as_eve):
    task, (unit,) = seconded()
    settle(ada, unit.pk, Answer("fr", "the word baguette", comment="quite sure"))
    assert not to_adjudicate(task, ada).exists()
    assert (waiting_counts(ada, [task]), for_others(task, ada)) == ({}, 1)
    assert [(case.pk, case.blind) for case in to_adjudicate(task, eve)] == [(unit.pk, True)]
    assert not to_adjudicate(task, eve, "de").exists()
    address, api = "/tasks/task/adjudication/", "/api/v1/tasks/task/adjudication/"
    text = "".join(as_eve.get(f"{at}{rest}").text for at in (address, api) for rest in ("", f"{unit.pk}/"))
    for word in ("baguette", "quite sure", "Votes", "seconded", "another adjudicator", ada.pseudonym, str(ada)):
        assert word not in text, word
    case = as_eve.get(f"{api}{unit.pk}/").json()
    hidden = {"own": None, "outcome": None, "votes": {}, "judgments": [], "history": []}
    assert case | hidden | {"open": True, "blind": True} == case


@pytest.mark.parametrize("name", ["page", pytest.param("api", marks=pytest.mark.slow)])
def test_the_first_is_shown_the_same_whether_or_not_another_is_asked_too(seconded, ada, eve, as_ada, name):
    task, units = seconded(16, check_share=0.5)
    address = "/api/v1/tasks/task/adjudication/" if name == "api" else "/tasks/task/adjudication/"
    seen = {True: set(), False: set()}
    for number, unit in enumerate(units):
        if number == 15:
            continue  # after the last one nothing is left
        say(ada, unit, "fr")
        texts = [as_ada.get(f"{address}{unit.pk}/"), as_ada.get(address)]
        texts = [re.sub(rf'value="\w{{64}}"|{unit.item.text}|\d+', "", page.text) for page in texts[:1]]
        unsettle(ada, unit.pk)
        listed = [(case.pk == unit.pk, case.blind) for case in to_adjudicate(task, ada)]
        say(ada, unit, "fr")
        seen[unit.stage == stages.ADJUDICATION].add((*texts, len(listed) - (15 - number), (True, False) in listed))
    assert seen[True] == seen[False]
    assert len(seen[True]) == 1


def test_the_first_cannot_decide_twice(seconded, ada, eve):
    _, (unit,) = seconded()
    decision = settle(ada, unit.pk, Answer("de", "I read it"))
    assert settle(ada, unit.pk, Answer("de", "I read it")) == decision
    with pytest.raises(NotAllowed, match="To change your decision, undo it first"):
        settle(ada, unit.pk, Answer("fr", "I read it"))
    settle(eve, unit.pk, Answer("de", "I read it"))
    with pytest.raises(WrongStage):
        settle(ada, unit.pk, Answer("fr", "I read it"))


def test_who_sees_that_a_second_is_asked_and_mends_their_word_is_counted_by_the_first(seconded, ada, eve):
    task, units = seconded(30, check_share=0.5)
    for unit in units:
        say(ada, unit, "fr")
        if for_others(task, ada):  # it waits for another, so it was chosen
            unsettle(ada, unit.pk)
            say(ada, unit, "de")
            say(eve, unit, "de")
    decided, seconded, differed, waits = counted(task)
    assert 0 < seconded < decided == 30
    assert (differed, waits) == (seconded, 0)


def test_either_of_two_who_agreed_can_undo_the_decision(seconded, ada, eve):
    for one, other in itertools.permutations((ada, eve)):
        task, (unit,) = seconded(name=f"of-{one.pseudonym.lower()}")
        say(ada, unit, "de")
        say(eve, unit, "de")
        unsettle(one, unit.pk)
        assert (where(unit), counted(task)) == (WAITS, [1, 0, 0, 1])
        assert not to_adjudicate(task, other).exists()
        # The other decision stands and is now the first. Each person's first decision counts.
        assert say(one, unit, "fr") == (stages.LABELLED, "de")
        assert counted(task) == [1, 1, 0, 0]
        with pytest.raises(NothingToUndo):
            unsettle(unit.judgments.first().annotator, unit.pk)


def test_a_unit_whose_other_adjudicators_have_left_is_reported_and_the_first_can_still_settle_it(seconded, ada, eve):
    task, (unit,) = seconded()
    say(ada, unit, "de")
    eve.user.is_active = False
    eve.user.save()
    assert undecidable(task) == 1
    unsettle(ada, unit.pk)
    assert say(ada, unit, "de") == (stages.LABELLED, "de")


ACTS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["de", "fr", "", "take back"])), max_size=12)


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ACTS)
@example([(0, "de"), (1, "fr"), (2, "fr"), (0, "take back"), (0, "en")])
@example([(0, "de"), (0, "take back"), (0, "fr"), (1, "fr"), (0, "take back"), (1, "take back")])
def test_whatever_three_people_decide_and_undo_nothing_is_lost_or_counted_twice(seconded, judges, acts):
    """Each person's last decision counts; the unit has a label, or somebody may decide it."""
    with transaction.atomic():
        task, (unit,) = seconded(name=f"task-{next(NUMBERS)}")
        stands = {}
        for who, label in acts:
            with suppress(Refusal):
                if label == "take back":
                    unsettle(judges[who], unit.pk)
                    stands.pop(who)
                else:
                    say(judges[who], unit, label)
                    stands[who] = label
        stage, label = where(unit)
        live = unit.judgments.live().decisions()
        assert {judges.index(judgment.annotator): judgment.label for judgment in live} == stands
        decided, seconded, _, waits = counted(task)
        assert (decided, seconded) == (bool(stands), len(stands) > 1)
        assert waits == (stage == stages.ADJUDICATION and bool(stands))
        labels = list(stands.values())
        if stage in stages.FINISHED:
            assert label in labels
            assert labels.count(label) == max(map(labels.count, labels))
        else:
            assert [to_adjudicate(task, judge).exists() for judge in judges] == [n not in stands for n in range(3)]
            assert len(stands) < 3


# --- at once, each with their own connection


def on_locks(test):
    return pytest.mark.django_db(transaction=True)(pytest.mark.postgres_only(test))


def settling(annotator, unit, label="de"):
    return lambda: settle(annotator, unit.pk, Answer(label, "I read it"))


@on_locks
@pytest.mark.parametrize(
    ("labels", "number", "counts"),
    [
        pytest.param("de de", 2, [1, 1, 0, 0], id="two who agree label it"),
        pytest.param("de fr en", 3, [1, 1, 1, 0], id="of three who differ the last decides"),
        pytest.param("de fr en he", 3, [1, 1, 1, 0], id="of four three at most are counted"),
    ],
)
def test_decisions_at_once_are_kept_until_one_settles_the_unit(seconded, judges, ada, labels, number, counts):
    task, (unit,) = seconded()
    results = at_once(*(settling(who, unit, label) for who, label in zip([*judges, ada], labels.split(), strict=False)))
    assert sum(isinstance(result, Judgment) for result in results) == number, results
    decisions = unit.judgments.decisions()
    assert (where(unit), decisions.count()) == ((stages.LABELLED, decisions.last().label), number)
    assert counted(task) == counts


@on_locks
def test_who_takes_back_while_another_agrees_loses_neither_decision(seconded, judges):
    (task, (unit,)), (first, second, *_) = seconded(), judges
    settling(first, unit)()
    results = at_once(lambda: unsettle(first, unit.pk), settling(second, unit))
    assert [type(result) for result in results] == [Unit, Judgment], results
    assert where(unit) == WAITS
    assert [judgment.annotator for judgment in unit.judgments.live().decisions()] == [second]
    assert counted(task) == [1, 0, 0, 1]


@on_locks
def test_a_decision_taken_back_twice_at_once_is_taken_back_once(seconded, judges):
    _, (unit,) = seconded()
    for judge in judges[:2]:
        settling(judge, unit)()
    results = at_once(*[lambda: unsettle(judges[0], unit.pk)] * 2)
    assert sorted(type(result).__name__ for result in results) == ["NothingToUndo", "Unit"], results
    assert unit.transitions.filter(event="unsettled").count() == 1
