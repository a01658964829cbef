"""Answers changed later: the unit's next stage, who decides, and what the change must not reveal."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from annotate.controls import honeypots
from annotate.core import stages
from annotate.core.refusals import EnoughToday, InvalidAnswer, NotAllowed, NotFound, Paused, WrongStage
from annotate.kinds import Answer
from annotate.models import Change, Judgment, Lease, Task
from annotate.work import answer_changes, flags
from annotate.work.answer_changes import change, last_judgment, undo
from annotate.work.interventions import pause
from annotate.work.judgments import judge
from annotate.work.permit import acting, midnight
from annotate.work.queue import take
from tests.annotate import attacks
from tests.annotate.acts import progress_of, settle
from tests.annotate.conftest import DISPUTED
from tests.annotate.journeys import ENGLISH, FRENCH, answer, follow, history, where


def long_ago():
    Judgment.objects.update(shown_at=timezone.now() - timedelta(days=3), answered_at=timezone.now() - timedelta(days=3))


def test_an_answer_with_which_nobody_has_gone_on_is_replaced(make_task, person, ann):
    task = make_task([DISPUTED] * 2, redundancy=2)
    person("bea", "de")
    first = answer(ann, task)
    long_ago()
    changed = change(ann, task, first.pk, ENGLISH)
    first.refresh_from_db()
    [new] = Judgment.objects.live()
    assert (first.voided_at is not None, first.voided_by, new.label) == (True, None, "en")
    assert (new.answered_at, new.active_seconds) == (first.answered_at, first.active_seconds)
    assert (new.lease.place, new.lease.outcome, first.lease.outcome) == (1, "answered", "undone")
    assert (changed.judgment, changed.label, new.unit.stage) == (first, "en", stages.QUEUED)
    assert last_judgment(ann, task) == new
    last = answer(ann, task)
    change(ann, task, first.pk, FRENCH)
    assert last_judgment(ann, task) == last


@pytest.mark.parametrize("redundancy", [1, 2])
def test_an_answer_keeps_its_number_and_is_found_by_what_it_says_now_whoever_has_read_the_unit(
    make_task, person, ann, as_ann, redundancy
):
    """Where one person reads the unit it becomes a case, and where two do the answer is replaced: nobody can tell."""
    task = make_task([DISPUTED] * 3, redundancy=redundancy)
    person("bea", "de")
    first = answer(ann, task)
    address = f"/tasks/task/answers/{first.pk}/"
    for label in ("en", "fr"):
        assert as_ann.post(address, {"answer": label, "comment": f"now {label}"}).status_code == 302
        assert as_ann.get(address).status_code == 200
        assert f'action="{address}"' in as_ann.get(address).text
    pages = {label: as_ann.get("/tasks/task/answers/", {"said": label}).text for label in ("de", "en", "fr")}
    assert {label: address in page for label, page in pages.items()} == {"de": False, "en": False, "fr": True}
    assert address in as_ann.get("/tasks/task/answers/", {"commented": "on"}).text
    following = answer(ann, task)
    assert (following.pk, following.lease_id) == (first.pk + 3, first.lease_id + 3)
    for number in (first.pk + 1, first.pk + 2):
        assert as_ann.get(f"/tasks/task/answers/{number}/").status_code == 404
    undone = as_ann.post("/tasks/task/undo/", {"judgment": first.pk}, headers={"HX-Request": "true"})
    assert undone.status_code == 200


def test_what_a_manager_left_out_stays_out_whatever_its_reader_would_answer_now(make_task, person, ann, manager):
    task = make_task([DISPUTED], redundancy=2)
    bea = person("bea", "de")
    first = answer(ann, task)
    lease = take(bea, task)
    with acting(bea.user, task.name) as permit:
        flagged = flags.flag(permit, lease.pk, "personal").flag
    flags.discard(flagged.pk, by=manager)
    long_ago()
    changed = change(ann, task, first.pk, ENGLISH)
    first.refresh_from_db()
    assert (changed.label, first.voided_at, where(task)[0]) == ("en", None, stages.DISCARDED)


@pytest.mark.parametrize("redundancy", [1, 2])
def test_where_others_have_gone_on_an_adjudicator_decides_between_both(make_task, person, ann, client, redundancy):
    task = make_task([DISPUTED], redundancy=redundancy)
    bea, ada = person("bea", "de"), person("ada", adjudicates=True)
    first = answer(ann, task)
    if redundancy > 1:
        answer(bea, task)
    assert where(task) == (stages.LABELLED, "de")
    long_ago()
    change(ann, task, first.pk, Answer("en", comment="I read it again"))
    first.refresh_from_db()
    assert (first.voided_at, first.label, where(task)) == (None, "de", (stages.ADJUDICATION, ""))
    assert history(task)[-1][0] == "changed"
    client.force_login(ada.user)
    shown = client.get(f"/tasks/task/adjudication/{first.unit_id}/").text
    assert f"{ann.pseudonym} would now answer English." in shown
    assert "I read it again" in shown
    assert "An answer was changed" in shown
    settle(ada, first.unit, "en")
    assert where(task) == (stages.LABELLED, "en")


def test_one_that_waits_for_others_goes_to_an_adjudicator_once_one_of_them_has_answered(make_task):
    task = make_task([DISPUTED], redundancy=3)
    follow(task, "ann:de bea:de cyd:de", "ann de; bea de; ann changes en > changed ADJUDICATION de 1")


def test_an_adjudicators_decision_stands_and_the_change_is_stored(make_task):
    steps = "ann de; ann changes en; ada settles fr; ann changes he > settled LABELLED de 1 fr"
    follow(make_task([DISPUTED]), "ann:de ada:", steps)
    assert [change.label for change in Change.objects.all()] == ["en", "he"]


def test_an_audited_post_stays_blind_to_the_adjudicator(make_task, person, ann, client):
    task = make_task([("de", "de", "de")] * 3, audit_least=3, audit_recheck=0)
    first = answer(ann, task)
    change(ann, task, first.pk, ENGLISH)
    client.force_login(person("ada", adjudicates=True).user)
    shown = client.get(f"/tasks/task/adjudication/{first.unit_id}/").text
    assert "Blind check" in shown
    assert "would now answer" not in shown


def test_a_person_changes_so_many_answers_a_day_in_all_tasks_and_no_more(make_task, ann, monkeypatch):
    monkeypatch.setattr(answer_changes, "CHANGES_A_DAY", 2)
    tasks = [make_task([DISPUTED], name=f"t{number}") for number in range(3)]
    first, second, third = (answer(ann, task) for task in tasks)
    change(ann, tasks[0], first.pk, ENGLISH)
    change(ann, tasks[1], second.pk, ENGLISH)
    with pytest.raises(EnoughToday, match="You have changed 2 answers today, so this answer was not changed"):
        change(ann, tasks[2], third.pk, ENGLISH)
    Change.objects.update(at=midnight() - timedelta(seconds=1))
    change(ann, tasks[2], third.pk, ENGLISH)


def test_what_cannot_be_changed_is_refused_in_a_sentence_and_nothing_is_kept(make_task, person, ann, manager):
    task = make_task([DISPUTED])
    first = answer(ann, task)
    bea = person("bea", "de")
    with pytest.raises(NotFound, match="You do not have this answer"):
        change(bea, task, first.pk, ENGLISH)
    with pytest.raises(InvalidAnswer, match="This is your current answer"):
        change(ann, task, first.pk, Answer("de"))
    with pytest.raises(InvalidAnswer):
        change(ann, task, first.pk, Answer("tlh"))
    language = ann.languages.get()
    ann.languages.all().delete()
    with pytest.raises(NotAllowed, match="can no longer work in German"):
        change(ann, task, first.pk, ENGLISH)
    language.save(force_insert=True)
    Task.objects.update(is_open=False)
    with pytest.raises(WrongStage, match="closed, so your answer cannot be changed"):
        change(ann, task, first.pk, ENGLISH)
    Task.objects.update(is_open=True)
    pause(ann, task, by=manager, reason="asleep")
    with pytest.raises(Paused):
        change(ann, task, first.pk, ENGLISH)
    assert not Change.objects.exists()
    assert where(task) == (stages.LABELLED, "de")


def test_a_change_can_be_changed_again_and_what_was_taken_back_is_not_changed(make_task, person, ann):
    task = make_task([DISPUTED])
    first = answer(ann, task)
    change(ann, task, first.pk, ENGLISH)
    with pytest.raises(InvalidAnswer, match="This is your current answer"):
        change(ann, task, first.pk, ENGLISH)
    change(ann, task, first.pk, FRENCH)
    undo(ann, task, first.pk)
    assert where(task)[0] == stages.QUEUED
    with pytest.raises(NotFound):
        change(ann, task, first.pk, ENGLISH)


def test_the_page_offers_the_change_of_what_cannot_be_taken_back_any_more(make_task, ann, as_ann):
    task = make_task([DISPUTED])
    first = answer(ann, task)
    address = f"/tasks/task/answers/{first.pk}/"
    assert address not in as_ann.get("/tasks/task/answers/").text
    long_ago()
    assert address in as_ann.get("/tasks/task/answers/").text
    form = as_ann.get(address).text
    assert "You answered <b>German</b>" in form
    assert 'name="skip"' not in form
    assert as_ann.post(address, {"answer": "de"}).status_code == 400
    page = as_ann.post(address, {"answer": "en", "comment": "now"}, follow=True).text
    assert re.search(r"<b>English</b>.*now.*changed", page, re.S)
    assert "<b>German</b>" not in page
    Task.objects.update(is_open=False)
    assert address not in as_ann.get("/tasks/task/answers/").text
    assert as_ann.post(address, {"answer": "fr"}).status_code == 409


# --- gold answers


@pytest.fixture
def crowd(make_records_task, person):
    """A task with hidden gold answers, and its annotators."""

    def make(redundancy):
        gold = {"queue": ["1", "0"] * 10}
        task = make_records_task(count=30, gold=gold, gold_share=0.3, redundancy=redundancy, pause_below=0.0)
        return task, [person(name, "en") for name in ("ann", "bea", "cyd")]

    return make


OTHERWISE = {"1": "0", "0": "1"}


@pytest.mark.slow
@pytest.mark.parametrize("redundancy", [1, 3])
@pytest.mark.parametrize("others_go_on", [False, True])
def test_a_changed_gold_answer_looks_like_changed_work(crowd, client, redundancy, others_go_on):
    """To the page, to its history, to a retry of the first answer, and by its statements."""
    task, (ann, *others) = crowd(redundancy)
    client.force_login(ann.user)
    client.get("/docs/")  # the first page of a session reads the person's settings
    seen = {True: set(), False: set()}
    for _ in range(14):
        lease = take(ann, task)
        first = judge(ann, lease.pk, Answer("1"))
        if others_go_on:
            for other in others:
                if theirs := take(other, task):
                    judge(other, theirs.pk, Answer("1"))
        before = progress_of(ann, task)
        with attacks.statements() as ran:
            reply = client.post(f"/tasks/crowd/answers/{first.pk}/", {"answer": "0"})
        again = client.post("/tasks/crowd/judge/", {"lease": lease.pk, "answer": "1"})
        sentence = re.search(r"You (have already )?(said|answered)[^.]*", again.text)
        page = client.get("/tasks/crowd/answers/").text
        row = re.search(r"<tbody>\s*(<tr>.*?</tr>)", page, re.S)[1]
        marks = ("changed" in row, "<b>No</b>" in row or "<b>0</b>" in row, "Take back" in row)
        same = progress_of(ann, task) == before
        outcome = (tuple(ran), reply.status_code, again.status_code, sentence and sentence[0], marks, same)
        seen[first.unit.honeypot].add(outcome)
        Lease.objects.filter(annotator=ann, closed_at=None).delete()
    assert min(len(seen[True]), len(seen[False])) >= 1
    if not others_go_on:
        assert seen[True] == seen[False]
        assert len(seen[True]) == 1
    assert {outcome[0] for outcome in seen[True]} == {outcome[0] for outcome in seen[False]}


def test_of_a_gold_answer_the_first_answer_counts_and_it_goes_nowhere(crowd):
    task, (ann, *_) = crowd(1)
    lease = take(ann, task)
    while not lease.unit.honeypot:
        judge(ann, lease.pk, Answer("1"))
        lease = take(ann, task)
    wrong = OTHERWISE[lease.unit.known_answer]
    first = judge(ann, lease.pk, Answer(wrong))
    change(ann, task, first.pk, Answer(lease.unit.known_answer))
    lease.unit.refresh_from_db()
    assert (lease.unit.stage, lease.instead_of.stage) == (stages.QUEUED, stages.QUEUED)
    assert honeypots.by_annotator(task)[ann.pk]["right"] == 0
    assert not task.units.filter(transitions__event="changed").exists()


def test_a_decoy_goes_to_no_adjudicator(make_task, person, ann):
    task = make_task([DISPUTED] * 2, asked="de", decoys=1)
    for _ in range(2):
        first = judge(ann, take(ann, task).pk, Answer("de"))
        change(ann, task, first.pk, Answer("not-de"))
    assert list(task.units.filter(stage=stages.ADJUDICATION).values_list("known_answer", flat=True)) == [""]
