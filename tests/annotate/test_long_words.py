"""What somebody wrote may be one word of 2,000 letters: no page becomes wider than the screen for it."""

import pytest

from annotate.kinds import Answer
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.conftest import DISPUTED

WORD = "x" * 2000
SIZES = [{"viewport": {"width": width, "height": 800}} for width in (1280, 390)]


def wider_than_the_screen(page):
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


@pytest.mark.parametrize("size", SIZES)
def test_a_long_comment_breaks_and_is_cut_in_the_answers_of_the_day(make_task, person, new_page, size):
    task, ann = make_task([DISPUTED]), person("ann", "de")
    judge(ann, take(ann, task).pk, Answer("de", comment=WORD))
    page = new_page(user=ann.user, **size)
    page.goto("/tasks/task/answers/")
    assert wider_than_the_screen(page) == 0
    assert page.locator(".clamped").bounding_box()["height"] < 100
    # Ordinary words are not broken for it, nor is the text squeezed.
    assert page.locator("td.text").bounding_box()["width"] > size["viewport"]["width"] / 4
    assert page.locator("text=Take back").bounding_box()["height"] < 30


@pytest.mark.parametrize("size", SIZES)
def test_a_long_comment_breaks_before_an_adjudicator(make_task, person, new_page, size):
    task, ann, ada = make_task([DISPUTED]), person("ann", "de"), person("ada", adjudicates=True)
    judge(ann, take(ann, task).pk, Answer("de", comment=WORD))
    unit = task.units.get()
    task.units.update(stage="ADJUDICATION", label="")
    page = new_page(user=ada.user, **size)
    page.goto(f"/tasks/task/adjudication/{unit.pk}/")
    assert WORD in page.inner_text("aside")
    assert wider_than_the_screen(page) == 0


def test_on_a_phone_a_task_s_name_leaves_room_for_its_figures(make_task, manager, new_page):
    task = make_task([DISPUTED])
    task.title = "Which of the many languages of this world is this post of July in, if it is in any? " + 50 * "x"
    task.save()
    page = new_page(user=manager, **SIZES[1])
    page.goto("/manage/")
    assert wider_than_the_screen(page) == 0
    assert page.locator("tbody th").first.bounding_box()["width"] < 390 / 2
    # Headings that are off the screen make no tall band above those on it.
    assert page.locator("thead").first.bounding_box()["height"] < 60
