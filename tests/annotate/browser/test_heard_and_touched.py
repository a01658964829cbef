"""The queue with a screen reader, by touch and on small screens: focus, announcements, sizes and overlaps."""

import pytest
from playwright.sync_api import expect

from annotate.models import Preferences
from annotate.quality.guideline_versions import new_version
from tests.annotate.conftest import DISPUTED
from tests.annotate.hands import answers_of, let_guard_pass
from tests.looks import faults, set_look

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
TOUCH = 44  # pixels
ANN_READS = "de en fr"
# Buttons and links, except for links within sentences and elements inside a label.
SMALL = """least => [...document.querySelectorAll("a, button, summary, textarea, input:not([type=hidden])")]
  .filter(each => each.checkVisibility() && !each.closest("label, .prose, .unseen") && !each.matches("p > a"))
  .map(each => [each, each.getBoundingClientRect()])
  .filter(([, box]) => box.width > 1 && (box.height < least - .5 || box.width < least - .5))
  .map(([each, box]) => `${each.outerHTML.slice(0, 90)} ${Math.round(box.width)}x${Math.round(box.height)}`)"""


@pytest.mark.parametrize(
    ("key", "sheet"), [("f", "#flag"), ("q", "#undefined"), ("w", "#picker"), ("?", "#keys"), ("g", "#guidelines")]
)
def test_a_key_that_opens_something_moves_the_focus_into_it_and_escape_back_to_the_text(
    at_work, make_task, ann, key, sheet
):
    task = make_task([DISPUTED] * 2)
    new_version(task, "en", "Read it.", major=True)
    page = at_work(task, ann).page
    let_guard_pass(page)
    page.keyboard.press(key)
    assert page.evaluate("sheet => document.querySelector(`${sheet}[open]`).contains(document.activeElement)", sheet)
    name = "sheet => document.querySelector(sheet + ' > :not(summary)').getAttribute('aria-label')"
    assert page.evaluate(name, sheet)
    for _ in range(2):
        page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "post"
    assert page.locator(f"{sheet}[open]").count() == 0


def test_the_next_text_and_what_is_left_are_announced(at_work, make_task, ann):
    hands = at_work(make_task([DISPUTED] * 3), ann)
    region = hands.page.locator("#announced")
    expect(region).to_have_attribute("role", "status")
    hands.press_and_wait("Digit1")
    announcement = region.inner_text()
    assert " ".join(hands.post.split()) in announcement
    assert "1 answered and 0 skipped today. 2 waiting for you" in announcement


def test_a_text_that_may_hurt_is_not_announced(new_page, make_records_task, person):
    make_records_task("toxic_pairs", 2, redundancy=1, stop_early=False)
    page = new_page(user=person("bea", "en").user)
    page.goto("/tasks/crowd/consent/")
    page.click("button:has-text('I agree')")
    page.goto("/tasks/crowd/")
    page.click("button:has-text('Start')")
    expect(page.locator("#announced")).to_contain_text("waiting for you")
    hidden = page.locator("#post").evaluate("post => post.textContent.trim().replace(/\\s+/g, ' ').slice(0, 60)")
    assert hidden not in page.locator("#announced").text_content()


def test_everything_that_is_touched_is_large_enough_for_a_thumb(new_page, make_task, person, ann):
    task = make_task([DISPUTED] * 2, rounds=1)
    page, targets = new_page(user=ann.user, **PHONE), {}
    page.goto("/")
    targets["home"] = page.evaluate(SMALL, TOUCH)
    page.goto("/tasks/task/")
    page.click("button:has-text('Start')")
    page.wait_for_selector("#post")
    let_guard_pass(page)
    page.tap("[name=answer][value=de]")
    page.wait_for_selector(".tally:has-text('1 answered')")
    targets["queue"] = page.evaluate(SMALL, TOUCH)
    page.tap("#flag > summary")
    targets["flags"] = page.evaluate(SMALL, TOUCH)
    task.units.exclude(stage="LABELLED").update(stage="ADJUDICATION")
    page = new_page(user=person("ada", adjudicates=True).user, **PHONE)
    page.goto("/tasks/task/adjudication/")
    targets["list"] = page.evaluate(SMALL, TOUCH)
    page.click("a:has-text('Start with the first')")
    targets["case"] = page.evaluate(SMALL, TOUCH)
    assert {name: small for name, small in targets.items() if small} == {}


@pytest.mark.parametrize("length", [1, 4, 40])
def test_a_question_about_a_text_is_written_beside_it(at_work, make_task, ann, length):
    page = at_work(make_task([{"votes": DISPUTED, "text": "A sentence of a post to read. " * length}] * 2), ann).page
    let_guard_pass(page)
    page.keyboard.press("f")
    bar, sheet = (page.locator(selector).bounding_box() for selector in ("#answers", "#flag > .sheet"))
    assert bar["y"] - sheet["y"] < 48


def test_keys_are_listed_that_the_page_has(at_work, make_task, ann):
    for name, language, has_picker in (("task", "", True), ("asking", "de", False)):
        page = at_work(make_task([DISPUTED] * 2, name=name, **({"asked": language} if language else {})), ann).page
        keys = page.locator("#keys dt").all_text_contents()
        assert ("W" in keys) == (page.locator("#picker").count() == 1) == has_picker, name
        assert ("G" in keys) == (page.locator("#guidelines").count() == 1), name
        assert "Q" in keys
    few = make_task([DISPUTED], name="few")
    few.labels = [choice for choice in few.labels if choice in ("de", "en")]
    few.save()
    page = at_work(few, ann).page
    assert page.locator("#picker").count() == 0
    assert "W" not in page.locator("#keys dt").all_text_contents()


def test_a_daily_goal_is_a_bar_that_grows_and_who_finishes_is_told_what_they_did(at_work, make_task, ann):
    Preferences.objects.create(user=ann.user, goal=4)
    hands = at_work(make_task([DISPUTED] * 4), ann)
    page, bar = hands.page, hands.page.locator("progress.goal")
    assert bar.get_attribute("value") == "0"
    height = page.locator("#post").bounding_box()["y"]
    hands.press_and_wait("Digit1")
    assert (bar.get_attribute("value"), bar.get_attribute("max")) == ("1", "4")
    assert page.locator("#post").bounding_box()["y"] == height
    hands.press_and_wait("Space")
    page.click("button:has-text('Finish')")
    finished = page.inner_text("main [role=status]")
    assert "1 answered, 1 skipped." in finished
    assert len(answers_of(ann)) == 2


def test_nothing_moves_for_who_wants_no_motion(at_work, make_task, ann):
    page = at_work(make_task([DISPUTED] * 2), ann, reduced_motion="reduce").page
    moving = """() => [...document.querySelectorAll("*")].filter(each => {
      const style = getComputedStyle(each);
      return style.animationName !== "none" || style.transitionDuration.split(", ").some(time => time !== "0s")
        || style.scrollBehavior === "smooth";
    }).length"""
    assert page.evaluate(moving) == 0


@pytest.mark.parametrize("tested", [False, True])
def test_a_wide_table_in_guidelines_is_reached_by_keys(new_page, make_records_task, person, tested):
    gold = {"practice": ["1"], "test": ["1"]} if tested else {}
    task = make_records_task(gold=gold, test_items=1 if tested else 0)
    columns = " | ".join(f"column{number}" for number in range(12))
    new_version(task, "en", f"| {columns} |\n|{'---|' * 12}\n| {columns} |\n", major=True)
    page = new_page(user=person("bea", "en").user)
    page.goto(f"/tasks/crowd/{'qualification/en/' if tested else 'guidelines/'}")
    set_look(page, ((320, 568), "light", "none"))
    assert faults(page) == []
