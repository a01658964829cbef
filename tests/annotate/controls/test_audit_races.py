"""The last audited posts of a language, finished by several people at once, each with their own connection."""

import threading

import pytest

from annotate.controls import agreement_audit as contesting
from annotate.core import stages
from annotate.kinds import Answer
from annotate.models import Judgment, Transition
from annotate.work.adjudication import settle
from annotate.work.judgments import judge
from annotate.work.queue import take
from annotate.work.task_creation import Opened, extend_task
from tests.annotate.conftest import AGREED, extend_by
from tests.together import HANGS, at_once, until, until_others_wait_or_end, waiting_for_locks

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres_only, pytest.mark.both_databases]

LEFT = 30
AUDITED = 4
WRONG = 4  # audited posts that are wrong, found before the others are read


@pytest.fixture
def audited(make_task, person):
    """A task whose language fails its audit whatever the last AUDITED answers are, because others were wrong."""
    entries = [AGREED] * (LEFT + AUDITED + WRONG)
    task = make_task(entries, audit_least=AUDITED + WRONG, audit_recheck=0, audit_limit=0.01)
    doubter, arbiter = person("doubter", "de"), person("arbiter", adjudicates=True)
    for _ in range(WRONG):
        unit = judge(doubter, take(doubter, task).pk, Answer("en")).unit_id
        settle(arbiter, unit, Answer("en", "I read it"))
    return task


CHECK_LIMIT = contesting.check_limit


@pytest.fixture
def checks(monkeypatch):
    """All threads reach the check of the limit together, after each has moved its own unit."""
    together, looked, contested = threading.Barrier(AUDITED, timeout=HANGS), [], []
    real_contest = contesting.contest

    def check(unit):
        together.wait()
        CHECK_LIMIT(unit)
        looked.append(unit)
        # No thread commits before all have counted or wait for one that has.
        until(lambda: len(looked) + waiting_for_locks() >= AUDITED)

    def contest(task, label):
        contested.append(real_contest(task, label))
        return contested[-1]

    monkeypatch.setattr(contesting, "check_limit", check)
    monkeypatch.setattr(contesting, "contest", contest)
    return contested


def assert_contested_once(task, contested):
    assert contested == [LEFT]
    assert not task.units.filter(stage=stages.AGREED).exists()
    moves = Transition.objects.filter(event="contested")
    assert moves.count() == moves.values("unit").distinct().count() == LEFT
    assert set(moves.values_list("unit__stage", "unit__language", "unit__round")) == {(stages.QUEUED, "de", 1)}
    assert task.units.filter(audited=True, stage=stages.LABELLED).count() == AUDITED + WRONG


def test_of_readers_who_finish_the_audit_of_a_language_at_once_exactly_one_sends_the_rest_on(audited, person, checks):
    people = [person(f"reader{number}", "de") for number in range(AUDITED)]
    leases = [take(annotator, audited) for annotator in people]
    results = at_once(
        *(lambda pair=pair: judge(pair[0], pair[1].pk, Answer("de")) for pair in zip(people, leases, strict=True))
    )
    assert [type(result) for result in results] == [Judgment] * AUDITED, results
    assert_contested_once(audited, checks)


def test_of_adjudicators_who_finish_the_audit_of_a_language_at_once_exactly_one_sends_the_rest_on(
    audited, person, monkeypatch, checks
):
    reader = person("reader", "de")
    with monkeypatch.context() as patched:
        patched.setattr(contesting, "check_limit", CHECK_LIMIT)
        units = [judge(reader, take(reader, audited).pk, Answer("en")).unit_id for _ in range(AUDITED)]
    people = [person(f"judge{number}", adjudicates=True) for number in range(AUDITED)]
    results = at_once(
        *(
            lambda pair=pair: settle(pair[0], pair[1], Answer("en", "I read it"))
            for pair in zip(people, units, strict=True)
        )
    )
    assert [type(result) for result in results] == [Judgment] * AUDITED, results
    assert_contested_once(audited, checks)


def test_a_manager_who_contests_while_the_last_audit_is_finished_sends_nothing_twice(audited, person):
    people = [person(f"reader{number}", "de") for number in range(AUDITED)]
    *others, last = people
    for annotator in others:
        judge(annotator, take(annotator, audited).pk, Answer("de"))
    lease = take(last, audited)
    results = at_once(
        lambda: judge(last, lease.pk, Answer("de")),
        *(lambda: contesting.contest_all(audited) for _ in range(3)),
    )
    judgment, *sent = results
    assert isinstance(judgment, Judgment), judgment
    assert all(isinstance(counts, dict) for counts in sent), sent
    assert not audited.units.filter(stage=stages.AGREED).exists()
    assert Transition.objects.filter(event="contested").count() == LEFT


def test_an_extension_and_the_last_audit_at_once_leave_nothing_behind_and_wait_for_each_other_in_one_order(
    audited, person, monkeypatch
):
    """The added items include copies of posts that the reader's answer moves."""
    ann = person("ann", "de")
    for _ in range(AUDITED - 1):
        judge(ann, take(ann, audited).pk, Answer("de"))
    lease = take(ann, audited)
    texts = list(audited.units.values_list("item__text", flat=True))
    adding = threading.Event()

    def before():
        adding.set()
        until_others_wait_or_end()  # the answer holds its unit's lock and waits

    added = [{"votes": AGREED, "text": text} for text in texts] + [{"votes": AGREED}] * 5
    extend_by(monkeypatch, audited, added, before)

    def answer():
        adding.wait(HANGS)
        return judge(ann, lease.pk, Answer("de"))

    results = at_once(lambda: extend_task(audited, 10**6), answer)
    assert [type(result) for result in results] == [Opened, Judgment], results
    assert not audited.units.filter(stage=stages.AGREED).exists()
    assert Transition.objects.filter(event="contested").count() == LEFT + 5
