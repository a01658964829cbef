"""What people are told of how much waits for them is kept, so that it tells nothing of single units; and the lot of
gold answers goes on whatever becomes of what it gave.
"""

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from annotate.controls.qualification import grant
from annotate.core import stages
from annotate.kinds import Answer
from annotate.models import Backlog, Lease
from annotate.work.answer_changes import undo
from annotate.work.backlog import progress_in
from annotate.work.eligible import beyond, in_own_queues
from annotate.work.judgments import judge, skip
from annotate.work.moves import move
from annotate.work.permit import permit_of
from annotate.work.queue import release, take
from tests.annotate import attacks
from tests.annotate.acts import behind_tests, progress_of
from tests.together import at_once

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
    while answer(bea, task).unit.honeypot:  # by which no work is done
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
    assert waiting(ann, task) == 0  # who is told that nothing is left is not told of more elsewhere
    units.update(stage=stages.QUEUED)
    assert waiting(ann, task) == first


def test_it_is_counted_again_once_a_test_is_passed(make_records_task, person, manager):
    task, ann = make_records_task("qa_match", 12, languages=("en", "de"), test_items=2), person("ann", "en de")
    grant(ann, task, "en", by=manager)
    german = behind_tests(ann, task)["de"]
    english = waiting(ann, task)
    grant(ann, task, "de", by=manager)
    assert (waiting(ann, task), behind_tests(ann, task)) == (english + german, {})


def test_each_task_of_a_person_has_its_own(make_records_task, person, django_assert_num_queries):
    tasks = [make_records_task("qa_match", number, name=f"t{number}") for number in (3, 5, 7)]
    ann = person("ann", "en")
    permits = [permit_of(ann, task) for task in tasks]
    assert [own.waiting for own in progress_in(permits)] == [3, 5, 7]
    answer(ann, tasks[1])
    with django_assert_num_queries(1):
        assert [own.waiting for own in progress_in(permits)] == [3, 4, 7]


@pytest.mark.parametrize("adjudicates", [False, True])
def test_it_is_what_the_person_may_still_be_given(make_records_task, person, adjudicates):
    task = make_records_task("qa_match", 9, redundancy=2)
    ann, bea = person("ann", "en", adjudicates=adjudicates), person("bea", "en")
    for _ in range(3):
        answer(ann, task)
        answer(bea, task)
    skip(ann, take(ann, task).pk)
    undo(bea, task)
    # Read by adjudicators, and asked again since.
    for unit in task.units.work().queued().order_by("-position")[:2]:
        move(unit, "conflicted", stages.ADJUDICATION)
        move(unit, "reopened", stages.QUEUED)
    permit = permit_of(ann, task)
    units = in_own_queues(permit).queued()
    assert waiting(ann, task) == units.count() == len(units.exclude(beyond([permit])))
    assert units.count() == (3 if adjudicates else 5)


# --- the lot of gold answers


def let_run_out(ann, task):
    attacks.run_out(take(ann, task))


def give_back(ann, task):
    release(ann, take(ann, task).pk)


def take_back(ann, task):
    answer(ann, task)
    undo(ann, task)
    give_back(ann, task)


@pytest.mark.parametrize("trick", [give_back, let_run_out, take_back])
def test_the_lot_goes_on_by_one_with_each_unit_that_it_gives_whatever_becomes_of_that(task, person, trick):
    ann = person("ann", "en")
    for number in range(12):
        answer(ann, task) if number % 3 else trick(ann, task)
    by_lot = Lease.objects.filter(annotator=ann, turn__isnull=False).order_by("pk")
    rows = list(by_lot.values_list("turn", "unit__honeypot"))
    assert [given for (given, *_), _ in rows] == list(range(len(rows)))
    met = 0
    for (_, known, size), was_pot in rows:
        assert (known, size) == (met, 3)
        met += was_pot
    blocks = [[was_pot for _, was_pot in rows][start : start + 3] for start in range(0, len(rows) - 2, 3)]
    assert [sum(block) for block in blocks] == [1] * len(blocks)
