"""Which of two systems stands first for whom, and what becomes of a side that somebody chose."""

from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from annotate.actions.commands import call_command
from annotate.controls.pair_order import drawn
from annotate.core import stages
from annotate.core.estimation.proportions import proportion
from annotate.core.refusals import AlreadyAnswered, InvalidAnswer
from annotate.kinds import Answer
from annotate.models import Annotator, Comparison, Judgment, Lease, Side, Task
from annotate.pages.item_view import sides_of
from annotate.work import adjudication
from annotate.work.answer_changes import undo
from annotate.work.judgments import judge, skip
from annotate.work.queue import release, take
from tests.annotate.preferences.comparing import MARKS, open_comparison

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def even(counts: Counter) -> bool:
    """Whether both systems stood first equally often, as far as the interval shows."""
    (_, number), *_ = sorted(counts.items())
    interval = proportion(number, counts.total())
    return interval.low <= 0.5 <= interval.high


def test_of_6000_lots_either_system_stands_first_in_half():
    task = Task(secret="5ecret")
    comparison = Comparison(system_a="bert", system_b="mt5")
    people = [Annotator(pseudonym=f"annotator-{number}") for number in range(12)]
    lots = Counter(drawn(task, f"en-{n}", comparison, person) for n in range(500) for person in people)
    assert lots.total() == 6000
    assert even(lots)
    for person in people:
        own = Counter(drawn(task, f"en-{n}", comparison, person) for n in range(500))
        assert 190 < own["bert"] < 310  # 5.4 standard deviations of 500 tosses


def test_of_hundreds_handed_out_either_system_stands_first_in_half_and_it_is_what_was_shown(compare, person):
    task = compare(number=100, redundancy=3)
    firsts = Counter()
    for name in ("ann", "bea", "cem"):
        somebody = person(name, "en")
        while lease := take(somebody, task):
            shown = sides_of(somebody, lease.unit)
            assert Side.objects.get(unit=lease.unit, annotator=somebody).first == shown.first
            assert shown.sets[0][0].startswith(MARKS[shown.first])
            firsts[shown.first] += 1
            judge(somebody, lease.pk, Answer("first"))
    assert firsts.total() == Side.objects.count() == 300
    assert even(firsts)
    # Whoever always takes the first prefers either system in half, and that is what is stored.
    assert Counter(Judgment.objects.values_list("label", flat=True)) == firsts


def test_the_lots_of_two_people_and_of_two_tasks_have_nothing_to_do_with_each_other(person, tmp_path):
    tasks = [open_comparison(tmp_path, number=60, name=name, secret="") for name in ("one", "other")]
    assert len({task.secret for task in tasks}) == 2
    assert all(len(task.secret) == 64 for task in tasks)
    ann, bea = person("ann", "en"), person("bea", "en")
    same = [
        {unit.item.key: sides_of(who, unit).first for unit in task.units.select_related("item", "task")}
        for task, who in ((tasks[0], ann), (tasks[0], bea), (tasks[1], ann))
    ]
    for one, other in ((0, 1), (0, 2)):
        alike = sum(same[one][key] == same[other][key] for key in same[0])
        assert 10 < alike < 50  # of 60; 5.2 standard deviations


def test_the_order_stays_through_a_reload_a_return_a_skip_and_an_undo(compare, ann):
    task = compare(number=8)
    for _ in range(7):
        lease = take(ann, task)
        first = sides_of(ann, lease.unit).first
        assert sides_of(ann, take(ann, task).unit).first == first
        release(ann, lease.pk)
        assert sides_of(ann, lease.unit).first == first
        lease = take(ann, task)
        first = sides_of(ann, lease.unit).first
        skip(ann, lease.pk)
        again = undo(ann, task)
        assert again.unit_id == lease.unit_id
        assert sides_of(ann, again.unit).first == first
        judge(ann, again.pk, Answer("second"))
    # What was kept holds even if the lot would fall otherwise.
    lease = take(ann, task)
    other = "mt5" if sides_of(ann, lease.unit).first == "bert" else "bert"
    Side.objects.filter(unit=lease.unit).update(first=other)
    Lease.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
    assert judge(ann, take(ann, task).pk, Answer("first")).label == other
    assert Side.objects.count() == 8


def test_a_task_is_deleted_with_its_sides(compare, ann):
    task = compare("mt5", "bert", "seq2seq")
    release(ann, take(ann, task).pk)
    call_command("delete", "talk", yes=True, verbosity=0)
    assert not any(model.objects.exists() for model in (Task, Side, Comparison))


@pytest.mark.parametrize("side", ["first", "second", "tie"])
def test_what_is_sent_as_a_side_is_stored_as_the_system_that_stood_there_and_no_system_can_be_sent(compare, ann, side):
    lease = take(ann, compare(number=1))
    for label in ("mt5", "bert", "none", "nobody"):
        with pytest.raises(InvalidAnswer) as refused:
            judge(ann, lease.pk, Answer(label))
        assert str(refused.value) == f"'{label}' is not a valid answer. Valid answers: first, second, tie."
    assert not Judgment.objects.exists()
    sides = sides_of(ann, lease.unit)
    judgment = judge(ann, lease.pk, Answer(side))
    assert judgment.label == {"first": sides.first, "second": sides.second, "tie": "tie"}[side]
    # The same answer again is a retry, and another is refused in terms of sides.
    assert judge(ann, lease.pk, Answer(side)) == judgment
    name = {"first": "Set 1", "second": "Set 2", "tie": "No difference"}[side]
    with pytest.raises(AlreadyAnswered, match=rf"^You have already answered {name}\. To change"):
        judge(ann, lease.pk, Answer("first" if side == "tie" else "tie"))


def answer_all(task, person, *systems):
    """Three people answer all units for the system of that place; tie is an answer of its own."""
    for name, system in zip(("ann", "bea", "cem"), systems, strict=True):
        annotator = person(name, "en")
        while lease := take(annotator, task):
            sides = sides_of(annotator, lease.unit)
            judge(annotator, lease.pk, Answer({sides.first: "first", sides.second: "second"}.get(system, "tie")))


@pytest.mark.parametrize(
    ("systems", "stage", "label"),
    [
        (("mt5", "mt5", "bert"), stages.LABELLED, "mt5"),
        (("bert", "tie", "bert"), stages.LABELLED, "bert"),
        (("tie", "tie", "mt5"), stages.LABELLED, "tie"),
        (("mt5", "bert", "tie"), stages.DISCARDED, ""),
    ],
)
def test_the_majority_is_of_systems_wherever_they_stood(compare, person, systems, stage, label):
    task = compare(number=6)
    answer_all(task, person, *systems)
    assert set(task.units.values_list("stage", "label")) == {(stage, label)}


def test_where_no_system_has_a_majority_an_adjudicator_decides_by_sides_of_their_own(compare, person):
    task = compare(number=12, on_conflict="ADJUDICATION")
    answer_all(task, person, "mt5", "bert", "tie")
    ada = person("ada", adjudicates=True)
    units = list(adjudication.to_adjudicate(task, ada))
    assert len(units) == 12
    for unit, cells in adjudication.told(units, ada):
        assert cells == ["en", "Set 1 1, Set 2 1, No difference 1"]
        adjudication.settle(ada, unit.pk, Answer("first", reason="The guidelines say so"))
    sides = Side.objects.filter(annotator=ada)
    assert dict(sides.values_list("unit", "first")) == dict(task.units.values_list("pk", "label"))
    assert {"mt5", "bert"} == set(sides.values_list("first", flat=True))
    # A decision can be made again.
    unit = task.units.first()
    decision = adjudication.settle(ada, unit.pk, Answer("first", reason="The guidelines say so"))
    adjudication.unsettle(ada, unit.pk)
    second = adjudication.settle(ada, unit.pk, Answer("second", reason="I know"))
    assert decision.label == sides_of(ada, unit).first != second.label
