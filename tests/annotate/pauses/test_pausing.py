"""Pausing people and letting them go on. test_pausing_rule.py tests what the rule does to whom."""

import pytest

from annotate.core.refusals import InvalidAnswer, Paused
from annotate.models import Judgment, Pause
from annotate.work.answer_changes import undo
from annotate.work.interventions import lift, pause, void
from annotate.work.judgments import judge, skip
from annotate.work.permit import running
from annotate.work.queue import open_lease, take
from tests.annotate.pauses.answering import KNOWN, WATCHED, YES, asked, live, work, wrong


def test_who_fails_gold_answers_is_paused_by_the_one_that_makes_it_certain(make_records_task, watched, person):
    ann = person("ann", "en")
    made = work(ann, watched, wrong)
    assert asked(made) == 3
    assert made[-1].unit.honeypot
    found = running(ann, watched)
    assert (found.right, found.asked, found.by, found.reason) == (0, 3, None, "")
    assert take(ann, watched) is None
    # in that task only, and nobody else
    assert take(ann, make_records_task(count=2, name="other"))
    assert len(work(person("bea", "en"), watched)) == 20


def test_right_answers_skips_and_a_task_that_asks_for_nothing_pause_nobody(make_records_task, watched, person):
    made = work(person("ann", "en"), watched)
    assert asked(made) == 8
    bea = person("bea", "en")
    while lease := take(bea, watched):
        skip(bea, lease.pk) if lease.unit.honeypot else judge(bea, lease.pk, YES)
    assert Judgment.objects.filter(kind="skip", unit__honeypot=True).count() > 3
    other = make_records_task(count=12, gold=KNOWN, name="other", **WATCHED, pause_below=0)
    work(person("cem", "en"), other, wrong)
    assert not Pause.objects.exists()


# --- by a manager


def test_a_manager_pauses_at_once_and_the_open_unit_goes_back(watched, person, manager):
    ann = person("ann", "en")
    lease = take(ann, watched)
    found = pause(ann, watched, by=manager, reason="  asks to stop ")
    assert (found.by, found.reason, found.right, found.asked) == (manager, "asks to stop", 0, 0)
    lease.refresh_from_db()
    assert (lease.outcome, lease.place) == ("released", None)
    assert open_lease(ann, watched) is None
    with pytest.raises(Paused):
        judge(ann, lease.pk, YES)
    with pytest.raises(Paused):
        undo(ann, watched)


def test_who_is_paused_already_stays_so_and_each_reason_is_noted_once(watched, person, manager):
    ann = person("ann", "en")
    work(ann, watched, wrong)
    rule = running(ann, watched)
    for reason in ("looked at it", "looked at it", "x" * 200):
        assert pause(ann, watched, by=manager, reason=reason) == rule
    void(ann, watched, by=manager, reason="proved to be a bot")
    found = Pause.objects.get()
    assert (found.by, found.asked) == (None, 3)
    assert found.reason == f"looked at it; {'x' * 200}; proved to be a bot"


def test_a_reason_that_says_nothing_or_cannot_be_stored_is_refused(three, manager, client):
    task, ann, *_ = three
    client.force_login(manager)
    for reason, sentence in (
        ("", "Enter a short reason"),
        ("   ", "Enter a short reason"),
        ("a\x00b", "NUL"),
        ("x" * 201, "longer than 200"),
    ):
        for action in (pause, void):
            with pytest.raises(InvalidAnswer, match=sentence):
                action(ann, task, by=manager, reason=reason)
            address = f"/manage/tasks/{task.name}/people/{ann.pk}/{action.__name__}/"
            posted = client.post(address, {"reason": reason})
            assert (posted.status_code, sentence in posted.text) == (400, True)
    assert live(ann).count() == 6
    assert not Pause.objects.exists()


# --- lifted


def test_after_a_pause_is_lifted_the_count_starts_anew(watched, person, manager):
    ann = person("ann", "en")
    before = work(ann, watched, wrong)
    bea = person("bea", "en")
    work(bea, watched, wrong)
    lift(running(bea, watched), by=manager)
    assert asked(work(bea, watched)) >= 5  # right answers let one work to the end
    assert running(bea, watched) is None
    lift(running(ann, watched), by=manager)
    assert running(ann, watched) is None
    after = work(ann, watched, wrong)
    assert asked(after) == 3
    assert len(before) < len({judgment.unit_id for judgment in before + after}) == len(before) + len(after)
    newest, first = Pause.objects.filter(annotator=ann)
    assert [(each.right, each.asked) for each in (newest, first)] == [(0, 3), (0, 3)]
    assert first.lifted_by == manager


def test_lifted_twice_a_pause_names_who_lifted_it_first(watched, person, manager, django_user_model):
    ann = person("ann", "en")
    found = pause(ann, watched, by=manager, reason="a break")
    for by in (manager, django_user_model.objects.create_superuser("other")):
        lift(found, by=by)
    found.refresh_from_db()
    assert found.lifted_by == manager
