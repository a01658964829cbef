"""Twenty preferences by keyboard alone in a real browser: on a desktop, on a phone, and with an Arabic message."""

from collections import Counter

import pytest

from annotate.models import Judgment, Side
from tests.annotate.hands import ARABIC, FRENCH, RUSSIAN, let_guard_pass, worst_contrast
from tests.annotate.preferences.test_known_answers import gold_file

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

DESK = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
SIZES = pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
# Replies as long as systems suggest them.
LONGER = {
    "mt5": lambda row: [
        "Yes, that would be lovely, thank you.",
        "I am afraid I cannot make it.",
        f"When? ({row['id']})",
    ],
    "bert": lambda row: ["Thanks!", "What do you mean by that, exactly?", "I have been there last year, it was great."],
}
RTL = {
    "mt5": lambda row: ["شكرا جزيلا لك", "لا أستطيع الحضور اليوم", f"متى؟ {row['id']}"],
    "bert": lambda row: ["نعم", "ماذا تقصد بذلك؟", "كنت هناك في العام الماضي وكان رائعا"],
}


@pytest.fixture
def reader(person):
    return person("ann", "en ar")


@pytest.mark.parametrize(
    ("size", "language", "replies", "layout"),
    [(DESK, "en", LONGER, FRENCH), (PHONE, "ar", RTL, ARABIC)],
    ids=["english at a desk", "arabic on a phone"],
)
def test_twenty_preferences_by_keys_alone(at_work, compare, reader, size, language, replies, layout):
    task = compare(number=21, languages=(language,), replies=replies)
    hands = at_work(task, reader, layout, **size)
    pressed = ["Digit1", "Digit2", "Digit3", "Digit1"] * 5
    seen = []
    for key in pressed:
        seen.append(hands.page.inner_text(".set:first-child li:first-child"))
        hands.press_and_wait(key)
    assert "20 answered" in " ".join(hands.page.inner_text(".tally").split())
    judgments = Judgment.objects.order_by("pk").values_list("unit", "label")
    first = dict(Side.objects.values_list("unit", "first"))
    sides = ["tie" if label == "tie" else "first" if label == first[unit] else "second" for unit, label in judgments]
    assert sides == [{"Digit1": "first", "Digit2": "second", "Digit3": "tie"}[key] for key in pressed]
    shown = {name: reply({"id": ""})[0] for name, reply in replies.items()}
    assert seen == [shown[first[unit]] for unit, _ in judgments]
    # Undo shows the last pair again in the same order, and skipping moves past it.
    hands.press_and_wait("KeyZ")
    assert hands.page.inner_text(".set:first-child li:first-child") == seen[-1]
    hands.press_and_wait("Space")
    assert Counter(Judgment.objects.live().values_list("kind", flat=True)) == {"answer": 19, "skip": 1}


@SIZES
@pytest.mark.parametrize(("language", "replies"), [("en", LONGER), ("ar", RTL)], ids=["english", "arabic"])
def test_message_sets_and_answers_are_all_in_view_and_have_contrast(at_work, compare, reader, size, language, replies):
    task = compare(number=2, languages=(language,), replies=replies)
    page = at_work(task, reader, RUSSIAN, **size).page
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert worst_contrast(page) >= 4.5, scheme
    boxes = [page.locator(selector).bounding_box() for selector in ("#post .message", ".set >> nth=0", ".set >> nth=1")]
    answers = page.locator(".options button")
    bar = [answers.nth(number).bounding_box() for number in range(3)]
    message, first, second = boxes
    assert message["y"] >= 0
    assert message["y"] + message["height"] <= first["y"]
    if size is PHONE:
        assert first["y"] + first["height"] <= second["y"]
        assert second["x"] == first["x"]
    else:
        # The first set is on the left in every language, as key 1 is left of key 2.
        assert first["x"] + first["width"] <= second["x"]
        assert first["y"] == second["y"]
    assert max(box["y"] + box["height"] for box in boxes) <= min(box["y"] for box in bar)
    assert max(box["y"] + box["height"] for box in bar) <= size["viewport"]["height"]
    # With messages in Arabic, the answers are in Arabic too.
    called = [task.kind.answers[label].name(language) for label in task.kind.answers]
    assert [answers.nth(number).inner_text().split("\n")[-1] for number in range(3)] == called
    assert ("Set 1" in called) is (language == "en")
    assert page.evaluate("document.documentElement.scrollWidth") <= size["viewport"]["width"]
    assert page.locator(".set li").first.evaluate("each => getComputedStyle(each).direction") == (
        "rtl" if language == "ar" else "ltr"
    )


def test_before_an_answer_is_taken_back_it_is_seen_what_this_one_was(at_work, compare, reader):
    hands = at_work(compare(number=3, replies=LONGER), reader, RUSSIAN, **PHONE)
    page, stood = hands.page, []
    for key in ("Digit2", "Digit3"):
        stood.append(page.locator(".set li").all_inner_texts())
        hands.press_and_wait(key)
    page.click("#account > summary")
    page.click("text=Your answers")
    for row, number, chosen in ((0, 1, []), (1, 0, ["Set 2"])):  # the last answer is on top
        answer = page.locator(".sets-answered").nth(row)
        assert answer.locator("li").first.is_hidden()
        answer.locator("summary").click()
        assert answer.locator("li").all_inner_texts() == stood[number]
        assert [text.split("\n")[0] for text in answer.locator(".preferred").all_inner_texts()] == [
            f"2 {name} your answer" for name in chosen
        ]
    for size in (PHONE, DESK):
        page.set_viewport_size(size["viewport"])
        assert page.evaluate("document.documentElement.scrollWidth") <= size["viewport"]["width"]
    assert worst_contrast(page) >= 4.5


def test_in_practice_steps_and_what_is_explained_are_as_wide_as_the_sets(new_page, compare, reader, tmp_path):
    compare(number=30, gold=[str(gold_file(tmp_path))], test_items=8)
    page = new_page(user=reader.user, **DESK)
    page.goto("/tasks/talk/qualification/en/")
    page.click("form.onwards button")

    def are_as_wide(*parts):
        article = page.locator("#post").bounding_box()
        for part in parts:
            box = page.locator(part).bounding_box()
            assert (box["x"], box["width"]) == (article["x"], article["width"]), part

    page.wait_for_selector(".set")
    are_as_wide(".stepper", ".answers > :not(input) >> nth=0")
    let_guard_pass(page)
    page.keyboard.press("Digit1")
    page.wait_for_selector(".explained")
    are_as_wide(".stepper", ".explained")
