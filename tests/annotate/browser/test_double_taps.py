"""An accidental second tap sends nothing, however fast it follows, by touch and by mouse."""

import pytest
from playwright.sync_api import expect

from annotate.models import Judgment
from tests.annotate.conftest import DISPUTED
from tests.annotate.hands import answers_of, let_guard_pass, move_clock, posts_of, stop_clock, tap, tapped

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
DESKTOP = {"viewport": {"width": 1280, "height": 800}}
APART_MS = (50, 200, 310, 450, 600)  # time between the two taps
on_both = pytest.mark.parametrize("options", [PHONE, DESKTOP], ids=["phone", "desktop"])


def tap_at(page, x, y):
    if page.evaluate("navigator.maxTouchPoints"):
        tapped(page, lambda: page.touchscreen.tap(x, y))
    else:
        page.mouse.click(x, y)


def middle_of(page, selector):
    box = page.locator(selector).first.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def tap_twice(page, selector, apart):
    move_clock(page, 5000)
    point = middle_of(page, selector)
    tap_at(page, *point)
    move_clock(page, apart)
    tap_at(page, *point)
    return point


def is_covered(page, point):
    """Return whether an open sheet has a choice at this point."""
    return page.evaluate("([x, y]) => Boolean(document.elementFromPoint(x, y).closest('.sheet'))", point)


@on_both
@pytest.mark.parametrize("text", ["short", "a long text " * 200], ids=["short", "long"])
def test_a_double_tap_on_what_opens_a_sheet_opens_it_and_sends_nothing(at_work, make_task, person, options, text):
    ann = person("ann", "de en fr he ar")
    page = at_work(make_task([{"votes": DISPUTED, "text": text}] * 2), ann, **options).page
    stop_clock(page)
    sent = posts_of(page)
    for sheet in ("#flag", "#undefined", "#picker"):
        for apart in APART_MS:
            point = tap_twice(page, f"{sheet} > summary", apart)
            assert page.locator(f"{sheet}[open] > .sheet").is_visible(), (sheet, apart)
            assert not is_covered(page, point), (sheet, apart)
            page.keyboard.press("Escape")
            page.keyboard.press("Escape")
    assert (sent, answers_of(ann)) == ([], [])


@on_both
@pytest.mark.parametrize("direction", ["en", "ar"])
def test_a_sheet_lies_within_the_window_beside_its_button(at_work, make_task, person, options, direction):
    ann = person("ann", "de en")
    page = at_work(make_task([DISPUTED]), ann, **options).page
    page.evaluate("language => { document.documentElement.dir = language === 'ar' ? 'rtl' : 'ltr'; }", direction)
    size = options["viewport"]
    for sheet in ("#flag", "#undefined", "#picker"):
        let_guard_pass(page)
        page.click(f"{sheet} > summary")
        box, button = (page.locator(f"{sheet} > {part}").bounding_box() for part in (".sheet", "summary"))
        assert 0 <= box["x"] <= box["x"] + box["width"] <= size["width"], sheet
        assert 0 <= box["y"] <= box["y"] + box["height"] <= button["y"], sheet
        assert button["y"] - (box["y"] + box["height"]) < 12, sheet
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")


def test_a_choice_is_not_taken_in_the_moment_in_which_its_sheet_opens(at_work, make_task, person):
    ann = person("ann", "de")
    page = at_work(make_task([DISPUTED] * 2), ann, **PHONE).page
    stop_clock(page)
    sent = posts_of(page)
    move_clock(page, 5000)
    tap(page, "#undefined > summary")
    move_clock(page, 250)
    tap(page, "#undefined [value=mixed]")
    assert sent == []
    move_clock(page, 60)
    tap(page, "#undefined [value=mixed]")
    page.wait_for_selector("#work:has-text('1 answered')")
    assert answers_of(ann) == [("answer", "und", "mixed")]


@on_both
def test_the_second_tap_on_a_choice_does_not_answer_the_next_post(at_work, make_task, person, options):
    ann = person("ann", "de en fr he ar")
    page = at_work(make_task([DISPUTED] * 20), ann, **options).page
    stop_clock(page)
    for number, apart in enumerate(APART_MS, 1):
        for opener, choice in (("#undefined", "[value=mixed]"), ("#picker", ".list button:has-text('Hindi')")):
            before = page.inner_text("#post")
            move_clock(page, 5000)
            page.click(f"{opener} > summary")
            move_clock(page, 400)
            choice = page.locator(f"{opener} {choice}").first
            choice.scroll_into_view_if_needed()
            box = choice.bounding_box()
            point = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
            tap_at(page, *point)
            page.wait_for_function("before => document.querySelector('#post').innerText !== before", arg=before)
            move_clock(page, apart)
            sent = posts_of(page)
            tap_at(page, *point)
            page.wait_for_timeout(0)
            assert sent == [], (opener, apart)
        assert len(answers_of(ann)) == 2 * number
    assert {(label, reason) for _, label, reason in answers_of(ann)} == {("und", "mixed"), ("hi", "")}


def test_without_javascript_no_sheet_opens_under_the_finger(new_page, make_task, person):
    ann = person("ann", "de en fr he ar")
    make_task([DISPUTED] * 2)
    for options in (PHONE, DESKTOP):
        page = new_page(user=ann.user, java_script_enabled=False, **options)
        page.goto("/tasks/task/")
        if options is PHONE:
            page.click("button:has-text('Start')")
        for sheet in ("#flag", "#undefined", "#picker"):
            point = middle_of(page, f"{sheet} > summary")
            for number in (1, 0):  # opened, and closed again
                (page.touchscreen.tap if options is PHONE else page.mouse.click)(*point)
                expect(page.locator("[open] > .sheet"), sheet).to_have_count(number)
    assert Judgment.objects.count() == 0


@on_both
def test_a_double_tap_before_an_adjudicator_settles_nothing(new_page, make_task, person, options):
    task = make_task([DISPUTED], rounds=1)
    task.units.update(stage="ADJUDICATION")
    page = new_page(user=person("ada", adjudicates=True).user, **options)
    page.goto(f"/tasks/task/adjudication/{task.units.get().pk}/")
    page.fill("[name=reason]", "Grammar book")
    stop_clock(page)
    sent = posts_of(page)
    for apart in APART_MS:
        page.locator("#picker > summary").scroll_into_view_if_needed()
        point = tap_twice(page, "#picker > summary", apart)
        assert page.locator("#picker[open] > .sheet").is_visible(), apart
        assert not is_covered(page, point), apart
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
    assert (sent, Judgment.objects.count()) == ([], 0)
