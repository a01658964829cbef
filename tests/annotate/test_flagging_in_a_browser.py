"""Flags by keys, by mouse and without JavaScript."""

import pytest

from annotate.models import Flag, Judgment, Lease
from tests.annotate.conftest import DISPUTED
from tests.annotate.hands import let_guard_pass, posts_of
from tests.annotate.labelling import acts as labelling

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ann(person):
    return person("ann", "de en")


def flags():
    return list(Flag.objects.order_by("pk").values_list("kind", "words"))


def test_what_is_disturbing_is_handed_on_by_two_keys_and_the_next_unit_comes(at_work, make_task, ann):
    hands = at_work(make_task([DISPUTED] * 3), ann)
    before = hands.post
    let_guard_pass(hands.page)
    hands.press("KeyF")
    hands.press_and_wait("Digit1")
    assert hands.post != before
    assert before not in hands.page.content()
    assert flags() == [("disturbing", "")]
    assert "0 answered and 0 skipped today" in hands.page.inner_text("footer.progress")
    assert "Passed on as disturbing" in hands.page.inner_text("footer.progress")


def test_its_text_is_hidden_before_the_server_has_answered_and_stays_so_without_a_connection(
    at_work, make_task, ann, console_errors
):
    hands = at_work(make_task([DISPUTED] * 3), ann)
    page = hands.page
    let_guard_pass(page)
    page.context.set_offline(True)
    hands.press("KeyF")
    hands.press("Digit1")
    assert page.locator("#post").is_hidden()
    page.wait_for_selector("text=There is no connection")
    assert page.locator("#post").is_hidden()
    page.context.set_offline(False)
    hands.press("KeyF")
    hands.press_and_wait("Digit1")
    assert page.locator("#post").is_visible()
    assert flags() == [("disturbing", "")]
    console_errors.clear()  # of the line


def test_a_question_is_asked_by_keys_alone_and_the_unit_and_its_comment_stay(at_work, make_task, ann):
    hands = at_work(make_task([DISPUTED] * 2), ann)
    page = hands.page
    before = hands.post
    page.fill("[name=comment]", "a comment")
    page.locator("#post").focus()
    let_guard_pass(page)
    hands.press("KeyF")
    hands.press("Digit4")
    page.wait_for_selector("#flag textarea:focus")
    page.keyboard.type("Is this 1 language?")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=The manager has it now")
    assert (hands.post, page.input_value("[name=comment]")) == (before, "a comment")
    assert flags() == [("question", "Is this 1 language?")]
    assert page.locator("#flag[open]").count() == 0
    hands.press_and_wait("Digit1")
    assert Judgment.objects.get().comment == "a comment"
    assert page.locator("#flagged").inner_text() == ""
    hands.press("KeyF")
    assert page.input_value("#flag textarea") == ""


def test_while_the_flags_are_shown_digits_mean_them_and_escape_closes_them(at_work, make_task, ann):
    hands = at_work(make_task([DISPUTED] * 2), ann)
    let_guard_pass(hands.page)
    posted = posts_of(hands.page)
    hands.press("KeyF")
    hands.press("Digit9")
    hands.press("Escape")
    assert hands.page.locator("#flag[open]").count() == 0
    hands.press_and_wait("Digit1")
    assert [address.rpartition("/tasks/")[2] for address in posted] == ["task/judge/"]


def test_where_f_finds_concepts_shift_and_f_flags(at_work, ann):
    labelling.import_eurovoc()
    labelling.import_acts()
    hands = at_work(labelling.task_of(), ann)
    page = hands.page
    let_guard_pass(page)
    hands.press("KeyF")
    assert page.evaluate("document.activeElement.id") == "typed"
    page.locator("#post").focus()
    page.keyboard.press("Shift+F")
    page.keyboard.press("2")
    page.wait_for_selector("text=The manager has it now")
    assert flags() == [("personal", "")]


def test_without_javascript_the_same_buttons_do_the_same(new_page, make_task, ann):
    make_task([DISPUTED] * 2)
    page = new_page(user=ann.user, java_script_enabled=False)
    page.goto("/tasks/task/")
    page.click("text=Start")
    before = page.inner_text("#post")
    page.fill("[name=comment]", "a comment")
    page.click("#flag > summary")
    page.fill("#flag textarea", "Why?")
    page.click("#flag [value=question]")
    assert "The manager has it now" in page.inner_text("#flagged")
    assert (page.inner_text("#post"), page.input_value("[name=comment]")) == (before, "a comment")
    page.click("#flag > summary")
    page.click("#flag [value=disturbing]")
    assert page.inner_text("#post") != before
    assert flags() == [("question", "Why?"), ("disturbing", "")]
    assert Lease.objects.filter(outcome="flagged").count() == 1


def test_today_s_answers_show_nothing_of_what_was_disturbing(client, make_task, ann):
    client.force_login(ann.user)
    make_task([DISPUTED])
    client.post("/tasks/task/start/")
    lease = Lease.objects.get()
    client.post("/tasks/task/flag/", {"lease": lease.pk, "flag": "disturbing"})
    page = client.get("/tasks/task/answers/").text
    assert "hidden, since you found it disturbing" in page
    assert lease.unit.item.text not in page
