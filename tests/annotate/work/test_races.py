"""Many people at once, in threads with their own connections.

Nothing that was answered may be lost, nothing may be labelled more often than asked, and nobody may be told of a lock.
"""

import random
import threading
import time
from collections import Counter
from datetime import timedelta
from operator import itemgetter

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from annotate.core import stages
from annotate.core.aggregation.answer_table import majority
from annotate.core.refusals import AlreadyAnswered, LeaseExpired, NothingToUndo, Refusal, TooLateToUndo, WrongStage
from annotate.kinds import Answer
from annotate.models import Judgment, Lease, Unit
from annotate.work import answer_changes, assignment, eligible, judgments
from annotate.work.answer_changes import undo
from annotate.work.assignment import free_place, lease_locked
from annotate.work.judgments import judge, skip
from annotate.work.permit import permit_of
from annotate.work.queue import release, take
from tests.annotate.conftest import DISPUTED
from tests.together import HANGS, at_once, until_others_wait_or_end

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]

PEOPLE = 32
GERMAN = Answer("de")


class Reader:
    """An annotator at work, with a record of acknowledged answers and of refusals."""

    def __init__(self, annotator, task, seed):
        self.annotator, self.task = annotator, task
        self.random = random.Random(seed)
        self.acknowledged: dict[int, str] = {}
        self.taken_back: set[int] = set()
        self.counts = Counter()

    def work(self):
        """Work until this person gets no more units, even after units come back from others."""
        tries = 20
        while tries and self.task.units.filter(stage=stages.QUEUED).exists():
            lease = take(self.annotator, self.task)
            if lease is None:
                tries -= 1
                time.sleep(0.05)
            else:
                tries = 20
                self.one_unit(lease.pk)

    def one_unit(self, lease):
        way = self.random.random()
        if way < 0.06:
            release(self.annotator, lease)
            self.counts["released"] += 1
        elif way < 0.14:
            self.submit(lease, None)
        elif way < 0.22:
            self.submit_twice(lease, self.answer(), self.answer())
        elif way < 0.30:
            answer = self.answer()
            self.submit_twice(lease, answer, answer)
        else:
            if way < 0.40:
                self.counts["expired"] += 1
                Lease.objects.filter(pk=lease).update(expires_at=timezone.now() - timedelta(seconds=1))
                time.sleep(self.random.random() / 50)
            self.submit(lease, self.answer())
        if self.random.random() < 0.12:
            self.undo()

    def answer(self):
        return Answer(self.random.choice(["de", "de", "de", "en", "fr"]))

    def say(self, lease, answer):
        try:
            return judge(self.annotator, lease, answer) if answer else skip(self.annotator, lease)
        except (LeaseExpired, WrongStage, AlreadyAnswered) as refusal:
            return refusal

    def note(self, reply):
        if isinstance(reply, Refusal):
            self.counts[reply.code] += 1
        elif isinstance(reply, Judgment):
            self.acknowledged[reply.pk] = reply.label
            self.counts[reply.kind] += 1
        else:
            raise reply

    def submit(self, lease, answer):
        self.note(self.say(lease, answer))

    def submit_twice(self, lease, one, other):
        replies = at_once(lambda: self.say(lease, one), lambda: self.say(lease, other))
        for reply in replies:
            self.note(reply)
        judgments = {reply.pk for reply in replies if isinstance(reply, Judgment)}
        assert len(judgments) <= 1
        if judgments and one != other:
            assert {type(reply) for reply in replies} == {Judgment, AlreadyAnswered}
        self.counts["twice"] += 1

    def undo(self):
        judgment = answer_changes.last_judgment(self.annotator, self.task)
        if judgment is None:
            return
        try:
            undo(self.annotator, self.task, judgment.pk)
        except (TooLateToUndo, NothingToUndo) as refusal:
            self.counts[refusal.code] += 1
        else:
            self.taken_back.add(judgment.pk)
            self.counts["undone"] += 1


def held_at_once(unit):
    """Return the largest number of people who held the unit at the same time, according to its leases."""
    moments = []
    for lease in unit.leases.select_related("judgment"):
        is_answer = lease.outcome in ("answered", "undone") and lease.judgment.kind == Judgment.ANSWER
        runs_until = min(lease.expires_at, lease.closed_at or lease.expires_at)
        held = [(lease.opened_at, runs_until)]
        if is_answer:
            # The answer keeps the place; one that came late took it only then.
            held.append((lease.closed_at, lease.judgment.voided_at))
            if lease.closed_at <= lease.expires_at:
                held = [(lease.opened_at, lease.judgment.voided_at)]
        for start, end in held:
            if end is None or start < end:
                moments.append((start, 1))
                if end is not None:
                    moments.append((end, -1))
    most = now = 0
    for _, change in sorted(moments, key=itemgetter(0, 1)):
        now += change
        most = max(most, now)
    return most


def check_unit(unit, task):
    live = [judgment for judgment in unit.judgments.all() if judgment.voided_at is None]
    answers = [judgment.label for judgment in live if judgment.kind == Judgment.ANSWER]
    assert len(answers) <= unit.redundancy
    # An answer in another language asks a second person, unless it is undone.
    was_named = any(transition.event == "named" for transition in unit.transitions.all())
    assert held_at_once(unit) <= unit.redundancy + was_named
    if unit.stage == stages.LABELLED:
        assert (len(answers), majority(answers)) == (unit.redundancy, unit.label)
    else:
        assert unit.stage == stages.ADJUDICATION
        skips = [judgment for judgment in live if judgment.kind == Judgment.SKIP]
        conflict = len(answers) == unit.redundancy and majority(answers) is None
        # An answer may name another queue's language without a confirmation there.
        named = {code for code in answers if code != unit.visited[0]}
        assert conflict or named or (unit.round >= task.rounds and len(skips) >= task.skip_limit)
    stage = stages.NEW
    for transition in unit.transitions.all():
        assert transition.from_stage == stage
        stage = transition.to_stage
    last = (transition.to_stage, transition.round, transition.language, transition.label)
    assert last == (unit.stage, unit.round, unit.language, unit.label)


@pytest.mark.parametrize(("redundancy", "units"), [pytest.param(1, 64, marks=pytest.mark.slow), (3, 32)])
def test_thirty_two_people_at_once_lose_nothing_and_label_nothing_twice(make_task, person, redundancy, units):
    task = make_task([DISPUTED] * units, redundancy=redundancy, skip_limit=2)
    people = [person(f"reader{number}", "de en" if number % 2 else "de") for number in range(PEOPLE)]
    readers = [Reader(annotator, task, f"{redundancy} {annotator}") for annotator in people]
    end = time.monotonic() + HANGS
    # The last person may undo an answer and name another language after its readers have gone, so they come back.
    while task.units.filter(stage=stages.QUEUED).exists():
        assert time.monotonic() < end, "the queue does not end"
        assert at_once(*(reader.work for reader in readers)) == [None] * PEOPLE

    for unit in task.units.prefetch_related("judgments", "transitions"):
        check_unit(unit, task)
    stored = {judgment.pk: judgment for judgment in Judgment.objects.all()}
    acknowledged = {pk: label for reader in readers for pk, label in reader.acknowledged.items()}
    taken_back = set().union(*(reader.taken_back for reader in readers))
    assert {pk: judgment.label for pk, judgment in stored.items()} == acknowledged
    assert {pk for pk, judgment in stored.items() if judgment.voided_at} == taken_back
    # Every kind of action must have happened.
    counts = sum((reader.counts for reader in readers), Counter())
    assert min(counts[way] for way in ("answer", "skip", "released", "expired", "twice", "undone")) > 0, counts


def slow_answers(monkeypatch):
    """Make each stored answer wait until all others wait or end. Return an event that is set once one is stored."""
    stored, real = threading.Event(), judgments.decide_or_route

    def slow(*args, **options):
        stored.set()
        until_others_wait_or_end()
        real(*args, **options)

    monkeypatch.setattr(judgments, "decide_or_route", slow)
    return stored


@pytest.mark.parametrize("stale", [False, True])
def test_a_place_counted_before_the_unit_was_locked_is_refused_by_the_database(make_task, person, monkeypatch, stale):
    """lease_locked counts again after locking; if it did not, the database would refuse the lease."""
    task = make_task([DISPUTED])
    people = [person(f"reader{number}", "de") for number in range(8)]
    all_counted = threading.Barrier(len(people), timeout=HANGS)
    thread = threading.local()
    if stale:
        monkeypatch.setattr(assignment, "free_place", lambda unit, leases, **options: thread.place)

    def lease(annotator):
        thread.place = free_place(task.units.get(), [])
        all_counted.wait()
        with transaction.atomic():
            return lease_locked(Unit.objects.select_for_update().get(task=task), permit_of(annotator, task))

    results = at_once(*(lambda annotator=annotator: lease(annotator) for annotator in people))
    kinds = Counter(type(result) for result in results)
    assert kinds == {Lease: 1, IntegrityError if stale else type(None): len(people) - 1}
    assert Lease.objects.count() == 1


@pytest.mark.postgres_only
def test_the_statement_that_locks_a_unit_may_count_its_leases_as_they_were_before(make_task, person):
    """The reason for the second count: PostgreSQL rechecks only the row that it waited for."""
    task = make_task([DISPUTED])
    ann, bea = person("ann", "de"), person("bea", "de")
    locked, waiting = threading.Event(), threading.Event()

    def first():
        with transaction.atomic():
            unit = Unit.objects.select_for_update().get(task=task)
            locked.set()
            waiting.wait(HANGS)
            until_others_wait_or_end()
            return lease_locked(unit, permit_of(ann, task))

    def second():
        locked.wait(HANGS)
        with transaction.atomic():
            waiting.set()
            units = eligible.with_free_place(eligible.waiting_units(permit_of(bea, task)))
            unit = units.select_for_update(of=("self",)).first()
            return unit.held, free_place(unit, list(unit.leases.all()))

    lease, (counted, place) = at_once(first, second)
    assert (lease.place, counted, place) == (1, 0, None)


@pytest.mark.postgres_only
def test_a_request_while_the_only_unit_is_locked_waits_for_it(make_task, person, monkeypatch):
    task = make_task([DISPUTED], redundancy=2)
    ann, bea = person("ann", "de"), person("bea", "de")
    lease = take(ann, task)
    stored = slow_answers(monkeypatch)

    def ask():
        stored.wait(HANGS)
        return take(bea, task)

    judgment, next_lease = at_once(lambda: judge(ann, lease.pk, GERMAN), ask)
    assert isinstance(judgment, Judgment)
    assert next_lease is not None


def test_an_answer_and_an_undo_of_one_person_at_once_both_come_through(make_task, person, monkeypatch):
    """As from two tabs, or from a fast double click."""
    task, ann = make_task([DISPUTED] * 2), person("ann", "de")
    first = judge(ann, take(ann, task).pk, GERMAN)
    lease = take(ann, task)
    answered = slow_answers(monkeypatch)

    def take_back():
        answered.wait(HANGS)
        return undo(ann, task, first.pk)

    judgment, reopened = at_once(lambda: judge(ann, lease.pk, GERMAN), take_back)
    assert (type(judgment), type(reopened)) == (Judgment, Lease), (judgment, reopened)
    assert reopened.unit == first.unit
    assert task.units.get(pk=lease.unit_id).stage == stages.LABELLED


@pytest.mark.postgres_only
def test_two_people_who_come_back_and_are_given_each_others_units_do_not_block_one_another(
    make_task, person, monkeypatch
):
    task = make_task([DISPUTED] * 2)
    ann, bea = person("ann", "de"), person("bea", "de")
    for annotator in (ann, bea):
        take(annotator, task)
    Lease.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    bea_has_anns, both_have_locked = threading.Event(), threading.Barrier(2, timeout=HANGS)
    real = assignment.free_place

    def slow(unit, leases, **options):
        bea_has_anns.set()
        both_have_locked.wait()
        return real(unit, leases, **options)

    monkeypatch.setattr(assignment, "free_place", slow)

    def second():
        bea_has_anns.wait(HANGS)
        return take(ann, task)

    leases = at_once(lambda: take(bea, task), second)
    assert [type(lease) for lease in leases] == [Lease, Lease], leases
    assert [lease.unit.position for lease in leases] == [1, 2]
    assert Lease.objects.filter(closed_at=None).count() == 2


@pytest.mark.sqlite_only
def test_writers_queue_on_the_file_lock_and_never_on_sqlite(make_task, person, monkeypatch):
    """So nobody can be told that the database is locked, even if SQLite did not wait at all."""
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "timeout", 0)
    task = make_task([DISPUTED] * 64)
    people = [person(f"reader{number}", "de") for number in range(PEOPLE)]

    def work(annotator):
        return [judge(annotator, take(annotator, task).pk, GERMAN).label for _ in range(2)]

    assert at_once(*(lambda annotator=annotator: work(annotator) for annotator in people)) == [["de"] * 2] * PEOPLE
