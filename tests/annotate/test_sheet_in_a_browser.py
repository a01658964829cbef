"""A sheet of twenty posts by keyboard, by touch and in every look."""

from datetime import timedelta
from statistics import mean

import pytest
from django.utils import timezone

from annotate.core import stages
from annotate.models import Judgment, Unit
from tests.annotate.acts import said_by
from tests.annotate.conftest import DISPUTED
from tests.annotate.hands import (
    ARABIC,
    RUSSIAN,
    Hands,
    let_guard_pass,
    lose_reply,
    posts_of,
    said,
    stop_clock,
    worst_contrast,
)

HTMX = {"HX-Request": "true"}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
SHEET = "/tasks/task/sheet/"


@pytest.fixture
def ann(person):
    return person("ann", "de sv")


in_browser = pytest.mark.django_db(transaction=True)
LETTERS = {"KeyN": "т", "KeyU": "г", "KeyS": "ы", "KeyY": "н", "KeyJ": "о", "KeyK": "л"}


@pytest.fixture
def on_sheet(new_page):
    """on_sheet(annotator) is that person with the first sheet before them."""

    def begin(annotator, layout=RUSSIAN, **options):
        page = new_page(user=annotator.user, **options)
        page.goto(SHEET)
        page.click("text=Start")
        page.wait_for_selector(".posts")
        let_guard_pass(page)
        return Hands(page, layout | LETTERS)

    return begin


def press(hands, keys):
    for key in keys.split():
        hands.press(key)


def row(hands):
    """The number of the row that has the focus, from 1."""
    return hands.page.evaluate(
        "1 + [...document.querySelectorAll('.posts > li')].findIndex(li => li.contains(document.activeElement))"
    )


@in_browser
def test_a_sheet_by_keyboard(on_sheet, make_task, ann):
    make_task([DISPUTED] * 6, asked="de")
    hands = on_sheet(ann, ARABIC)
    submit = hands.page.locator("#submit")
    assert submit.inner_text().startswith("Submit: 6 yes")
    press(hands, "ArrowUp KeyN")
    assert row(hands) == 1
    press(hands, "KeyJ KeyU ArrowDown KeyS KeyJ KeyN KeyN KeyJ KeyN KeyY KeyK")
    assert row(hands) == 4
    assert submit.inner_text().startswith("Submit: 3 yes, 1 no, 1 undefined, 1 skipped")
    press(hands, "Enter Enter")
    assert row(hands) == 6
    assert said(ann) == []
    press(hands, "KeyN")
    hands.press_and_wait("Enter")  # on the last row
    assert said_by(ann) == ["not-de", "und", "skip", "de", "de", "not-de"]
    assert "All done" in hands.page.inner_text("#work")


@in_browser
def test_enter_with_ctrl_submits_from_any_row_and_held_down_sends_one_sheet(on_sheet, make_task, ann):
    make_task([DISPUTED] * 25, asked="de")
    hands = on_sheet(ann)
    posted = posts_of(hands.page)
    hands.page.keyboard.down("Control")
    hands.page.keyboard.down("Enter")
    hands.page.wait_for_selector("text=20 answers saved")
    let_guard_pass(hands.page)
    for _ in range(5):
        hands.page.keyboard.down("Enter")  # repeats
    assert len(posted) == 1
    assert len(said_by(ann)) == 20
    assert row(hands) == 1


@in_browser
def test_a_click_that_comes_twice_sends_one_sheet(on_sheet, make_task, ann):
    make_task([DISPUTED] * 25, asked="de")
    page = on_sheet(ann).page
    posted = posts_of(page)
    page.dblclick("#submit")
    page.wait_for_selector("text=20 answers saved")
    let_guard_pass(page)
    assert len(posted) == 1
    assert len(said_by(ann)) == 20


@in_browser
def test_a_sheet_by_mouse(on_sheet, make_task, ann):
    make_task([DISPUTED] * 4, asked="de")
    page = on_sheet(ann).page
    page.click(".posts > li:nth-child(2) label:has(.no)")
    page.click(".posts > li:nth-child(3) .text")
    page.keyboard.press("KeyU")
    page.click(".posts > li:nth-child(4) label:has(.skip)")
    page.click(".posts > li:nth-child(4) label:has(.yes)")
    page.click("text=Submit: 2 yes, 1 no, 1 undefined")
    page.wait_for_selector("text=4 answers saved")
    assert said_by(ann) == ["de", "not-de", "und", "de"]


@in_browser
def test_a_sheet_on_a_phone(on_sheet, make_task, ann):
    text = "مرحبا بالعالم\nLatin letters " + "Donaudampfschifffahrtsgesellschaft" * 5
    make_task([DISPUTED, {"votes": DISPUTED, "text": text}, *[DISPUTED] * 18], asked="de")
    page = on_sheet(ann, **PHONE).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    sizes = page.locator(".marks span, #submit").evaluate_all(
        "nodes => nodes.map(node => node.getBoundingClientRect()).map(box => [box.width, box.height])"
    )
    assert min(width for width, _ in sizes) >= 44
    assert min(height for _, height in sizes) >= 44
    directions = page.locator(".posts > li:nth-child(2) p").evaluate_all(
        "nodes => nodes.map(node => [getComputedStyle(node).direction, node.attributes.length])"
    )
    assert directions == [["rtl", 1], ["ltr", 1]]
    page.tap(".posts > li:nth-child(2) label:has(.no)")
    page.tap(".posts > li:nth-child(20) label:has(.skip)")
    page.tap("text=Submit: 18 yes, 1 no, 1 skipped")
    page.wait_for_selector("text=20 answers saved")
    assert said_by(ann) == ["de", "not-de", *["de"] * 17, "skip"]


@in_browser
def test_a_sheet_without_javascript(new_page, make_task, ann):
    make_task([DISPUTED] * 22, asked="de")
    page = new_page(user=ann.user, java_script_enabled=False)
    page.goto("/")
    page.click("button:has-text('Start a sheet')")
    page.click(".posts > li:nth-child(2) label:has(.no)")
    page.click("button:has-text('Submit all 20')")
    assert page.locator(".posts > li").count() == 2
    page.click("button:has-text('Submit all 2')")
    assert "All done" in page.inner_text("#work")
    assert said_by(ann) == ["de", "not-de", *["de"] * 20]


@in_browser
def test_marks_stay_when_the_line_is_gone(on_sheet, make_task, ann, console_errors):
    make_task([DISPUTED] * 3, asked="de")
    hands = on_sheet(ann)
    press(hands, "KeyN")
    hands.page.context.set_offline(True)
    hands.page.keyboard.press("Control+Enter")
    hands.page.wait_for_selector("text=There is no connection")
    assert hands.page.inner_text("#count") == "Submit: 2 yes, 1 no"
    hands.page.context.set_offline(False)
    hands.page.keyboard.press("Control+Enter")
    hands.page.wait_for_selector("text=3 answers saved")
    assert said_by(ann) == ["not-de", "de", "de"]
    console_errors.clear()  # the lost request


@in_browser
def test_a_sheet_whose_reply_was_lost_is_counted_once(on_sheet, make_task, ann, console_errors):
    make_task([DISPUTED] * 3, asked="de")
    hands = on_sheet(ann)
    press(hands, "KeyN")
    lose_reply(hands.page, "/sheet/judge/")
    hands.page.keyboard.press("Control+Enter")
    hands.page.wait_for_selector("text=There is no connection")
    hands.page.keyboard.press("Control+Enter")
    hands.page.wait_for_selector("text=3 answers saved")
    assert said_by(ann) == ["not-de", "de", "de"]
    assert Judgment.objects.count() == 3
    console_errors.clear()  # the lost reply


@in_browser
def test_marks_outlive_the_session(on_sheet, make_task, ann):
    make_task([DISPUTED] * 3, asked="de")
    hands = on_sheet(ann)
    page = hands.page
    press(hands, "ArrowDown KeyN ArrowDown KeyS")
    page.context.clear_cookies(name="sessionid")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/login/**")
    page.fill("[name=username]", "ann")
    page.fill("[name=password]", "a long password")
    page.click("button:has-text('Log in')")
    page.wait_for_selector("[role=alert]:has-text('so this was not sent yet')")
    assert page.inner_text("#count") == "Submit: 1 yes, 1 no, 1 skipped"
    let_guard_pass(page)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=3 answers saved")
    assert said_by(ann) == ["de", "not-de", "skip"]


@in_browser
def test_a_page_older_than_the_session_keeps_the_marks(on_sheet, make_task, ann, console_errors):
    make_task([DISPUTED] * 3, asked="de")
    hands = on_sheet(ann)
    page = hands.page
    press(hands, "KeyN")
    page.context.add_cookies([{"name": "csrftoken", "value": "x" * 32, "url": page.url.partition("/tasks")[0]}])
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=This page is older than your session")
    assert page.inner_text("#count") == "Submit: 2 yes, 1 no"
    page.click("text=Open sheet")
    page.wait_for_selector("#notice:empty", state="attached")
    assert page.inner_text("#count") == "Submit: 2 yes, 1 no"
    let_guard_pass(page)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=3 answers saved")
    console_errors.clear()  # the refusal


@in_browser
def test_a_press_that_was_meant_for_the_sheet_before_sends_nothing(on_sheet, make_task, ann):
    make_task([DISPUTED] * 40, asked="de")
    page = on_sheet(ann).page
    stop_clock(page)
    posted = posts_of(page)
    for _ in range(2):
        page.keyboard.press("Control+Enter")
        page.wait_for_selector("text=20 answers saved")
    page.click("#submit")
    assert len(posted) == 1
    let_guard_pass(page)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=All done")
    assert len(posted) == 2
    assert said_by(ann) == ["de"] * 40


@in_browser
def test_marks_of_one_sheet_are_not_those_of_the_next(on_sheet, make_task, ann):
    make_task([DISPUTED] * 40, asked="de")
    hands = on_sheet(ann)
    press(hands, "KeyN ArrowDown KeyU")
    hands.page.keyboard.press("Control+Enter")
    hands.page.wait_for_selector("text=20 answers saved")
    assert hands.page.inner_text("#count") == "Submit: 20 yes"
    hands.page.reload()
    assert hands.page.inner_text("#count") == "Submit: 20 yes"


@in_browser
def test_idle_time_on_a_sheet_does_not_count(on_sheet, make_task, ann):
    make_task([DISPUTED] * 4, asked="de")
    page = on_sheet(ann).page
    ann.leases.update(opened_at=timezone.now() - timedelta(hours=1))
    page.evaluate("() => { const now = performance.now.bind(performance); performance.now = () => now() + 3600e3; }")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=4 answers saved")
    assert 29 < sum(Judgment.objects.values_list("active_seconds", flat=True)) < 40


@in_browser
def test_guidelines_open_beside_the_sheet_and_the_keys_go_on_working(on_sheet, make_task, ann):
    make_task([DISPUTED] * 4, asked="de")
    hands = on_sheet(ann)
    press(hands, "KeyG ArrowDown KeyN")
    assert hands.page.locator("#guidelines").get_attribute("open") is not None
    assert hands.page.inner_text("#count") == "Submit: 3 yes, 1 no"
    press(hands, "KeyG")
    assert hands.page.locator("#guidelines").get_attribute("open") is None


@in_browser
def test_marks_have_contrast_and_can_be_told_apart_where_the_systems_own_colours_hold(on_sheet, make_task, ann):
    make_task([DISPUTED] * 5, asked="de")
    hands = on_sheet(ann)
    page = hands.page
    press(hands, "KeyN ArrowDown KeyU ArrowDown KeyS")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert worst_contrast(page) >= 4.5, scheme
    page.emulate_media(forced_colors="active")
    grounds = "all => all.map(each => getComputedStyle(each.nextElementSibling).backgroundColor)"
    for mark in ("no", "undefined", "skip"):
        box = page.locator(f".posts > li:nth-child(4) .{mark}")
        before = box.evaluate_all(grounds)
        box.check(force=True)
        assert box.evaluate_all(grounds) != before, mark


@in_browser
def test_both_ways_over_the_same_posts_with_their_times_an_item(at_work, on_sheet, make_task, ann, person):
    """How long an item takes each way is recorded; that one is quicker is for people to say, not for a script."""
    odd = {3, 11, 17}
    task = make_task([DISPUTED] * 20, asked="de", redundancy=2)
    bea = person("bea", "de")
    hands = at_work(task, ann)
    for position in range(1, 21):
        hands.press_and_wait("Digit2" if position in odd else "Digit1")
    assert "All done" not in hands.page.inner_text("#notice")

    hands = on_sheet(bea)
    for position in range(1, 21):
        if position in odd:
            hands.press("KeyN")
        if position < 20:
            hands.press("ArrowDown")
    hands.press_and_wait("Enter")
    hands.page.wait_for_selector("text=20 answers saved")

    expected = ["not-de" if position in odd else "de" for position in range(1, 21)]
    assert said_by(ann) == said_by(bea) == expected
    assert list(task.units.values_list("stage", "label")) == [(stages.LABELLED, label) for label in expected]
    times = {}
    for annotator, sheet in ((ann, False), (bea, True)):
        judgments = annotator.judgments.filter(lease__sheet=sheet)
        seconds = list(judgments.values_list("active_seconds", flat=True))
        assert len(seconds) == 20
        assert all(each is not None and each > 0 for each in seconds)
        times[sheet] = mean(seconds)
    print(f"\nby script, an item: {times[False]:.2f} s one by one, {times[True]:.2f} s on a sheet")
    assert Unit.objects.filter(stage=stages.QUEUED).count() == 0


@in_browser
def test_the_page_that_one_is_on_can_be_told_where_the_systems_own_colours_hold(new_page, make_task, manager):
    make_task([DISPUTED])
    page = new_page(user=manager, forced_colors="active")
    page.goto("/manage/tasks/task/people/")
    borders = "all => all.map(each => getComputedStyle(each).borderBottomColor)"
    [here] = page.locator(".tabs a[aria-current]").evaluate_all(borders)
    others = page.locator(".tabs a:not([aria-current])").evaluate_all(borders)
    assert here not in others
    assert len(set(others)) == 1
