"""Pausing people and letting them go on. test_pausing_rule.py tests what the rule does to whom."""

import pytest

from annotate.core.refusals import InvalidAnswer, Paused
from annotate.models import Judgment, Pause
from annotate.work.answer_changes import undo
from annotate.work.interventions import lift, pause, void
from annotate.work.judgments import judge, skip
from annotate.work.permit import running
from annotate.work.queue import open_lease, take
from tests.annotate.pausing.answering import KNOWN, WATCHED, YES, asked, live, work, wrong

pytestmark = pytest.mark.both_databases


def test_who_fails_gold_answers_is_paused_by_the_one_that_makes_it_certain(watched, person):
    ann = person("ann", "en")
    made = work(ann, watched, wrong)
    assert asked(made) == 3
    assert made[-1].unit.honeypot
    found = running(ann, watched)
    assert (found.right, found.asked, found.by, found.reason) == (0, 3, None, "")
    assert take(ann, watched) is None


def test_who_answers_them_rightly_is_never_paused(watched, person):
    ann = person("ann", "en")
    made = work(ann, watched)
    assert asked(made) == 8
    assert not Pause.objects.exists()


def test_a_skipped_gold_answer_counts_for_nothing(watched, person):
    ann = person("ann", "en")
    while lease := take(ann, watched):
        skip(ann, lease.pk) if lease.unit.honeypot else judge(ann, lease.pk, YES)
    assert Judgment.objects.filter(kind="skip", unit__honeypot=True).count() > 3
    assert not Pause.objects.exists()


def test_one_persons_pause_is_no_other_persons_and_holds_in_that_task_only(make_records_task, watched, person):
    ann, bea = person("ann", "en"), person("bea", "en")
    other = make_records_task(count=2, name="other")
    work(ann, watched, wrong)
    assert take(ann, other)
    assert len(work(bea, watched)) == 20


def test_a_task_that_asks_for_nothing_pauses_nobody(make_records_task, person):
    task = make_records_task(count=12, gold=KNOWN, **WATCHED, pause_below=0)
    work(person("ann", "en"), task, wrong)
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


@pytest.mark.parametrize("reason", ["", "   "])
def test_a_manager_says_why(watched, person, manager, reason):
    for action in (pause, void):
        with pytest.raises(InvalidAnswer, match="why"):
            action(person(f"ann {action.__name__}", "en"), watched, by=manager, reason=reason)
    assert not Pause.objects.exists()


def test_who_is_paused_already_stays_so_and_the_reason_is_noted_once(watched, person, manager):
    ann = person("ann", "en")
    work(ann, watched, wrong)
    rule = running(ann, watched)
    for _ in range(2):
        assert pause(ann, watched, by=manager, reason="looked at it") == rule
    found = Pause.objects.get()
    assert (found.by, found.asked, found.reason) == (None, 3, "looked at it")


def test_no_reason_is_lost_though_there_are_several(three, manager):
    task, ann, *_ = three
    for reason in ("x" * 200, "spam"):
        pause(ann, task, by=manager, reason=reason)
    void(ann, task, by=manager, reason="proved to be a bot")
    assert Pause.objects.get().reason == f"{'x' * 200}; spam; proved to be a bot"


@pytest.mark.parametrize(("reason", "said"), [("a\x00b", "NUL"), ("x" * 201, "longer than 200")])
def test_a_reason_that_cannot_be_stored_is_refused(three, manager, client, reason, said):
    task, ann, *_ = three
    for action in (pause, void):
        with pytest.raises(InvalidAnswer, match=said):
            action(ann, task, by=manager, reason=reason)
    client.force_login(manager)
    for page in ("void", "pause"):
        posted = client.post(f"/manage/tasks/{task.name}/people/{ann.pk}/{page}/", {"reason": reason})
        assert (posted.status_code, said in posted.content.decode()) == (400, True)
    assert live(ann).count() == 6


# --- lifted


def test_after_a_pause_is_lifted_the_count_starts_anew(watched, person, manager):
    ann = person("ann", "en")
    before = work(ann, watched, wrong)
    lift(running(ann, watched), by=manager)
    assert running(ann, watched) is None
    after = work(ann, watched, wrong)
    assert asked(after) == 3
    assert len(before) < len({judgment.unit_id for judgment in before + after}) == len(before) + len(after)
    newest, first = Pause.objects.all()
    assert [(each.right, each.asked) for each in (newest, first)] == [(0, 3), (0, 3)]
    assert first.lifted_by == manager


def test_after_a_pause_is_lifted_right_answers_let_one_work_to_the_end(watched, person, manager):
    ann = person("ann", "en")
    work(ann, watched, wrong)
    lift(running(ann, watched), by=manager)
    assert asked(work(ann, watched)) >= 5
    assert running(ann, watched) is None


def test_lifted_twice_a_pause_names_who_lifted_it_first(watched, person, manager, django_user_model):
    ann = person("ann", "en")
    found = pause(ann, watched, by=manager, reason="a break")
    for by in (manager, django_user_model.objects.create_superuser("other")):
        lift(found, by=by)
    found.refresh_from_db()
    assert found.lifted_by == manager
