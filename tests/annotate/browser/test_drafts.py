"""Typed text survives an expired session, a lost connection and a slow one, and nobody else sees it."""

import re

import pytest
from playwright.sync_api import expect

from annotate.models import Judgment, Lease
from tests.annotate.conftest import DISPUTED
from tests.annotate.hands import let_guard_pass

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
ANN_READS = "de en"


def end_session(page):
    page.context.clear_cookies(name="sessionid")


def log_in(page, name="ann"):
    page.wait_for_url("**/login/**")
    page.fill("[name=username]", name)
    page.fill("[name=password]", "a long password")
    page.click("button:has-text('Log in')")


@pytest.fixture
def case(make_task, person, new_page):
    """A case of an adjudicator, with both fields filled in."""
    task = make_task([DISPUTED], rounds=1)
    reader = person("bea", "de")
    task.units.update(stage="ADJUDICATION")
    page = new_page(user=person("ann", adjudicates=True).user)
    page.goto(f"/tasks/task/adjudication/{task.units.get().pk}/")
    page.fill("[name=reason]", "Grammar book")
    page.fill("[name=comment]", "a comment")
    page.locator("#post").focus()
    assert reader
    return page


def told_of_it(page):
    """Return the notice that the action was not sent because the session had ended."""
    return page.locator("[role=alert]", has_text="so this has not been sent yet")


def drafts_in(page):
    return page.evaluate("Object.keys(sessionStorage).filter(key => key.startsWith('draft '))")


def typed(page):
    expect(page.locator("[name=reason]")).not_to_have_value("")
    return page.input_value("[name=reason]"), page.input_value("[name=comment]")


def test_an_adjudicator_s_words_survive_a_lost_line_and_a_session_that_ended(case, console_errors):
    address = case.url
    case.context.set_offline(True)
    let_guard_pass(case)
    case.keyboard.press("0")
    expect(case).to_have_url(re.compile("^chrome-error:"))
    case.context.set_offline(False)
    case.goto(address)
    assert typed(case) == ("Grammar book", "a comment")
    console_errors.clear()  # of the line
    end_session(case)
    let_guard_pass(case)
    case.locator("#post").focus()
    case.keyboard.press("0")
    log_in(case)
    expect(told_of_it(case)).to_be_visible()
    assert typed(case) == ("Grammar book", "a comment")
    let_guard_pass(case)
    case.locator("#post").focus()
    case.keyboard.press("0")
    case.wait_for_url("**decided**")
    expect(told_of_it(case)).to_have_count(0)
    assert (Judgment.objects.get().reason, Judgment.objects.get().comment) == ("Grammar book", "a comment")
    assert drafts_in(case) == []


def test_another_person_in_the_same_browser_does_not_see_them(case, person):
    person("cem", adjudicates=True)
    end_session(case)
    let_guard_pass(case)
    case.keyboard.press("0")
    log_in(case, "cem")
    case.wait_for_selector("#settle")
    expect(told_of_it(case)).to_have_count(0)
    assert (case.input_value("[name=reason]"), case.input_value("[name=comment]")) == ("", "")
    assert "Grammar book" not in case.content()


def test_a_preview_that_follows_what_is_typed_leads_nobody_to_the_log_in(new_page, make_task, manager):
    make_task([DISPUTED])
    page = new_page(user=manager)
    page.goto("/manage/tasks/task/guidelines/")
    end_session(page)
    with page.expect_response("**/login/**") as response:
        page.type("#text", "Read better.")
    response.value.finished()
    page.check("[value=minor]")
    page.click("button:has-text('Add this version')")
    log_in(page, "manager")
    expect(told_of_it(page)).to_be_visible()
    assert "Read better." in page.input_value("#text")


def test_a_slow_answer_is_seen_to_be_sent_and_a_comment_written_meanwhile_is_kept(at_work, make_task, ann):
    hands = at_work(make_task([DISPUTED] * 2), ann)
    page, before = hands.page, hands.post
    held = []
    page.route("**/judge/", lambda route: held.append(route), times=1)
    page.reload()  # a page that is already there may go on for a moment without the route
    page.fill("[name=comment]", "first")
    page.locator("#post").focus()
    let_guard_pass(page)
    hands.press("Digit1")
    page.wait_for_selector("#notice:has-text('Sending')")
    dimmed = page.locator(".sending #flag > summary").evaluate("button => getComputedStyle(button).opacity")
    assert float(dimmed) < 1
    page.fill("[name=comment]", "first and second")
    held[0].continue_()
    page.wait_for_selector("#notice:has-text('were not saved. Press Undo to get them back')")
    assert (hands.post != before, page.input_value("[name=comment]")) == (True, "")
    assert page.locator(".sending").count() == 0
    assert Judgment.objects.get().comment == "first"
    page.locator("#post").focus()
    hands.press_and_wait("KeyZ")
    assert (hands.post, page.input_value("[name=comment]")) == (before, "first and second")


def test_without_a_connection_undo_and_disturbing_say_that_they_were_not_sent(at_work, make_task, ann, console_errors):
    hands = at_work(make_task([DISPUTED] * 3), ann)
    page = hands.page
    hands.press_and_wait("Digit1")
    let_guard_pass(page)
    page.context.set_offline(True)
    for keys in (["KeyZ"], ["KeyF", "Digit1"]):
        for key in keys:
            hands.press(key)
        page.wait_for_selector("#notice:has-text('so this was not sent')")
        assert "Your answer is still here" not in page.inner_text("#notice")
        page.evaluate("document.querySelector('#notice').replaceChildren()")
    page.context.set_offline(False)
    assert Lease.objects.filter(outcome="flagged").count() == 0
    console_errors.clear()  # of the line


def test_restored_input_of_a_new_task_is_announced_and_cleared_and_belongs_to_its_question(
    new_page, manager, demo_corpus
):
    page = new_page(user=manager)
    address = f"/manage/new-task/?corpus={demo_corpus.name}&kind="
    page.goto(f"{address}language")
    page.fill("[name=title]", "Headlines")
    page.goto(f"{address}verify")
    expect(page.locator("[name=title]")).to_have_value("")
    page.goto(f"{address}language")
    expect(page.locator("[role=status]", has_text="Your earlier input was restored.")).to_be_visible()
    page.click("button:has-text('Clear')")
    expect(page.locator("[name=title]")).to_have_value("")
    assert drafts_in(page) == []
