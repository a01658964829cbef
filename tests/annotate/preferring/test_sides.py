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
from tests.annotate.preferring.comparing import MARKS, open_comparison

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def even(chosen: Counter) -> bool:
    """Whether both systems stood first equally often, as far as the interval tells."""
    (_, number), *_ = sorted(chosen.items())
    found = proportion(number, chosen.total())
    return found.low <= 0.5 <= found.high


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
    for _ in range(8):
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
    assert Side.objects.count() == 8


def test_what_was_kept_holds_even_if_the_lot_would_fall_otherwise(compare, ann):
    task = compare(number=1)
    lease = take(ann, task)
    first = sides_of(ann, lease.unit).first
    other = "mt5" if first == "bert" else "bert"
    Side.objects.update(first=other)
    Lease.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
    lease = take(ann, task)
    assert judge(ann, lease.pk, Answer("first")).label == other


@pytest.mark.parametrize("sent", ["first", "second", "tie"])
def test_what_is_sent_as_a_side_is_stored_as_the_system_that_stood_there(compare, ann, sent):
    lease = take(ann, compare(number=1))
    sides = sides_of(ann, lease.unit)
    stored = judge(ann, lease.pk, Answer(sent)).label
    assert stored == {"first": sides.first, "second": sides.second, "tie": "tie"}[sent]


def test_the_same_answer_again_is_a_retry_and_another_is_refused_in_terms_of_sides(compare, ann):
    lease = take(ann, compare(number=1))
    first = judge(ann, lease.pk, Answer("second"))
    assert judge(ann, lease.pk, Answer("second")) == first
    with pytest.raises(AlreadyAnswered, match=r"^You have already answered That one here, and that stands\."):
        judge(ann, lease.pk, Answer("first"))


@pytest.mark.parametrize("sent", ["mt5", "bert", "none", "nobody"])
def test_a_system_cannot_be_sent_and_nothing_is_told_of_it(compare, ann, sent):
    lease = take(ann, compare(number=1))
    with pytest.raises(InvalidAnswer) as refused:
        judge(ann, lease.pk, Answer(sent))
    assert str(refused.value) == f"'{sent}' is not an answer here; it is one of first, second, tie."
    assert not Judgment.objects.exists()


def everybody_says(task, people, *wanted):
    """Each of the people answers all units for the system of that place; tie is a word of its own."""
    for somebody, system in zip(people, wanted, strict=True):
        while lease := take(somebody, task):
            sides = sides_of(somebody, lease.unit)
            judge(somebody, lease.pk, Answer({sides.first: "first", sides.second: "second"}.get(system, "tie")))


@pytest.mark.parametrize(
    ("said", "label"),
    [
        (("mt5", "mt5", "bert"), "mt5"),
        (("bert", "tie", "bert"), "bert"),
        (("tie", "tie", "mt5"), "tie"),
    ],
)
def test_the_majority_is_of_systems_wherever_they_stood(compare, person, said, label):
    task = compare(number=6)
    everybody_says(task, [person(name, "en") for name in ("ann", "bea", "cem")], *said)
    assert set(task.units.values_list("stage", "label")) == {(stages.LABELLED, label)}


def test_three_who_all_differ_leave_no_label(compare, person):
    task = compare(number=6)
    everybody_says(task, [person(name, "en") for name in ("ann", "bea", "cem")], "mt5", "bert", "tie")
    assert set(task.units.values_list("stage", "label")) == {(stages.DISCARDED, "")}


def test_or_go_to_an_adjudicator_who_decides_by_sides_of_their_own(compare, person):
    task = compare(number=12, on_conflict="ADJUDICATION")
    everybody_says(task, [person(name, "en") for name in ("ann", "bea", "cem")], "mt5", "bert", "tie")
    ada = person("ada", adjudicates=True)
    units = list(adjudication.to_adjudicate(task, ada))
    assert len(units) == 12
    for unit, cells in adjudication.told(units, ada):
        assert cells == ["en", "This one 1, That one 1, No difference 1"]
        adjudication.settle(ada, unit.pk, Answer("first", reason="The guidelines say so"))
    kept = Side.objects.filter(annotator=ada)
    assert dict(kept.values_list("unit", "first")) == dict(task.units.values_list("pk", "label"))
    assert {"mt5", "bert"} == set(kept.values_list("first", flat=True))


def test_a_decision_can_be_made_again_and_another_is_refused(compare, person):
    task = compare(number=1, on_conflict="ADJUDICATION")
    everybody_says(task, [person(name, "en") for name in ("ann", "bea", "cem")], "mt5", "bert", "tie")
    ada = person("ada", adjudicates=True)
    unit = task.units.get()
    first = adjudication.settle(ada, unit.pk, Answer("second", reason="I know"))
    assert adjudication.settle(ada, unit.pk, Answer("second", reason="I know")) == first
    adjudication.unsettle(ada, unit.pk)
    shown = sides_of(ada, unit)
    assert adjudication.settle(ada, unit.pk, Answer("second", reason="I know")).label == shown.second == first.label


def test_a_task_is_deleted_with_its_sides(compare, ann):
    task = compare("mt5", "bert", "seq2seq")
    release(ann, take(ann, task).pk)
    call_command("delete", "talk", yes=True, verbosity=0)
    assert not Task.objects.exists()
    assert not Side.objects.exists()
    assert not Comparison.objects.exists()
