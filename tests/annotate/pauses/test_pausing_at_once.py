"""Pausing and voiding while others are at work."""

import threading
from datetime import timedelta

import pytest
from django.utils import timezone

from annotate.core import stages
from annotate.core.refusals import Paused
from annotate.kinds import Answer
from annotate.models import Judgment, Lease, Pause, Transition, Unit
from annotate.work import interventions, queue
from annotate.work.interventions import VoidResult, void
from annotate.work.judgments import judge
from annotate.work.permit import current_pause
from annotate.work.queue import take
from tests.annotate.conftest import DISPUTED
from tests.annotate.pauses.conftest import YES, live, work, wrong
from tests.together import HANGS, at_once, until, until_others_wait_or_end, waiting_for_locks

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


def test_an_answer_in_flight_is_either_voided_or_refused(make_records_task, person, manager):
    task = make_records_task(count=12, redundancy=1)
    outcomes = set()
    for number in range(12):
        ann = person(f"ann{number}", "en")
        lease = take(ann, task)
        first, second = lambda: judge(ann, lease.pk, YES), lambda: void(ann, task, by=manager, reason="sleeps")  # noqa: B023
        answer, done = at_once(*((first, second) if number % 2 else (second, first)))[:: 1 if number % 2 else -1]
        assert not live(ann).exists()
        if isinstance(answer, Judgment):
            assert done == VoidResult(1, 1)
        else:
            assert isinstance(answer, Paused)
            assert done == VoidResult(0, 0)
        outcomes.add(type(answer))
        unit = Unit.objects.get(pk=lease.unit_id)
        assert (unit.stage, unit.label) == ("QUEUED", "")
        assert not unit.leases.filter(place__isnull=False).exists()


def test_voiding_and_a_sheet_that_takes_the_same_posts_do_not_wait_for_one_another(
    make_task, person, manager, monkeypatch
):
    """Ann has answered one post and let the other run out; they are voided while bea takes both on a sheet."""
    task, ann, bea = make_task([DISPUTED] * 2, asked="de", redundancy=2), person("ann", "de"), person("bea", "de")
    first, second = queue.take_sheet(ann, task)
    judge(ann, first.pk, Answer("de"))
    Lease.objects.filter(pk=second.pk).update(expires_at=timezone.now() - timedelta(minutes=1))
    bea_has_units, ann_has_leases = threading.Event(), threading.Event()
    close, lease = queue.close_open, queue.lease_locked

    def closed(annotator, *rest):
        close(annotator, *rest)
        if annotator == ann:
            ann_has_leases.set()
            until_others_wait_or_end()

    def leased(unit, permit, **how):
        bea_has_units.set()
        until(lambda: ann_has_leases.is_set() or waiting_for_locks())
        return lease(unit, permit, **how)

    monkeypatch.setattr(interventions, "close_open", closed)
    monkeypatch.setattr(queue, "lease_locked", leased)

    def voiding():
        bea_has_units.wait(HANGS)
        return void(ann, task, by=manager, reason="sleeps")

    taken, voided = at_once(lambda: queue.take_sheet(bea, task), voiding)
    assert (len(taken), voided) == (2, VoidResult(1, 0))


def test_two_managers_who_void_at_once_void_once(three, manager, django_user_model):
    task, ann, *_ = three
    other = django_user_model.objects.create_superuser("other")
    done = at_once(*(lambda by=by: void(ann, task, by=by, reason="sleeps") for by in (manager, other)))
    assert sorted(done) == [VoidResult(0, 0), VoidResult(6, 6)]
    assert Transition.objects.filter(event="reopened").count() == 6
    assert Pause.objects.count() == 1


def test_while_others_are_at_work_voiding_loses_nothing_and_asks_nobody_too_many(make_records_task, person, manager):
    task = make_records_task(count=20, redundancy=3)
    people = [person(f"p{number}", "en") for number in range(5)]
    spam = people[0]
    work(spam, task, units=14)

    def at_work(annotator):
        while task.units.filter(stage=stages.QUEUED).exists():
            made = work(annotator, task)
            if not made:
                return

    def voiding():
        return void(spam, task, by=manager, reason="sleeps")

    results = at_once(voiding, *(lambda who=who: at_work(who) for who in people[1:]))
    assert isinstance(results[0], VoidResult)
    assert results[1:] == [None] * 4
    for annotator in people[1:]:
        work(annotator, task)
    assert not live(spam).exists()
    for unit in task.units.all():
        assert unit.stage == stages.LABELLED
        assert unit.judgments.filter(voided_at=None).count() == 3
        assert sorted(unit.leases.filter(place__isnull=False).values_list("place", flat=True)) == [1, 2, 3]


def test_the_rule_pauses_once_though_two_tabs_answer(watched, person):
    ann = person("ann", "en")
    for _ in range(30):
        lease = take(ann, watched)
        if lease is None:
            break
        at_once(*[lambda: judge(ann, lease.pk, wrong(lease.unit))] * 2)  # noqa: B023
    assert Pause.objects.count() == 1
    assert current_pause(ann, watched).asked == 3
