"""A clock that is set back while people are at work."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotate.kinds import Answer
from annotate.models import Consent, Judgment
from annotate.work.answer_changes import last_judgment, undo
from annotate.work.interventions import agree, withdraw
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from tests.annotate.conftest import DISPUTED

pytestmark = pytest.mark.django_db


@pytest.fixture
def set_back(monkeypatch):
    """Sets the clock back by an hour, again each time that it is called."""

    def move():
        now = timezone.now
        monkeypatch.setattr(timezone, "now", lambda: now() - timedelta(hours=1))

    return move


@pytest.mark.parametrize("act", [lambda *of: judge(*of, Answer("de"), 2.5), lambda *of: skip(*of, 2.5)])
def test_what_was_taken_before_the_clock_was_set_back_can_be_answered_and_skipped(make_task, ann, set_back, act):
    lease = take(ann, make_task([DISPUTED]))
    set_back()
    judgment = act(ann, lease.pk)
    assert judgment.answered_at == judgment.shown_at == lease.opened_at
    assert judgment.active_seconds == 0


def test_undo_takes_back_what_was_said_last_whatever_the_clock_said(make_task, ann, set_back):
    task = make_task([DISPUTED] * 3)
    first = judge(ann, take(ann, task).pk, Answer("de"))
    set_back()
    last = judge(ann, take(ann, task).pk, Answer("en"))
    assert last.answered_at < first.answered_at
    assert last_judgment(ann, task) == last
    undo(ann, task)
    assert list(Judgment.objects.live()) == [first]


def test_a_unit_that_is_held_stays_held_and_is_answered_once(make_task, ann, person, set_back):
    task = make_task([DISPUTED], rounds=1)
    lease = take(ann, task)
    set_back()
    assert take(ann, task) == lease
    assert take(person("bea", "de"), task) is None
    judge(ann, lease.pk, Answer("de"))
    assert judge(ann, lease.pk, Answer("de")) == Judgment.objects.get()


def test_who_agreed_can_withdraw_after_the_clock_was_set_back(make_records_task, person, set_back):
    task, ann = make_records_task("toxic_pairs", 1), person("bea", "en")
    agree(ann, task.name)
    set_back()
    withdraw(ann, task.name)
    consent = Consent.objects.get()
    assert consent.withdrawn_at == consent.at
