"""An adjudicator's decision: what is stored or refused, who may make or undo it, and keyboard use."""

import re

import pytest
from playwright.sync_api import expect

from annotate.core import stages
from annotate.core.refusals import InvalidAnswer, NotAllowed, NotFound, NothingToUndo, Paused, WrongStage
from annotate.figures.task_overview import undecidable
from annotate.kinds import Answer
from annotate.models import Annotator, Judgment, Task
from annotate.work.adjudication import discard, settle, to_adjudicate, unsettle
from annotate.work.answer_changes import undo
from annotate.work.interventions import lift, void
from annotate.work.judgments import judge, skip
from annotate.work.permit import current_pause
from annotate.work.queue import release, take
from tests.annotate.adjudication.conftest import where
from tests.annotate.conftest import DISPUTED
from tests.annotate.hands import let_guard_pass
from tests.annotate.journeys import follow

GERMAN = Answer("de", "I read the language")
ADDRESSES = {"page": "/tasks/task/adjudication/", "api": "/api/v1/tasks/task/adjudication/"}


@pytest.mark.parametrize(
    ("decide", "kind", "end"),
    [
        (lambda *of: settle(*of, Answer("de", " known ", " Bavarian ")), "settle", (stages.LABELLED, "de")),
        (lambda *of: settle(*of, Answer("und", "known", "Bavarian")), "settle", (stages.LABELLED, "und")),
        (lambda *of: discard(*of, "known", " Bavarian"), "discard", (stages.DISCARDED, "")),
    ],
)
def test_a_decision_is_kept_with_its_reason_and_can_be_taken_back_and_made_anew(skipped, ada, decide, kind, end):
    task = skipped()
    unit = task.units.get()
    judgment = decide(ada, unit.pk)
    judgment.refresh_from_db()
    assert (judgment.kind, judgment.label, judgment.lease) == (kind, end[1], None)
    assert (judgment.reason, judgment.comment) == ("known", "Bavarian")
    assert where(unit) == end
    last = unit.transitions.last()
    assert (last.by, last.judgment) == (ada.user, judgment)
    assert decide(ada, unit.pk) == judgment  # a retry is no second decision
    unsettle(ada, unit.pk)
    assert where(unit) == (stages.ADJUDICATION, "")
    assert list(to_adjudicate(task, ada)) == [unit]
    settle(ada, unit.pk, Answer("en", "on second thoughts"))
    assert where(unit) == (stages.LABELLED, "en")
    assert [move.event for move in unit.transitions.all()][-2:] == ["unsettled", "settled"]


def test_a_decision_that_cannot_be_kept_is_refused(skipped, ada):
    unit = skipped().units.get()
    for reason, sentence in (
        (" ", "Enter a short reason"),
        ("x" * 201, "longer than 200 characters"),
        ("a\x00b", "NUL"),
    ):
        for attempt in (lambda: settle(ada, unit.pk, Answer("de", reason)), lambda: discard(ada, unit.pk, reason)):  # noqa: B023
            with pytest.raises(InvalidAnswer, match=sentence):
                attempt()
    with pytest.raises(InvalidAnswer, match="'ja' is not on this task's list"):
        settle(ada, unit.pk, Answer("ja", "I read it"))
    assert where(unit) == (stages.ADJUDICATION, "")


def test_nobody_settles_what_they_have_judged_unless_they_took_that_back(make_task, person):
    task = make_task([DISPUTED], rounds=1)
    both, ann = person("both", "de", adjudicates=True), person("ann", "de")
    unit = task.units.get()
    skip(both, take(both, task).pk)
    assert not to_adjudicate(task, both).exists()
    for attempt in (lambda: settle(both, unit.pk, GERMAN), lambda: discard(both, unit.pk, "odd")):
        with pytest.raises(NotAllowed, match="another adjudicator must decide it"):
            attempt()
    release(both, undo(both, task).pk)
    skip(ann, take(ann, task).pk)
    settle(both, unit.pk, GERMAN)
    assert where(unit) == (stages.LABELLED, "de")


def test_only_units_that_wait_for_an_adjudicator_can_be_decided_and_the_second_is_too_late(
    make_task, skipped, ada, eve
):
    with pytest.raises(WrongStage, match="is not waiting for an adjudicator"):
        settle(ada, make_task([DISPUTED], name="open").units.get().pk, GERMAN)
    with pytest.raises(NotFound, match="This item does not exist"):
        settle(ada, 0, GERMAN)
    unit = skipped().units.get()
    settle(ada, unit.pk, GERMAN)
    for annotator, other in ((eve, GERMAN), (ada, Answer("en", GERMAN.reason)), (ada, Answer("de", "another reason"))):
        for attempt in (lambda: settle(annotator, unit.pk, other), lambda: discard(annotator, unit.pk, "odd")):  # noqa: B023
            with pytest.raises(WrongStage, match="Another adjudicator may have decided it"):
                attempt()
    assert Judgment.objects.filter(lease=None).count() == 1
    assert where(unit) == (stages.LABELLED, "de")


def test_people_can_undo_only_their_own_live_decisions(skipped, make_task, ada, eve, person):
    unit = skipped().units.get()
    settle(ada, unit.pk, GERMAN)
    with pytest.raises(NothingToUndo, match="You have no decision here to undo"):
        unsettle(eve, unit.pk)
    unsettle(ada, unit.pk)
    with pytest.raises(NothingToUndo):
        unsettle(ada, unit.pk)
    task, both = make_task([DISPUTED], name="read"), person("both", "de", adjudicates=True)
    judge(both, take(both, task).pk, Answer("de"))
    with pytest.raises(NothingToUndo):
        unsettle(both, task.units.get().pk)


def test_a_reader_who_takes_a_skip_back_answers_beside_the_decision_of_an_adjudicator(make_task):
    steps = "ann skip; ada settles de; ann undo; ann fr > LABELLED de 1 de; ada unsettles > ADJUDICATION de 1"
    follow(make_task([DISPUTED]), "ann:de ada:", steps)


def test_the_list_has_what_waits_in_the_order_of_the_draw_and_can_be_cut_to_a_queue(make_task, person, ada):
    task = make_task([DISPUTED, ("fr", "fr en", "en"), DISPUTED])
    for name, language in (("ann", "de"), ("fay", "fr"), ("ben", "en")):
        person(name, language)
    for annotator in Annotator.objects.filter(languages__isnull=False).order_by("pk"):
        while lease := take(annotator, task):
            skip(annotator, lease.pk)
    german, french, decided = task.units.order_by("position")
    settle(ada, decided.pk, GERMAN)
    for language, units in (("de", [german]), ("fr", [french]), ("en", [german, french]), ("he", [])):
        assert list(to_adjudicate(task, ada, language)) == units
    assert list(to_adjudicate(task, ada)) == [german, french]


def test_units_waiting_for_another_adjudicator_are_reported_after_the_task_is_closed(make_task, person, client):
    task, both = make_task([DISPUTED, DISPUTED], rounds=1), person("both", "de", adjudicates=True)
    client.force_login(both.user)
    for sentence in (
        "1 case is waiting for another adjudicator, because you have judged it.",
        "2 cases are waiting for another",
    ):
        skip(both, take(both, task).pk)
        for is_open in (True, False):
            Task.objects.update(is_open=is_open)
            assert (sentence in client.get(ADDRESSES["page"]).text) is not is_open
        Task.objects.update(is_open=True)


@pytest.mark.parametrize("name", ["page", pytest.param("api", marks=pytest.mark.slow)])
def test_an_adjudicator_who_reads_cannot_tell_which_of_their_answers_are_checked(make_task, person, client, name):
    task, both = make_task([DISPUTED] * 12, check_share=0.5), person("both", "de", adjudicates=True)
    client.force_login(both.user)
    address, seen = ADDRESSES[name], {True: set(), False: set()}
    for _ in range(12):
        lease = take(both, task)
        judge(both, lease.pk, Answer("de"))
        pages = [client.get(address), client.get(f"{address}{lease.unit_id}/"), client.get("/")]
        pages.append(client.post(f"{address}{lease.unit_id}/settle/", {"label": "de", "reason": "I know it"}))
        texts = [re.sub(r'value="\w{64}"|\d+', "", page.text) for page in pages[:2]]
        seen[lease.unit.recheck].add((*texts, *(page.status_code for page in pages)))
    assert seen[True] == seen[False]
    assert len(seen[True]) == 1


def test_whose_answers_were_voided_does_not_decide_what_they_had_answered(differed, person, manager):
    task, (first, *_) = differed
    void(first, task, by=manager, reason="sleeps")
    fourth = person("dan", "en")
    judge(fourth, take(fourth, task).pk, Answer("1"))
    unit = task.units.get()
    assert unit.stage == stages.ADJUDICATION
    assert not to_adjudicate(task, first).exists()
    assert undecidable(task) == 1
    with pytest.raises(Paused):
        settle(first, unit.pk, Answer("4", "I know"))
    lift(current_pause(first, task), by=manager)
    with pytest.raises(NotAllowed, match="judged this case"):
        settle(first, unit.pk, Answer("4", "I know"))


def test_who_could_read_what_others_answered_is_not_asked_for_the_page_when_it_is_asked_anew(differed, person, manager):
    task, (first, *_) = differed
    reads, dan = person("reads", "en", adjudicates=True), person("dan", "en")
    assert to_adjudicate(task, reads).count() == 1
    void(first, task, by=manager, reason="sleeps")
    assert task.units.get().stage == stages.QUEUED
    assert take(reads, task) is None
    assert take(dan, task) is not None


# --- the desk, by keys


def at(page, unit):
    return page.url.partition("?")[0].endswith(f"/adjudication/{unit.pk}/")


def test_keys_go_on_and_back_without_deciding_and_after_a_decision_comes_what_follows(skipped, ada, new_page):
    units = list(skipped(3).units.order_by("position"))
    page = new_page(user=ada.user)
    page.goto(f"{ADDRESSES['page']}{units[1].pk}/")
    text = re.sub(r"\s+", " ", page.inner_text("main"))
    assert "skipped" in text
    assert not re.search("QUEUED|ADJUDICATION|exhausted|disputed", text)  # no internal words
    for key, number, case in (("Period", 2, "3 of 3"), ("Comma", 1, "2 of 3"), ("Comma", 0, "1 of 3")):
        let_guard_pass(page)
        with page.expect_navigation():
            page.keyboard.press(key)
        assert at(page, units[number])
        assert case in page.inner_text("header.case")
    assert page.get_by_role("link", name="Previous").count() == 0
    assert {where(unit)[0] for unit in units} == {stages.ADJUDICATION}
    page.goto(f"{ADDRESSES['page']}{units[1].pk}/")
    for decided, following in ((1, 2), (2, 0)):
        assert at(page, units[decided])
        let_guard_pass(page)
        page.keyboard.press("Shift+Digit1")
        with page.expect_navigation():
            page.keyboard.press("1")
        assert at(page, units[following])
    assert [where(unit)[0] for unit in units] == [stages.ADJUDICATION, stages.LABELLED, stages.LABELLED]
    let_guard_pass(page)
    with page.expect_navigation():
        page.keyboard.press("z")
    assert where(units[2])[0] == stages.ADJUDICATION


def test_a_digit_settles_once_it_is_said_how_one_knows(skipped, ada, new_page):
    first, second = skipped(2).units.order_by("position")
    page = new_page(user=ada.user)
    page.goto(f"{ADDRESSES['page']}{first.pk}/")
    let_guard_pass(page)
    page.keyboard.press("g")  # no guidelines here
    page.keyboard.press("1")
    # The reason is asked for, and a digit in it is a digit.
    expect(page.locator("[name=reason]")).to_be_focused()
    expect(page.locator("#unreasoned")).to_have_text("Say how you know, then decide again.")
    expect(page.locator("#unreasoned")).to_be_visible()
    page.keyboard.type("1 dictionary")
    expect(page.locator("#unreasoned")).to_be_hidden()
    assert where(first)[0] == stages.ADJUDICATION
    page.keyboard.press("Escape")
    with page.expect_navigation():
        page.keyboard.press("1")
    assert where(first) == (stages.LABELLED, first.candidates[0])
    assert at(page, second)
    let_guard_pass(page)
    page.keyboard.press("1")
    expect(page.locator("[name=reason]")).to_be_focused()
    page.keyboard.press("Shift+Digit1")  # a suggested reason, in the empty field
    expect(page.locator("[name=reason]")).to_have_value("I read the language")
    with page.expect_navigation():
        page.keyboard.press("1")
    assert Judgment.objects.latest("pk").reason == "I read the language"
