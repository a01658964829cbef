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
from annotate.work.permit import running
from annotate.work.queue import release, take
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.hands import let_guard_pass

GERMAN = Answer("de", "I read the language")


@pytest.fixture
def ada(person):
    return person("ada", adjudicates=True)


@pytest.fixture
def skipped(make_task, person):
    """skipped(2) is a task whose units their one reader has skipped."""

    def make(count=1, **knobs):
        task, ann = make_task([DISPUTED] * count, **knobs), person("ann", "de")
        while lease := take(ann, task):
            skip(ann, lease.pk)
        return task

    return make


def where(unit):
    unit.refresh_from_db()
    return unit.stage, unit.label


def test_a_unit_that_its_readers_skipped_is_settled_with_a_reason(skipped, ada):
    unit = skipped().units.get()
    judgment = settle(ada, unit.pk, Answer("de", " I read the language ", " Bavarian "))
    judgment.refresh_from_db()
    assert (judgment.kind, judgment.label, judgment.lease) == ("settle", "de", None)
    assert (judgment.reason, judgment.comment) == ("I read the language", "Bavarian")
    assert where(unit) == (stages.LABELLED, "de")
    last = unit.transitions.last()
    assert (last.event, last.by, last.judgment) == ("settled", ada.user, judgment)


def test_undefined_is_a_label_that_an_adjudicator_can_give(skipped, ada):
    unit = skipped().units.get()
    settle(ada, unit.pk, Answer("und", "Several languages possible"))
    assert where(unit) == (stages.LABELLED, "und")


def test_a_unit_whose_language_cannot_be_told_is_discarded(skipped, ada):
    unit = skipped().units.get()
    judgment = discard(ada, unit.pk, "Nothing found")
    assert (judgment.kind, judgment.label) == ("discard", "")
    assert where(unit) == (stages.DISCARDED, "")


def test_a_decision_needs_a_reason(skipped, ada):
    unit = skipped().units.get()
    for attempt in (lambda: settle(ada, unit.pk, Answer("de", " ")), lambda: discard(ada, unit.pk, "")):
        with pytest.raises(InvalidAnswer, match="Say in a few words how you know"):
            attempt()
    assert where(unit)[0] == stages.ADJUDICATION


@pytest.mark.parametrize(("reason", "sentence"), [("x" * 201, "longer than 200 characters"), ("a\x00b", "NUL")])
def test_a_reason_that_cannot_be_kept_is_refused(skipped, ada, reason, sentence):
    unit = skipped().units.get()
    for attempt in (lambda: settle(ada, unit.pk, Answer("de", reason)), lambda: discard(ada, unit.pk, reason)):
        with pytest.raises(InvalidAnswer, match=sentence):
            attempt()


def test_a_label_that_is_not_on_the_list_is_refused(skipped, ada):
    with pytest.raises(InvalidAnswer, match="'ja' is not on this task's list"):
        settle(ada, skipped().units.get().pk, Answer("ja", "I read it"))


def test_nobody_settles_what_they_have_judged(make_task, person):
    task, both = make_task([DISPUTED]), person("both", "de", adjudicates=True)
    skip(both, take(both, task).pk)
    unit = task.units.get()
    assert not to_adjudicate(task, both).exists()
    for attempt in (lambda: settle(both, unit.pk, GERMAN), lambda: discard(both, unit.pk, "odd")):
        with pytest.raises(NotAllowed, match="another adjudicator must decide it"):
            attempt()


def test_who_took_their_judgment_back_may_settle(make_task, person):
    """Afterwards nothing of theirs stands on the unit."""
    task = make_task([DISPUTED], rounds=1)
    both, ann = person("both", "de", adjudicates=True), person("ann", "de")
    skip(both, take(both, task).pk)
    release(both, undo(both, task).pk)
    skip(ann, take(ann, task).pk)
    unit = task.units.get()
    settle(both, unit.pk, GERMAN)
    assert where(unit) == (stages.LABELLED, "de")


def test_only_units_that_wait_for_an_adjudicator_can_be_decided(make_task, ada):
    unit = make_task([DISPUTED]).units.get()
    with pytest.raises(WrongStage, match="is not waiting for an adjudicator"):
        settle(ada, unit.pk, GERMAN)
    with pytest.raises(NotFound, match="There is no such unit"):
        settle(ada, 0, GERMAN)


def test_the_second_adjudicator_is_too_late(skipped, ada, person):
    unit, eve = skipped().units.get(), person("eve", adjudicates=True)
    settle(ada, unit.pk, GERMAN)
    for attempt in (lambda: settle(eve, unit.pk, GERMAN), lambda: discard(eve, unit.pk, "odd")):
        with pytest.raises(WrongStage, match="somebody may have decided it meanwhile"):
            attempt()
    assert where(unit) == (stages.LABELLED, "de")


def test_the_same_decision_again_returns_the_first_and_another_is_refused(skipped, ada):
    unit = skipped().units.get()
    first = settle(ada, unit.pk, GERMAN)
    assert settle(ada, unit.pk, GERMAN) == first
    with pytest.raises(WrongStage):
        settle(ada, unit.pk, Answer("en", "on second thoughts"))
    assert Judgment.objects.filter(lease=None).count() == 1


@pytest.mark.parametrize("decide", [lambda ada, pk: settle(ada, pk, GERMAN), lambda ada, pk: discard(ada, pk, "odd")])
def test_a_decision_can_be_taken_back_and_made_anew(skipped, ada, decide):
    task = skipped()
    unit = task.units.get()
    decide(ada, unit.pk)
    unsettle(ada, unit.pk)
    assert where(unit) == (stages.ADJUDICATION, "")
    assert list(to_adjudicate(task, ada)) == [unit]
    settle(ada, unit.pk, Answer("en", "on second thoughts"))
    assert where(unit) == (stages.LABELLED, "en")
    assert [t.event for t in unit.transitions.all()][-2:] == ["unsettled", "settled"]


def test_nobody_takes_back_the_decision_of_somebody_else(skipped, ada, person):
    unit, eve = skipped().units.get(), person("eve", adjudicates=True)
    settle(ada, unit.pk, GERMAN)
    with pytest.raises(NothingToUndo, match="There is no decision of yours"):
        unsettle(eve, unit.pk)


def test_taking_a_decision_back_twice_is_refused(skipped, ada):
    unit = skipped().units.get()
    settle(ada, unit.pk, GERMAN)
    unsettle(ada, unit.pk)
    with pytest.raises(NothingToUndo):
        unsettle(ada, unit.pk)


def test_an_annotators_answer_is_not_a_decision_to_take_back(make_task, person):
    task, both = make_task([DISPUTED]), person("both", "de", adjudicates=True)
    judge(both, take(both, task).pk, Answer("de"))
    with pytest.raises(NothingToUndo):
        unsettle(both, task.units.get().pk)


def test_a_reader_who_takes_a_skip_back_answers_beside_the_decision_of_an_adjudicator(make_task, person, ada):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    skip(ann, take(ann, task).pk)
    settle(ada, task.units.get().pk, GERMAN)
    judge(ann, undo(ann, task).pk, Answer("fr"))
    assert (task.units.get().stage, task.units.get().label) == (stages.LABELLED, "de")
    unsettle(ada, task.units.get().pk)
    assert task.units.get().stage == stages.ADJUDICATION


def test_the_list_has_what_waits_in_the_order_of_the_draw(skipped, ada):
    task = skipped(3)
    settle(ada, task.units.get(position=2).pk, GERMAN)
    assert [unit.position for unit in to_adjudicate(task, ada)] == [1, 3]


def test_the_list_can_be_cut_to_a_language_in_whose_queue_the_units_were(make_task, person, ada):
    task = make_task([DISPUTED, ("fr", "fr en", "en")])
    for name, language in (("ann", "de"), ("fay", "fr"), ("ben", "en")):
        person(name, language)
    for annotator in Annotator.objects.filter(languages__isnull=False).order_by("pk"):
        while lease := take(annotator, task):
            skip(annotator, lease.pk)
    german, french = task.units.all()
    for language, units in (("de", [german]), ("fr", [french]), ("en", [german, french]), ("he", [])):
        assert list(to_adjudicate(task, ada, language)) == units
    assert list(to_adjudicate(task, ada)) == [german, french]


def test_what_is_said_with_a_discard_is_kept(skipped, ada):
    waiting = skipped().units.get()
    judgment = discard(ada, waiting.pk, "nothing found", "  looks like a code  ")
    assert (judgment.reason, judgment.comment) == ("nothing found", "looks like a code")
    assert discard(ada, waiting.pk, "nothing found", "looks like a code") == judgment
    with pytest.raises(WrongStage):
        discard(ada, waiting.pk, "another reason")


def test_units_that_readers_may_still_be_given_are_not_shown_to_adjudicators(make_task, ada, client):
    task = make_task([DISPUTED, AGREED])
    client.force_login(ada.user)
    for unit in task.units.all():
        assert client.get(f"/tasks/task/adjudication/{unit.pk}/").status_code == 404


def test_what_waits_for_another_adjudicator_is_told_once_the_task_is_closed(make_task, person, client):
    task, both = make_task([DISPUTED, DISPUTED], rounds=1), person("both", "de", adjudicates=True)
    client.force_login(both.user)
    for told in ("1 case waits for another adjudicator, since you have judged it.", "2 cases wait for another"):
        skip(both, take(both, task).pk)
        for is_open in (True, False):
            Task.objects.update(is_open=is_open)
            assert (told in client.get("/tasks/task/adjudication/").text) is not is_open
        Task.objects.update(is_open=True)


@pytest.mark.parametrize("name", ["page", "api"])
def test_an_adjudicator_who_reads_cannot_tell_which_of_their_answers_are_checked(make_task, person, client, name):
    task, both = make_task([DISPUTED] * 12, check_share=0.5), person("both", "de", adjudicates=True)
    client.force_login(both.user)
    address = "/api/v1/tasks/task/adjudication/" if name == "api" else "/tasks/task/adjudication/"
    seen = {True: set(), False: set()}
    for _ in range(12):
        lease = take(both, task)
        judge(both, lease.pk, Answer("de"))
        pages = [client.get(address), client.get(f"{address}{lease.unit_id}/"), client.get("/")]
        pages.append(client.post(f"{address}{lease.unit_id}/settle/", {"label": "de", "reason": "I know it"}))
        texts = [without_tokens(page.text) for page in pages[:2]]
        seen[lease.unit.recheck].add((*texts, *(page.status_code for page in pages)))
    assert seen[True] == seen[False]
    assert len(seen[True]) == 1


def without_tokens(html):
    return re.sub(r'value="\w{64}"|\d+', "", html)


@pytest.fixture
def differed(make_records_task, person):
    """A page on which three people differed, so that it waits for an adjudicator; and the three."""
    task = make_records_task("web_ranking", 1, on_conflict="ADJUDICATION")
    three = [person(f"p{number}", "en", adjudicates=number == 0) for number in range(3)]
    for annotator, label in zip(three, "430", strict=True):
        judge(annotator, take(annotator, task).pk, Answer(label))
    return task, three


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
    lift(running(first, task), by=manager)
    with pytest.raises(NotAllowed, match="judged this one"):
        settle(first, unit.pk, Answer("4", "I know"))


def test_who_could_read_what_others_answered_is_not_asked_for_the_page_when_it_is_asked_anew(differed, person, manager):
    task, (first, *_) = differed
    ada, dan = person("ada", "en", adjudicates=True), person("dan", "en")
    assert to_adjudicate(task, ada).count() == 1
    void(first, task, by=manager, reason="sleeps")
    assert task.units.get().stage == stages.QUEUED
    assert take(ada, task) is None
    assert take(dan, task) is not None


def test_a_digit_settles_once_it_is_said_how_one_knows(skipped, ada, new_page):
    first, second = skipped(2).units.order_by("position")
    page = new_page(user=ada.user)
    page.goto(f"/tasks/task/adjudication/{first.pk}/")
    let_guard_pass(page)
    page.keyboard.press("g")  # no guidelines here
    page.keyboard.press("1")
    # The reason is asked for, and a digit in it is a digit.
    expect(page.locator("[name=reason]")).to_be_focused()
    page.keyboard.type("1 dictionary")
    assert where(first)[0] == stages.ADJUDICATION
    page.keyboard.press("Escape")
    with page.expect_navigation():
        page.keyboard.press("1")
    assert where(first) == (stages.LABELLED, first.candidates[0])
    assert f"/adjudication/{second.pk}/" in page.url


@pytest.fixture
def at_the_desk(skipped, ada, new_page):
    """Ada before the second of three cases, with the keys heard."""
    units = list(skipped(3).units.order_by("position"))
    page = new_page(user=ada.user)
    page.goto(f"/tasks/task/adjudication/{units[1].pk}/")
    let_guard_pass(page)
    return page, units


def test_the_desk_says_which_case_of_how_many_it_is_and_keys_go_on_and_back_without_deciding(at_the_desk):
    page, units = at_the_desk
    for key, number, told in (
        (None, 1, "2 of 3"),
        ("Period", 2, "3 of 3"),
        ("Comma", 1, "2 of 3"),
        ("Comma", 0, "1 of 3"),
    ):
        if key:
            let_guard_pass(page)
            with page.expect_navigation():
                page.keyboard.press(key)
        assert page.url.endswith(f"/adjudication/{units[number].pk}/")
        assert told in page.inner_text("header.case")
    assert page.get_by_role("link", name="Previous").count() == 0
    assert {where(unit)[0] for unit in units} == {stages.ADJUDICATION}


def test_after_a_decision_comes_what_follows_it_and_at_the_end_what_was_passed_over(at_the_desk):
    page, units = at_the_desk
    for decided, following in ((1, 2), (2, 0)):
        assert page.url.partition("?")[0].endswith(f"/adjudication/{units[decided].pk}/")
        let_guard_pass(page)
        page.keyboard.press("Shift+Digit1")
        with page.expect_navigation():
            page.keyboard.press("1")
        assert page.url.partition("?")[0].endswith(f"/adjudication/{units[following].pk}/")
    assert [where(unit)[0] for unit in units] == [stages.ADJUDICATION, stages.LABELLED, stages.LABELLED]
    let_guard_pass(page)
    with page.expect_navigation():
        page.keyboard.press("z")
    assert where(units[2])[0] == stages.ADJUDICATION


@pytest.mark.parametrize(
    ("keys", "came_to"),
    [("Shift+Digit6 q", (stages.LABELLED, "und")), ("Shift+Digit6 0", (stages.DISCARDED, ""))],
    ids=["undefined", "discarded"],
)
def test_reasons_undefined_and_discard_have_keys(at_the_desk, keys, came_to):
    page, units = at_the_desk
    reason, decision = keys.split()
    page.keyboard.press(reason)
    assert page.input_value("[name=reason]") == "Nothing found"
    assert page.locator(".reasons [aria-pressed=true]").inner_text().endswith("Nothing found")
    with page.expect_navigation():
        page.keyboard.press(decision)
    assert where(units[1]) == came_to
    assert units[1].judgments.last().reason == "Nothing found"


def test_any_other_language_is_found_by_typing_at_the_desk(at_the_desk):
    page, units = at_the_desk
    page.keyboard.press("Shift+Digit3")
    page.keyboard.press("w")
    page.keyboard.type("עבר")
    let_guard_pass(page)
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert where(units[1]) == (stages.LABELLED, "he")


def test_without_javascript_every_language_can_be_chosen_at_the_desk(skipped, ada, new_page):
    unit = skipped().units.get()
    page = new_page(user=ada.user, java_script_enabled=False)
    page.goto(f"/tasks/task/adjudication/{unit.pk}/")
    page.fill("[name=reason]", "Dictionary")
    page.click("summary:has-text('Another language')")
    page.click("button:has-text('Hebrew')")
    assert where(unit) == (stages.LABELLED, "he")


def test_the_desk_has_no_words_of_the_machine(skipped, ada, client):
    unit = skipped().units.get()
    client.force_login(ada.user)
    page = client.get(f"/tasks/task/adjudication/{unit.pk}/").text
    text = re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", page))
    assert "skipped" in text
    assert not re.search("QUEUED|ADJUDICATION|exhausted|disputed", text)
