"""Pausing people and letting them go on. test_pausing_rule.py tests what the rule does to whom."""

import pytest
from django.utils import timezone

from annotate.actions.registry import call_command
from annotate.controls.honeypots import score
from annotate.core import stages
from annotate.core.refusals import AlreadyAnswered, InvalidAnswer, Paused
from annotate.kinds import Answer
from annotate.models import Annotator, Judgment, Lease, Pause, Task, Transition, Unit
from annotate.work.adjudication import settle
from annotate.work.answer_changes import undo
from annotate.work.interventions import VoidResult, lift, pause, preview_void, void
from annotate.work.judgments import judge, skip
from annotate.work.permit import current_pause, permit_of
from annotate.work.queue import open_lease, take
from tests.annotate.acts import progress_of
from tests.annotate.conftest import DISPUTED
from tests.annotate.journeys import follow, journeys
from tests.annotate.pauses.conftest import KNOWN, NO, WATCHED, YES, gold_count, live, work, wrong


def test_who_fails_gold_answers_is_paused_by_the_one_that_makes_it_certain(make_records_task, watched, person):
    ann = person("ann", "en")
    made = work(ann, watched, wrong)
    assert gold_count(made) == 3
    assert made[-1].unit.honeypot
    record = current_pause(ann, watched)
    assert (record.right, record.asked, record.by, record.reason) == (0, 3, None, "")
    assert take(ann, watched) is None
    # only in that task, and only this person
    assert take(ann, make_records_task(count=2, name="other"))
    assert len(work(person("bea", "en"), watched)) == 20


def test_right_answers_skips_and_a_task_that_asks_for_nothing_pause_nobody(make_records_task, watched, person):
    made = work(person("ann", "en"), watched)
    assert gold_count(made) == 8
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
    record = pause(ann, watched, by=manager, reason="  asks to stop ")
    assert (record.by, record.reason, record.right, record.asked) == (manager, "asks to stop", 0, 0)
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
    rule = current_pause(ann, watched)
    for reason in ("looked at it", "looked at it", "x" * 200):
        assert pause(ann, watched, by=manager, reason=reason) == rule
    void(ann, watched, by=manager, reason="proved to be a bot")
    record = Pause.objects.get()
    assert (record.by, record.asked) == (None, 3)
    assert record.reason == f"looked at it; {'x' * 200}; proved to be a bot"


def test_a_reason_that_says_nothing_or_cannot_be_stored_is_refused(three, manager, desk):
    task, ann, *_ = three
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
            posted = desk.post(address, {"reason": reason})
            assert (posted.status_code, sentence in posted.text) == (400, True)
    assert live(ann).count() == 6
    assert not Pause.objects.exists()


# --- lifted


def test_after_a_pause_is_lifted_the_count_starts_anew(watched, person, manager, django_user_model):
    ann = person("ann", "en")
    before = work(ann, watched, wrong)
    bea = person("bea", "en")
    work(bea, watched, wrong)
    lift(current_pause(bea, watched), by=manager)
    assert gold_count(work(bea, watched)) >= 5  # with right answers, a person can work to the end
    assert current_pause(bea, watched) is None
    lift(current_pause(ann, watched), by=manager)
    assert current_pause(ann, watched) is None
    after = work(ann, watched, wrong)
    assert gold_count(after) == 3
    assert len(before) < len({judgment.unit_id for judgment in before + after}) == len(before) + len(after)
    newest, first = Pause.objects.filter(annotator=ann)
    assert [(record.right, record.asked) for record in (newest, first)] == [(0, 3), (0, 3)]
    lift(first, by=django_user_model.objects.create_superuser("other"))  # a pause names the first person who lifted it
    first.refresh_from_db()
    assert first.lifted_by == manager


# --- voiding what somebody answered


def test_voiding_reopens_the_units_and_keeps_the_judgments(three, manager):
    task, ann, *_ = three
    assert progress_of(ann, task)["answered_today"] == 6
    assert void(ann, task, by=manager, reason="sleeps") == VoidResult(answers=6, reopened=6)
    assert progress_of(ann, task)["answered_today"] == 0  # counted again
    assert set(task.units.values_list("stage", "label", "redundancy")) == {("QUEUED", "", 3)}
    voided = Judgment.objects.filter(annotator=ann)
    assert set(voided.values_list("kind", "label", "voided_by", "lease__outcome", "lease__place")) == {
        ("answer", "1", manager.pk, "voided", None)
    }
    assert set(Transition.objects.filter(event="reopened").values_list("from_stage", "to_stage", "by")) == {
        ("LABELLED", "QUEUED", manager.pk)
    }
    at = list(voided.values_list("voided_at", flat=True))
    assert void(ann, task, by=manager, reason="sleeps") == VoidResult(0, 0)  # nothing the second time
    assert list(voided.values_list("voided_at", flat=True)) == at
    assert Pause.objects.get().reason == "sleeps"


def test_what_was_voided_is_labelled_again_by_one_person_more_and_never_by_the_same(three, person, manager):
    task, ann, *_ = three
    void(ann, task, by=manager, reason="sleeps")
    lift(current_pause(ann, task), by=manager)
    assert take(ann, task) is None
    assert len(work(person("dan", "en"), task)) == 6
    assert set(task.units.values_list("stage", "label")) == {("LABELLED", "1")}
    assert Judgment.objects.filter(voided_at=None).count() == 18


def test_a_tab_from_before_does_not_answer_a_voided_unit_again(three, manager):
    task, ann, *_ = three
    unit = task.units.first()
    now = timezone.now()
    old = Lease.objects.create(
        unit=unit, annotator=ann, round=1, queue="en", opened_at=now, expires_at=now, closed_at=now, outcome="expired"
    )
    void(ann, task, by=manager, reason="sleeps")
    lift(current_pause(ann, task), by=manager)
    for answer in (YES, NO):
        with pytest.raises(AlreadyAnswered, match="has voided your answers"):
            judge(ann, old.pk, answer)


def test_only_units_with_an_answer_of_theirs_are_reopened(make_records_task, person, manager):
    task, other = (make_records_task(count=5, redundancy=1, name=name) for name in ("crowd", "other"))
    ann, bea = person("ann", "en"), person("bea", "en")
    work(ann, other)
    work(ann, task, units=1)
    undo(ann, task)
    units = {judgment.unit_id for judgment in work(ann, task, units=2)}
    skipped = take(ann, task)
    skip(ann, skipped.pk)
    work(bea, task)
    assert void(ann, task, by=manager, reason="sleeps") == VoidResult(2, 2)
    assert set(task.units.filter(stage="QUEUED").values_list("pk", flat=True)) == units
    assert Judgment.objects.get(kind="skip").voided_by == manager
    assert Unit.objects.get(pk=skipped.unit_id).stage == stages.LABELLED
    # Undone answers stay undone, and the other task is unchanged.
    assert Judgment.objects.filter(annotator=ann, voided_by=None).exclude(voided_at=None).count() == 1
    assert set(other.units.values_list("stage", flat=True)) == {stages.LABELLED}
    assert current_pause(ann, other) is None


@pytest.fixture
def three_say(person):
    """three_say(task, "420") has three people answer all of a task with a label each, and returns them."""

    def answer(task, labels):
        people = [person(name, "en") for name in ("ann", "bea", "cem")]
        for annotator, label in zip(people, labels, strict=True):
            work(annotator, task, lambda unit, label=label: Answer(label))
        return people

    return answer


def test_what_an_adjudicator_decided_stands(make_records_task, three_say, person, manager):
    task = make_records_task(count=2, redundancy=3, on_conflict="ADJUDICATION", task_type="web_ranking")
    people = three_say(task, "420")
    first, second = task.units.all()
    settle(person("ada", adjudicates=True), first.pk, Answer("3", "read the page"))
    would = {"answers": 2, "known": 0, "skips": 0, "reopened": 1, "settled": 0, "waiting": 0, "decided": 1, "reused": 0}
    assert preview_void(people[0], task) == would
    assert void(people[0], task, by=manager, reason="sleeps") == VoidResult(2, 1)
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.stage, first.label, second.stage) == ("LABELLED", "3", "QUEUED")
    assert not Judgment.objects.filter(annotator=people[0], voided_at=None).exists()


def test_units_that_people_dropped_are_asked_again(make_records_task, three_say, person, manager):
    task = make_records_task(count=1, task_type="web_ranking", redundancy=3)
    people = three_say(task, "440")
    assert task.units.get().label == "4"
    void(people[1], task, by=manager, reason="sleeps")
    work(person("dan", "en"), task, lambda unit: Answer("2"))
    assert task.units.get().stage == stages.DISCARDED
    assert void(people[2], task, by=manager, reason="sleeps") == VoidResult(1, 1)
    work(person("eva", "en"), task, lambda unit: Answer("4"))
    assert (task.units.get().stage, task.units.get().label) == ("LABELLED", "4")


def test_where_those_who_are_left_agree_nobody_else_is_asked(make_records_task, three_say, person, manager):
    task = make_records_task(count=1, redundancy=3, stop_early=True)
    people = three_say(task, "101")
    would = preview_void(people[1], task)
    assert (would["settled"], would["reopened"]) == (1, 0)
    assert void(people[1], task, by=manager, reason="sleeps") == VoidResult(1, 0)
    unit = task.units.get()
    assert (unit.stage, unit.label, unit.redundancy) == ("LABELLED", "1", 2)
    assert list(unit.transitions.values_list("event", flat=True)) == ["asked", "answered", "reopened", "answered"]
    assert take(person("dan", "en"), task) is None


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
    would = preview_void(ann, task)
    assert (would["answers"], would["skips"], would["reopened"]) == (0, 2, 1)
    assert void(ann, task, by=manager, reason="skips all") == VoidResult(0, 1)
    assert not live(ann).exists()
    skip(cem, take(cem, task).pk)
    assert set(task.units.values_list("stage", flat=True)) == {stages.QUEUED}
    lift(current_pause(ann, task), by=manager)
    assert take(ann, task) is None


@journeys(
    """
    a skip that only sent it on takes it nowhere
      ann:de bea:en = ann skip; bea skip > ADJUDICATION en 2; ann voided > ADJUDICATION en 2; bea voided > QUEUED en
      2
    it goes back to the queue it was in last
      ann:de bea:en | cem:en = ann skip; bea en; bea voided > QUEUED en 2; cem joins; cem en > LABELLED en 2 en
    """
)
def test_of_posts(make_task, post, options, people, steps):
    follow(make_task([post], **options), people, steps)


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
    assert preview_void(spam, task)["settled"] == 3
    assert void(spam, task, by=manager, reason="spam") == VoidResult(3, 0)
    now = task.units.values_list("item__key", "stage", "label", "redundancy")
    assert set(now) == {
        ("question1", "LABELLED", "A", 2),
        ("question2", "DISCARDED", "", 1),
        ("question3", "LABELLED", "A", 1),
    }


def test_voided_gold_answers_count_on_against_who_gave_them_and_wait_for_others(watched, person, manager):
    ann = person("ann", "en")
    made = work(ann, watched, wrong)
    would = preview_void(ann, watched)
    assert (would["answers"], would["known"]) == (len(made), 3)
    assert void(ann, watched, by=manager, reason="sleeps").answers == len(made)
    assert score(permit_of(ann, watched)) == (0, 3)
    assert set(watched.units.filter(honeypot=True).values_list("stage", flat=True)) == {"QUEUED"}


def test_what_would_be_voided_is_what_is_voided(watched, person, manager):
    people = [person(name, "en") for name in ("ann", "bea", "cem")]
    for annotator in people:
        work(annotator, watched)
    for annotator in people:
        would = preview_void(annotator, watched)
        assert void(annotator, watched, by=manager, reason="sleeps") == (would["answers"], would["reopened"])
        assert would["answers"] == would["reopened"] + would["waiting"] + would["known"] == 20
        assert preview_void(annotator, watched)["answers"] == 0


def test_labels_that_other_tasks_took_over_are_told_of(make_task, person, manager):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    work(ann, task, lambda unit: Answer("de"))
    taker = make_task([DISPUTED], name="other", asked="de")
    taker.units.update(stage="LABELLED", label="de", reused_from=task.units.get())
    assert preview_void(ann, task)["reused"] == 1
