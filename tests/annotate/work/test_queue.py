"""The queue: which units are leased, leases that are released or expire, and the count of waiting units."""

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from annotate.core import stages
from annotate.core.refusals import LeaseExpired, NotFound, WrongStage
from annotate.kinds import Answer
from annotate.models import Backlog, Lease
from annotate.work.answer_changes import undo
from annotate.work.backlog import is_empty, progress_in
from annotate.work.eligible import in_own_queues, judged_or_reopened
from annotate.work.judgments import judge, skip
from annotate.work.moves import move
from annotate.work.permit import open_permits, permit_of
from annotate.work.queue import open_lease, release, take, take_sheet
from tests.annotate import attacks
from tests.annotate.acts import progress_of, why_empty
from tests.annotate.attacks import run_out as expire
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.journeys import GERMAN
from tests.together import at_once

pytestmark = pytest.mark.both_databases


def as_stored(lease):
    lease.refresh_from_db()
    return lease.outcome, lease.place


def test_units_are_handed_out_in_the_order_of_the_draw_to_each_another_and_to_nobody_twice(make_task, readers):
    task, (ann, bea, cem) = make_task([DISPUTED] * 2, redundancy=2), readers("ann bea cem")
    first = take(ann, task)
    assert (first.unit.position, first.place) == (1, 1)
    assert take(ann, task) == first == open_lease(ann, task)  # in a second tab
    assert Lease.objects.count() == 1
    assert [take(bea, task).place, take(cem, task).unit.position] == [2, 2]
    judge(ann, first.pk, GERMAN)
    second = take(ann, task)
    assert (second.unit.position, second.place) == (2, 2)
    judge(ann, second.pk, GERMAN)
    assert take(ann, task) is None
    other = make_task([DISPUTED], name="other")  # the same person can hold a unit there at the same time
    assert [take(person, of).unit.task for person, of in ((ann, other), (bea, task))] == [other, task]


# --- what is given back, and what runs out


def test_a_released_unit_goes_to_the_next_who_asks_and_a_second_release_or_one_by_another_changes_nothing(
    make_task, readers
):
    task, (ann, bea) = make_task([DISPUTED] * 3), readers("ann bea")
    first = take(ann, task)
    with pytest.raises(NotFound, match="You do not have this item"):
        release(bea, first.pk)
    assert as_stored(first) == ("", 1)
    for _ in range(2):
        release(ann, first.pk)
    assert as_stored(first) == ("released", None)
    second = take(ann, task)
    expire(second)
    assert take(bea, task).unit == first.unit
    judge(bea, open_lease(bea, task).pk, GERMAN)
    take(bea, task)
    release(ann, second.pk)
    assert as_stored(second) == ("expired", None)
    third = take(ann, task)
    judge(ann, third.pk, GERMAN)
    release(ann, third.pk)
    assert as_stored(third) == ("answered", 1)


def test_the_place_of_an_expired_lease_goes_to_the_next_who_asks_and_the_late_answer_is_refused(make_task, readers):
    task, (ann, bea) = make_task([DISPUTED]), readers("ann bea")
    lost = take(ann, task)
    expire(lost)
    assert open_lease(ann, task) is None
    lease = take(bea, task)
    assert (lease.unit, lease.place, as_stored(lost)) == (lost.unit, 1, ("expired", None))
    with pytest.raises(LeaseExpired, match="somebody else has it now"):
        judge(ann, lost.pk, GERMAN)
    judge(bea, lease.pk, GERMAN)
    assert task.units.get().judgments.get().annotator == bea


def test_a_late_answer_is_refused_where_the_unit_has_gone_to_a_queue_that_its_reader_may_not_read(make_task, person):
    task, ann, bea = make_task([DISPUTED], redundancy=2), person("ann", "de"), person("bea", "de")
    person("ben", "en")
    person("bob", "en")
    lost, other = take(ann, task), take(bea, task)
    expire(lost)
    skip(bea, other.pk)
    lost.refresh_from_db()
    assert (task.units.get().language, lost.closed_at) == ("en", None)
    with pytest.raises(WrongStage, match="no longer needs your answer"):
        judge(ann, lost.pk, GERMAN)


@pytest.mark.parametrize("meanwhile", ["nobody came", "given back", "late too"])
def test_a_late_answer_counts_while_nobody_else_has_the_place(make_task, readers, meanwhile):
    task, (ann, bea) = make_task([DISPUTED]), readers("ann bea")
    lease = take(ann, task)
    expire(lease)
    if meanwhile != "nobody came":
        other = take(bea, task)
        assert as_stored(lease) == ("expired", None)
        release(bea, other.pk) if meanwhile == "given back" else expire(other)
    judge(ann, lease.pk, GERMAN)
    assert as_stored(lease) == ("answered", 1)
    assert task.units.get().stage == stages.LABELLED
    if meanwhile == "late too":
        assert as_stored(other) == ("expired", None)


def test_a_late_skip_counts_though_somebody_else_has_the_place(make_task, readers):
    """A skip needs no place, and the reader does not get the same post again."""
    task, (ann, bea, _) = make_task([DISPUTED], skip_limit=2), readers("ann bea cem")
    lost = take(ann, task)
    expire(lost)
    lease = take(bea, task)
    skip(ann, lost.pk)
    assert as_stored(lease) == ("", 1)
    assert take(ann, task) is None


def test_an_answer_from_the_tab_of_the_first_lease_counts_for_the_second(make_task, person):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    old_tab = take(ann, task)
    expire(old_tab)
    new_tab = take(ann, task)
    first = judge(ann, old_tab.pk, GERMAN)
    assert first.lease == new_tab
    assert judge(ann, new_tab.pk, GERMAN) == first == judge(ann, old_tab.pk, GERMAN)


def test_leases_left_behind_are_closed_when_their_holder_comes_back(make_task, readers):
    """Even if the unit has moved on in the meantime."""
    task, (ann, bea) = make_task([DISPUTED] * 2, redundancy=2, skip_limit=1, rounds=1), readers("ann bea")
    left = take(ann, task)
    skip(bea, take(bea, task).pk)
    assert left.unit.transitions.last().to_stage == stages.ADJUDICATION
    assert take(ann, task).unit.position == 2
    assert as_stored(left) == ("expired", None)


NO_LANGUAGE = "You do not read any language of this task. The manager can add your languages."


@pytest.mark.parametrize(
    ("languages", "is_open", "why"),
    [
        ("de", False, "This task is closed."),
        ("", True, NO_LANGUAGE),
        ("ja", True, NO_LANGUAGE),
        (
            "de:3 en:2 ja",
            True,
            "This task requires reading level 4 or higher, but your level is lower in German, English. The manager can "
            "change your level.",
        ),
        (
            "de",
            True,
            "The remaining items in your languages are open with other readers. If they do not answer, the items "
            "become available within 10 minutes.",
        ),
        (
            "en",
            True,
            "No items are waiting in your languages now. You may receive items that readers of other languages skip.",
        ),
    ],
)
def test_who_is_given_nothing_is_told_why(make_task, person, languages, is_open, why):
    task, ann, bea = make_task([DISPUTED, AGREED]), person("ann", "de"), person("bea", languages)
    lease = take(ann, task)
    task.is_open = is_open
    assert why_empty(bea, task) == why
    judge(ann, lease.pk, GERMAN)
    if is_open:
        assert why_empty(ann, task) == "All done. All items of this task have been read."


# --- what somebody may not answer any more is not handed out again


LOST = {
    "the language": lambda ann, task: ann.languages.filter(language="de").delete(),
    "by a pause": lambda ann, task: task.pauses.create(annotator=ann, at=timezone.now(), right=0, asked=0),
}


@pytest.mark.parametrize("lose", LOST.values(), ids=LOST)
@pytest.mark.parametrize("handed", [take, lambda ann, task: next(iter(take_sheet(ann, task)), None)])
def test_a_unit_in_hand_is_given_back_when_its_reader_may_not_answer_it_any_more(
    make_task, person, client, lose, handed
):
    task, ann, bea = make_task([DISPUTED], asked="de"), person("ann", "de fr"), person("bea", "de")
    lease = handed(ann, task)
    assert handed(bea, task) is None
    client.force_login(ann.user)
    assert ('id="post"' in client.get("/tasks/task/").text) is not lease.sheet
    lose(ann, task)
    assert 'id="post"' not in client.get("/tasks/task/").text
    assert handed(ann, task) is None
    lease.refresh_from_db()
    assert lease.closed_at
    assert handed(bea, task).unit_id == lease.unit_id


# --- what people are told of how much waits: it is kept, so that it tells nothing of single units


POTS = ["1", "0"] * 8


def waiting(annotator, task):
    return progress_of(annotator, task)["waiting"]


def answer(annotator, task):
    lease = take(annotator, task)
    judge(annotator, lease.pk, Answer("1"))
    return lease


@pytest.fixture
def task(make_records_task):
    return make_records_task("qa_match", 30, gold={"queue": POTS}, gold_share=0.34, redundancy=1)


def grow_old():
    Backlog.objects.update(counted_at=timezone.now() - timedelta(minutes=10))


def test_what_others_do_shows_after_ten_minutes_and_one_s_own_answers_at_once(task, person):
    ann, bea = person("ann", "en"), person("bea", "en")
    first = waiting(ann, task)
    for _ in range(6):
        answer(bea, task)
    assert waiting(ann, task) == first
    lease = answer(ann, task)
    judge(ann, lease.pk, Answer("1"))  # sent twice, it counts once
    skip(ann, take(ann, task).pk)
    assert waiting(ann, task) == first - 2
    undo(ann, task)
    assert waiting(ann, task) == first - 1
    grow_old()
    assert waiting(ann, task) < first - 1


@pytest.mark.sqlite_only
@pytest.mark.django_db(transaction=True)
def test_nobody_waits_for_another_writer_to_be_told_what_was_kept_or_that_nothing_waits(task, person):
    ann, bea, dan = person("ann", "en"), person("bea", "en"), person("dan", "fr")
    first = waiting(ann, task)
    while answer(bea, task).unit.honeypot:  # a gold answer, which is not work
        pass
    assert waiting(dan, task) == 0
    grow_old()
    with transaction.atomic():
        assert at_once(lambda: waiting(ann, task), lambda: waiting(dan, task)) == [first, 0]
    assert waiting(ann, task) < first


def test_it_is_counted_again_where_it_says_that_nothing_waits_or_whose_clock_was_set_back(task, person):
    ann = person("ann", "en")
    first = waiting(ann, task)
    assert first >= 30
    Backlog.objects.update(waiting=1, counted_at=timezone.now() + timedelta(hours=1))
    assert waiting(ann, task) == first
    units = task.units.work()
    units.update(stage=stages.DISCARDED)
    assert take(ann, task) is None
    assert waiting(ann, task) == 0  # consistent with the message that nothing is left
    units.update(stage=stages.QUEUED)
    assert waiting(ann, task) == first


def test_a_count_of_zero_is_kept_on_the_home_page_while_no_item_waits_for_anybody(
    task, person, django_assert_num_queries
):
    ann, units = person("ann", "en"), task.units.work()

    def own_permits():
        return open_permits(ann, is_empty=is_empty(ann))

    units.update(stage=stages.DISCARDED)
    assert [progress.waiting for progress in progress_in(own_permits())] == [0]
    permits = own_permits()
    with django_assert_num_queries(1):
        assert [progress.waiting for progress in progress_in(permits)] == [0]
    units.update(stage=stages.QUEUED)
    [progress] = progress_in(own_permits())
    assert progress.waiting >= 30
    task.units.filter(pk=take(ann, task).unit_id).update(stage=stages.DISCARDED)
    assert not own_permits()[0].task.is_empty


def test_each_task_of_a_person_has_its_own(make_records_task, person, django_assert_num_queries):
    tasks = [make_records_task("qa_match", number, name=f"t{number}") for number in (3, 5, 7)]
    ann = person("ann", "en")
    permits = [permit_of(ann, task) for task in tasks]
    assert [progress.waiting for progress in progress_in(permits)] == [3, 5, 7]
    answer(ann, tasks[1])
    with django_assert_num_queries(1):
        assert [progress.waiting for progress in progress_in(permits)] == [3, 4, 7]


@pytest.mark.parametrize("adjudicates", [False, True])
def test_it_is_what_the_person_may_still_be_given(make_records_task, person, adjudicates):
    task = make_records_task("qa_match", 9, redundancy=2)
    ann, bea = person("ann", "en", adjudicates=adjudicates), person("bea", "en")
    for _ in range(3):
        answer(ann, task)
        answer(bea, task)
    skip(ann, take(ann, task).pk)
    undo(bea, task)
    # Settled by adjudicators, and then queued again.
    for unit in task.units.work().queued().order_by("-position")[:2]:
        move(unit, "conflicted", stages.ADJUDICATION)
        move(unit, "reopened", stages.QUEUED)
    permit = permit_of(ann, task)
    units = in_own_queues(permit).queued()
    assert waiting(ann, task) == units.count() == len(units.exclude(judged_or_reopened([permit])))
    assert units.count() == (3 if adjudicates else 5)


# --- the lot of gold answers


def take_back(ann, task):
    answer(ann, task)
    release(ann, undo(ann, task).pk)


@pytest.mark.parametrize(
    "trick",
    [
        pytest.param(lambda ann, task: release(ann, take(ann, task).pk), id="given back"),
        pytest.param(lambda ann, task: attacks.run_out(take(ann, task)), id="run out"),
        pytest.param(take_back, id="taken back"),
    ],
)
def test_the_random_order_advances_by_one_with_each_unit_whatever_becomes_of_the_unit(task, person, trick):
    ann = person("ann", "en")
    for number in range(12):
        answer(ann, task) if number % 3 else trick(ann, task)
    by_lot = Lease.objects.filter(annotator=ann, turn__isnull=False).order_by("pk")
    rows = list(by_lot.values_list("turn", "unit__honeypot"))
    assert [index for (index, *_), _ in rows] == list(range(len(rows)))
    met = 0
    for (_, gold, size), was_pot in rows:
        assert (gold, size) == (met, 3)
        met += was_pot
    blocks = [[was_pot for _, was_pot in rows][start : start + 3] for start in range(0, len(rows) - 2, 3)]
    assert [sum(block) for block in blocks] == [1] * len(blocks)
