"""The mark of a suggestion in a real browser: heard, legible, and in nobody's way."""

import pytest

from annotate.models import Judgment
from tests.annotate.act_pairs import suggest_by_chance
from tests.annotate.hands import FRENCH, worst_contrast

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
SIZES = {"desk": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}


@pytest.mark.parametrize("kind", ["qa_match", "web_ranking"])
def test_the_mark_is_part_of_the_buttons_name_and_the_keys_stay_those_of_the_answers(
    at_work, make_records_task, person, kind
):
    task = make_records_task(kind, 3, redundancy=1)
    suggest_by_chance(task, 0.0)
    hands = at_work(task, person("ann", "en"), FRENCH, viewport=SIZES["desk"])
    page = hands.page
    marked = page.get_by_role("button", name="Suggested by a machine")
    assert marked.count() == 1
    suggested = marked.get_attribute("value")
    assert suggested in task.labels
    assert [button.get_attribute("value") for button in page.locator(".options button").all()] == task.labels
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert worst_contrast(page) >= 4.5, scheme
    for size in SIZES.values():
        page.set_viewport_size(size)
        button, mark = marked.bounding_box(), page.locator(".suggested").bounding_box()
        assert button["x"] <= mark["x"]
        assert mark["x"] + mark["width"] <= button["x"] + button["width"]
        assert mark["y"] + mark["height"] <= button["y"] + button["height"]
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    other = next(label for label in task.labels if label != suggested)
    hands.press_and_wait(f"Digit{task.labels.index(other) + 1}")
    assert Judgment.objects.get().label == other
