"""Who is paused, let go on, and whose answers are voided. What the rule does to whom is in test_pausing_rule.py."""

import threading
import time
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.utils import timezone

from annotate.core import stages
from annotate.core.refusals import AlreadyAnswered, InvalidAnswer, Paused
from annotate.kinds import Answer
from annotate.models import Annotator, Judgment, Lease, Pause, Task, Transition, Unit
from annotate.quality.pauses import running, score
from annotate.work import pausing, queue
from annotate.work.adjudication import settle
from annotate.work.judging import judge, skip, undo
from annotate.work.pausing import Voided, lift, pause, void, would_void
from annotate.work.permit import permit_of
from annotate.work.queue import open_lease, take
from annotate.work.tally import tally_of
from tests.annotate.conftest import DISPUTED
from tests.annotate.test_races import at_once

WATCHED = {"gold_share": 0.5, "pause_least": 3, "redundancy": 3}
KNOWN = {"queue": ["1", "0"] * 4}
YES, NO = Answer("1"), Answer("0")


def known(unit):
    return Answer(unit.known_answer) if unit.honeypot else YES


def wrong(unit):
    return Answer("0" if known(unit).label == "1" else "1")


def work(annotator, task, say=known, units=1000):
    """Answer until nothing is left, or so many. Returns the judgments."""
    made = []
    while len(made) < units and (lease := take(annotator, task)):
        made.append(judge(annotator, lease.pk, say(lease.unit)))
    return made


def asked(judgments):
    return sum(judgment.unit.honeypot for judgment in judgments)


def live(annotator):
    return Judgment.objects.filter(annotator=annotator, voided_at=None)


@pytest.fixture
def watched(make_records_task):
    return make_records_task(count=12, gold=KNOWN, **WATCHED)


# --- the rule


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


# --- voided


@pytest.fixture
def three(make_records_task, person):
    """A task of six units without gold answers, and three people who have answered all of it alike."""
    task = make_records_task(count=6, redundancy=3)
    people = [person(name, "en") for name in ("ann", "bea", "cem")]
    for annotator in people:
        work(annotator, task)
    assert set(task.units.values_list("stage", "label")) == {("LABELLED", "1")}
    return task, *people


def test_voiding_reopens_the_units_and_keeps_the_judgments(three, manager):
    task, ann, *_ = three
    assert void(ann, task, by=manager, reason="sleeps") == Voided(answers=6, reopened=6)
    assert set(task.units.values_list("stage", "label", "redundancy")) == {("QUEUED", "", 3)}
    voided = Judgment.objects.filter(annotator=ann)
    assert set(voided.values_list("kind", "label", "voided_by", "lease__outcome", "lease__place")) == {
        ("answer", "1", manager.pk, "voided", None)
    }
    assert set(Transition.objects.filter(event="reopened").values_list("from_stage", "to_stage", "by")) == {
        ("LABELLED", "QUEUED", manager.pk)
    }
    assert running(ann, task).reason == "sleeps"


def test_what_was_voided_is_labelled_again_by_one_person_more(three, person, manager):
    task, ann, *_ = three
    void(ann, task, by=manager, reason="sleeps")
    assert len(work(person("dan", "en"), task)) == 6
    assert set(task.units.values_list("stage", "label")) == {("LABELLED", "1")}
    assert Judgment.objects.filter(voided_at=None).count() == 18


def test_whoever_was_voided_never_gets_the_same_units_again(three, manager):
    task, ann, *_ = three
    void(ann, task, by=manager, reason="sleeps")
    lift(running(ann, task), by=manager)
    assert take(ann, task) is None


def test_a_tab_from_before_does_not_answer_a_voided_unit_again(three, manager):
    task, ann, *_ = three
    unit = task.units.first()
    now = timezone.now()
    old = Lease.objects.create(
        unit=unit, annotator=ann, round=1, queue="en", opened_at=now, expires_at=now, closed_at=now, outcome="expired"
    )
    void(ann, task, by=manager, reason="sleeps")
    lift(running(ann, task), by=manager)
    for answer in (YES, NO):
        with pytest.raises(AlreadyAnswered, match="set aside"):
            judge(ann, old.pk, answer)


def test_voiding_twice_finds_nothing_the_second_time(three, manager):
    task, ann, *_ = three
    void(ann, task, by=manager, reason="sleeps")
    at = list(Judgment.objects.filter(annotator=ann).values_list("voided_at", flat=True))
    assert void(ann, task, by=manager, reason="sleeps") == Voided(0, 0)
    assert list(Judgment.objects.filter(annotator=ann).values_list("voided_at", flat=True)) == at
    assert Pause.objects.get().reason == "sleeps"


def test_only_units_with_an_answer_of_theirs_are_reopened(make_records_task, person, manager):
    task = make_records_task(count=5, redundancy=1)
    ann, bea = person("ann", "en"), person("bea", "en")
    own = {judgment.unit_id for judgment in work(ann, task, units=2)}
    skipped = take(ann, task)
    skip(ann, skipped.pk)
    work(bea, task)
    assert void(ann, task, by=manager, reason="sleeps") == Voided(2, 2)
    assert set(task.units.filter(stage="QUEUED").values_list("pk", flat=True)) == own
    assert Judgment.objects.get(kind="skip").voided_by == manager
    assert Unit.objects.get(pk=skipped.unit_id).stage == stages.LABELLED


def test_answers_that_were_taken_back_stay_taken_back(make_records_task, person, manager):
    task, ann = make_records_task(count=2, redundancy=1), person("ann", "en")
    work(ann, task, units=1)
    undo(ann, task)
    assert void(ann, task, by=manager, reason="sleeps") == Voided(0, 0)
    assert Judgment.objects.get().voided_by is None


def test_the_same_person_in_another_task_is_left_alone(three, make_records_task, manager):
    task, ann, *_ = three
    other = make_records_task(count=2, name="other", redundancy=1)
    work(ann, other)
    void(ann, task, by=manager, reason="sleeps")
    assert set(other.units.values_list("stage", flat=True)) == {"LABELLED"}
    assert running(ann, other) is None


def test_what_an_adjudicator_decided_stands(make_records_task, person, manager):
    task = make_records_task(count=2, redundancy=3, on_conflict="ADJUDICATION", task_type="web_ranking")
    people = [person(name, "en") for name in ("ann", "bea", "cem")]
    for annotator, label in zip(people, "420", strict=True):
        work(annotator, task, lambda unit, label=label: Answer(label))
    first, second = task.units.all()
    settle(person("ada", adjudicates=True), first.pk, Answer("3", "read the page"))
    assert would_void(people[0], task) == {
        "answers": 2,
        "known": 0,
        "skips": 0,
        "reopened": 1,
        "settled": 0,
        "waiting": 0,
        "decided": 1,
        "reused": 0,
    }
    assert void(people[0], task, by=manager, reason="sleeps") == Voided(2, 1)
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.stage, first.label, second.stage) == ("LABELLED", "3", "QUEUED")
    assert not Judgment.objects.filter(annotator=people[0], voided_at=None).exists()


def test_units_that_people_dropped_are_asked_again(make_records_task, person, manager):
    task = make_records_task(count=1, task_type="web_ranking", redundancy=3)
    people = [person(name, "en") for name in ("ann", "bea", "cem")]
    for annotator, label in zip(people, "440", strict=True):
        work(annotator, task, lambda unit, label=label: Answer(label))
    assert task.units.get().label == "4"
    void(people[1], task, by=manager, reason="sleeps")
    work(person("dan", "en"), task, lambda unit: Answer("2"))
    assert task.units.get().stage == stages.DISCARDED
    assert void(people[2], task, by=manager, reason="sleeps") == Voided(1, 1)
    work(person("eva", "en"), task, lambda unit: Answer("4"))
    assert (task.units.get().stage, task.units.get().label) == ("LABELLED", "4")


def test_who_is_asked_beyond_three_since_answers_differed_is_not_needed_once_one_is_voided(
    make_records_task, person, manager
):
    task = make_records_task(count=1, task_type="web_ranking", redundancy=3, extra_answers=1)
    people = [person(name, "en") for name in ("ann", "bea", "cem")]
    for annotator, label in zip(people, "420", strict=True):
        work(annotator, task, lambda unit, label=label: Answer(label))
    assert task.units.get().redundancy == 4
    assert void(people[0], task, by=manager, reason="sleeps") == Voided(1, 0)
    assert task.units.get().redundancy == 3
    work(person("dan", "en"), task, lambda unit: Answer("2"))
    assert (task.units.get().stage, task.units.get().label) == ("LABELLED", "2")


def test_where_those_who_are_left_agree_nobody_else_is_asked(make_records_task, person, manager):
    task = make_records_task(count=1, redundancy=3, stop_early=True)
    people = [person(name, "en") for name in ("ann", "bea", "cem")]
    for annotator, label in zip(people, "101", strict=True):
        work(annotator, task, lambda unit, label=label: Answer(label))
    would = would_void(people[1], task)
    assert (would["settled"], would["reopened"]) == (1, 0)
    assert void(people[1], task, by=manager, reason="sleeps") == Voided(1, 0)
    unit = task.units.get()
    assert (unit.stage, unit.label, unit.redundancy) == ("LABELLED", "1", 2)
    assert list(unit.transitions.values_list("event", flat=True)) == ["asked", "answered", "reopened", "answered"]
    assert take(person("dan", "en"), task) is None


def test_where_a_fourth_was_asked_the_three_who_are_left_may_settle_it(make_records_task, person, manager):
    task = make_records_task("web_ranking", 1, redundancy=3, extra_answers=1)
    people = [person(f"p{number}", "en") for number in range(4)]
    for annotator, label in zip(people, "4204", strict=True):
        work(annotator, task, lambda unit, label=label: Answer(label))
    assert void(people[1], task, by=manager, reason="sleeps") == Voided(1, 0)
    assert (task.units.get().stage, task.units.get().label) == ("LABELLED", "4")
    assert void(people[0], task, by=manager, reason="sleeps") == Voided(1, 1)
    assert task.units.get().redundancy == 3


def test_a_unit_that_is_asked_anew_forgets_the_skips_for_which_it_was_given_up(make_records_task, person, manager):
    task = make_records_task(count=1, skip_limit=2)
    people = [person(f"p{number}", "en") for number in range(7)]
    work(people[0], task)
    for annotator in people[1:3]:
        skip(annotator, take(annotator, task).pk)
    assert task.units.get().stage == stages.DISCARDED
    void(people[0], task, by=manager, reason="sleeps")
    work(people[3], task)
    assert task.units.get().stage == stages.QUEUED
    for annotator in people[4:6]:
        skip(annotator, take(annotator, task).pk)
    assert task.units.get().stage == stages.DISCARDED


def test_units_that_were_given_up_for_somebodys_skips_are_asked_anew(make_records_task, person, manager):
    task = make_records_task(count=2, skip_limit=2)
    ann, bea, cem = (person(name, "en") for name in ("ann", "bea", "cem"))
    for annotator, units in ((ann, 2), (bea, 1)):
        for _ in range(units):
            skip(annotator, take(annotator, task).pk)
    first, second = task.units.all()
    assert (first.stage, second.stage) == (stages.DISCARDED, stages.QUEUED)
    would = would_void(ann, task)
    assert (would["answers"], would["skips"], would["reopened"]) == (0, 2, 1)
    assert void(ann, task, by=manager, reason="skips all") == Voided(0, 1)
    assert not live(ann).exists()
    skip(cem, take(cem, task).pk)
    assert set(task.units.values_list("stage", flat=True)) == {stages.QUEUED}
    lift(running(ann, task), by=manager)
    assert take(ann, task) is None


def test_a_skip_that_only_sent_a_post_on_takes_it_nowhere_when_it_is_voided(make_task, person, manager):
    task, ann, bea = make_task([DISPUTED]), person("ann", "de"), person("bea", "en")
    for annotator in (ann, bea):
        skip(annotator, take(annotator, task).pk)
    assert task.units.get().stage == stages.ADJUDICATION
    assert void(ann, task, by=manager, reason="skips all") == Voided(0, 0)
    assert task.units.get().stage == stages.ADJUDICATION
    assert void(bea, task, by=manager, reason="skips all") == Voided(0, 1)
    assert (task.units.get().stage, task.units.get().language) == (stages.QUEUED, "en")


def test_of_judgments_made_elsewhere_what_is_left_decides_at_once(tmp_path, manager):
    file = tmp_path / "said.tsv"
    rows = ["question1\tx\tA", "question1\ty\tA", "question1\tz\tB", "question2\tz\tB", "question3\tx\tA"]
    rows += ["question3\tz\tB"]
    file.write_text("\n".join(["task\tworker\tlabel", *rows]) + "\n", encoding="utf-8")
    call_command("import_judgments", "old", str(file), verbosity=0)
    task = Task.objects.get()
    stood = dict(task.units.values_list("item__key", "label"))
    assert stood == {"question1": "A", "question2": "B", "question3": ""}
    spam = Annotator.objects.get(user__username="imported:old:z")
    assert would_void(spam, task)["settled"] == 3
    assert void(spam, task, by=manager, reason="spam") == Voided(3, 0)
    now = task.units.values_list("item__key", "stage", "label", "redundancy")
    assert set(now) == {
        ("question1", "LABELLED", "A", 2),
        ("question2", "DISCARDED", "", 1),
        ("question3", "LABELLED", "A", 1),
    }


def test_voided_gold_answers_count_on_against_who_gave_them_and_wait_for_others(watched, person, manager):
    ann = person("ann", "en")
    made = work(ann, watched, wrong)
    would = would_void(ann, watched)
    assert (would["answers"], would["known"]) == (len(made), 3)
    assert void(ann, watched, by=manager, reason="sleeps").answers == len(made)
    assert score(watched, tally_of(permit_of(ann, watched)).known) == (0, 3)
    assert set(watched.units.filter(honeypot=True).values_list("stage", flat=True)) == {"QUEUED"}


def test_what_would_be_voided_is_what_is_voided(watched, person, manager):
    people = [person(name, "en") for name in ("ann", "bea", "cem")]
    for annotator in people:
        work(annotator, watched)
    for annotator in people:
        would = would_void(annotator, watched)
        assert void(annotator, watched, by=manager, reason="sleeps") == (would["answers"], would["reopened"])
        assert would["answers"] == would["reopened"] + would["waiting"] + would["known"] == 20
        assert would_void(annotator, watched)["answers"] == 0


def test_labels_that_other_tasks_took_over_are_told_of(make_task, person, manager):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    work(ann, task, lambda unit: Answer("de"))
    taker = make_task([DISPUTED], name="other", asked="de")
    taker.units.update(stage="LABELLED", label="de", reused_from=task.units.get())
    assert would_void(ann, task)["reused"] == 1


def test_in_a_task_of_posts_the_post_goes_back_to_the_queue_it_was_in_last(make_task, person, manager):
    task = make_task([DISPUTED])
    ann, bea = person("ann", "de"), person("bea", "en")
    skip(ann, take(ann, task).pk)
    work(bea, task, lambda unit: Answer("en"))
    assert void(bea, task, by=manager, reason="sleeps") == Voided(1, 1)
    unit = task.units.get()
    assert (unit.stage, unit.language, unit.round, unit.redundancy) == ("QUEUED", "en", 2, 1)
    assert work(person("cem", "en"), task, lambda unit: Answer("de"))


# --- at once


pytestmark_races = pytest.mark.django_db(transaction=True, serialized_rollback=True)


@pytestmark_races
def test_an_answer_in_flight_is_either_voided_or_refused(make_records_task, person, manager):
    task = make_records_task(count=12, redundancy=1)
    outcomes = set()
    for number in range(12):
        ann = person(f"ann{number}", "en")
        lease = take(ann, task)
        first, second = lambda: judge(ann, lease.pk, YES), lambda: void(ann, task, by=manager, reason="sleeps")  # noqa: B023
        said, done = at_once(*((first, second) if number % 2 else (second, first)))[:: 1 if number % 2 else -1]
        assert not live(ann).exists()
        if isinstance(said, Judgment):
            assert done == Voided(1, 1)
        else:
            assert isinstance(said, Paused)
            assert done == Voided(0, 0)
        outcomes.add(type(said))
        unit = Unit.objects.get(pk=lease.unit_id)
        assert (unit.stage, unit.label) == ("QUEUED", "")
        assert not unit.leases.filter(place__isnull=False).exists()


@pytestmark_races
def test_voiding_and_a_sheet_that_takes_the_same_posts_do_not_wait_for_one_another(
    make_task, person, manager, monkeypatch
):
    """Ann has answered one post and let the other run out; they are voided while bea takes both on a sheet."""
    task, ann, bea = make_task([DISPUTED] * 2, asked="de", redundancy=2), person("ann", "de"), person("bea", "de")
    first, second = queue.take_sheet(ann, task)
    judge(ann, first.pk, Answer("de"))
    Lease.objects.filter(pk=second.pk).update(expires_at=timezone.now() - timedelta(minutes=1))
    bea_has_units, ann_has_leases = threading.Event(), threading.Event()
    close, lease = queue.close_others, queue.lease_locked

    def closed(kept, annotator, *rest):
        close(kept, annotator, *rest)
        if annotator == ann:
            ann_has_leases.set()
            time.sleep(0.5)

    def leased(unit, permit, **how):
        bea_has_units.set()
        ann_has_leases.wait(1)
        return lease(unit, permit, **how)

    monkeypatch.setattr(pausing, "close_others", closed)
    monkeypatch.setattr(queue, "lease_locked", leased)

    def voiding():
        bea_has_units.wait(10)
        return void(ann, task, by=manager, reason="sleeps")

    taken, voided = at_once(lambda: queue.take_sheet(bea, task), voiding)
    assert (len(taken), voided) == (2, Voided(1, 0))


@pytestmark_races
def test_two_managers_who_void_at_once_void_once(three, manager, django_user_model):
    task, ann, *_ = three
    other = django_user_model.objects.create_superuser("other")
    done = at_once(*(lambda by=by: void(ann, task, by=by, reason="sleeps") for by in (manager, other)))
    assert sorted(done) == [Voided(0, 0), Voided(6, 6)]
    assert Transition.objects.filter(event="reopened").count() == 6
    assert Pause.objects.count() == 1


@pytestmark_races
def test_while_others_are_at_work_voiding_loses_nothing_and_asks_nobody_too_many(make_records_task, person, manager):
    task = make_records_task(count=20, redundancy=3)
    people = [person(f"p{number}", "en") for number in range(5)]
    spam = people[0]
    work(spam, task, units=14)

    def at_work(annotator):
        until = timezone.now() + timedelta(seconds=60)
        while task.units.filter(stage=stages.QUEUED).exists() and timezone.now() < until:
            made = work(annotator, task)
            if not made:
                return

    def voiding():
        return void(spam, task, by=manager, reason="sleeps")

    results = at_once(voiding, *(lambda who=who: at_work(who) for who in people[1:]))
    assert isinstance(results[0], Voided)
    assert results[1:] == [None] * 4
    for annotator in people[1:]:
        work(annotator, task)
    assert not live(spam).exists()
    for unit in task.units.all():
        assert unit.stage == stages.LABELLED
        assert unit.judgments.filter(voided_at=None).count() == 3
        assert sorted(unit.leases.filter(place__isnull=False).values_list("place", flat=True)) == [1, 2, 3]


@pytestmark_races
def test_the_rule_pauses_once_though_two_tabs_answer(watched, person):
    ann = person("ann", "en")
    for _ in range(30):
        lease = take(ann, watched)
        if lease is None:
            break
        at_once(*[lambda: judge(ann, lease.pk, wrong(lease.unit))] * 2)  # noqa: B023
    assert Pause.objects.count() == 1
    assert running(ann, watched).asked == 3
