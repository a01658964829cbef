from datetime import timedelta

import pytest
from django.utils import timezone

from annotate.core import stages
from annotate.core.refusals import LeaseExpired, NotFound, WrongStage
from annotate.kinds import Answer
from annotate.models import Lease, Pause
from annotate.work.judgments import judge, skip
from annotate.work.queue import open_lease, release, take, take_sheet
from tests.annotate.acts import why_empty
from tests.annotate.conftest import AGREED, DISPUTED

pytestmark = pytest.mark.both_databases


GERMAN, ENGLISH = Answer("de"), Answer("en")


def expire(lease):
    """As if the annotator had gone away: the lease ran out a second ago."""
    Lease.objects.filter(pk=lease.pk).update(expires_at=timezone.now() - timedelta(seconds=1))


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
    other = make_task([DISPUTED], name="other")  # where the same person can have a unit open besides
    assert [take(person, of).unit.task for person, of in ((ann, other), (bea, task))] == [other, task]


# --- what is given back, and what runs out


def test_a_released_unit_goes_to_the_next_who_asks_and_nobody_releases_one_of_somebody_else(make_task, readers):
    task, (ann, bea) = make_task([DISPUTED] * 2), readers("ann bea")
    lease = take(ann, task)
    with pytest.raises(NotFound, match="You do not have this item"):
        release(bea, lease.pk)
    assert as_stored(lease) == ("", 1)
    release(ann, lease.pk)
    assert as_stored(lease) == ("released", None)
    assert take(bea, task).unit == lease.unit


def test_releasing_twice_or_after_expiry_or_after_the_answer_changes_nothing(make_task, readers):
    task, (ann, bea) = make_task([DISPUTED] * 3), readers("ann bea")
    first = take(ann, task)
    release(ann, first.pk)
    release(ann, first.pk)
    second = take(ann, task)
    expire(second)
    judge(bea, take(bea, task).pk, GERMAN)
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
    """A skip needs no place, and spares the reader the same post again."""
    task, (ann, bea, _) = make_task([DISPUTED], skip_limit=2), readers("ann bea cem")
    lost = take(ann, task)
    expire(lost)
    lease = take(bea, task)
    skip(ann, lost.pk)
    assert as_stored(lease) == ("", 1)
    assert take(ann, task) is None


@pytest.mark.parametrize("let_go", [expire, lambda lease: release(lease.annotator, lease.pk)])
def test_what_a_person_let_go_comes_back_to_them_after_others_or_when_nothing_else_is_left(make_task, person, let_go):
    task, ann = make_task([DISPUTED] * 2), person("ann", "de")
    lost = take(ann, task)
    let_go(lost)
    other = take(ann, task)
    assert other.unit != lost.unit
    assert as_stored(lost)[1] is None
    judge(ann, other.pk, GERMAN)
    assert take(ann, task).unit == lost.unit


def test_an_answer_from_the_tab_of_the_first_lease_counts_for_the_second(make_task, person):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    old_tab = take(ann, task)
    expire(old_tab)
    new_tab = take(ann, task)
    first = judge(ann, old_tab.pk, GERMAN)
    assert first.lease == new_tab
    assert judge(ann, new_tab.pk, GERMAN) == first == judge(ann, old_tab.pk, GERMAN)


def test_leases_left_behind_are_closed_when_their_holder_comes_back(make_task, readers):
    """Also where the unit has gone on without them."""
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


def lose_language(ann, task):
    ann.languages.filter(language="de").delete()


def lose_pause(ann, task):
    Pause.objects.create(task=task, annotator=ann, at=timezone.now(), right=0, asked=0)


@pytest.mark.parametrize("lose", [lose_language, lose_pause])
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
