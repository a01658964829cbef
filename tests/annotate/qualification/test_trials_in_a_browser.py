"""Reading, practising, failing and passing the test in a real browser."""

import pytest

from annotate.controls.qualification import next_question
from annotate.models import Judgment, TrialAnswer
from annotate.quality.guideline_versions import new_version
from corpora.models import Item
from tests.annotate.acts import answer
from tests.annotate.hands import FRENCH, Hands, let_guard_pass, lose_reply, move_clock, worst_contrast
from tests.annotate.qualification.trials import OTHER, PATH, go_through, practised
from tests.looks import set_look, sticks_out

pytestmark = pytest.mark.django_db(transaction=True)
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


def right_key(annotator, *, right=True):
    """Return the key of the right or the wrong answer to the question on the screen."""
    label = next_question(annotator.trials.filter(finished_at=None).get()).gold_answer.label
    return {"1": "Digit1", "0": "Digit2"}[label if right else OTHER[label]]


def heading(page):
    return page.inner_text("#work h1")


def test_by_keyboard_one_reads_practises_fails_passes_and_works(new_page, task, ann):
    page = new_page(user=ann.user)
    hands = Hands(page, FRENCH)
    page.goto("/")
    page.click("text=Take the test in English")
    assert "version 1.0" in page.inner_text("#work")
    let_guard_pass(page)
    hands.press("Enter")  # I have read them
    page.wait_for_selector("#answers")
    for right, message in ((False, "Correct: Yes"), (True, "Right: No")):
        hands.press_and_wait(right_key(ann, right=right))
        assert message in page.inner_text(".explained")
        hands.press_and_wait("Enter")
    assert heading(page) == "The test in English"
    for right, result in ((False, "Not passed: 0 of 4 right"), (True, "Passed: 4 of 4 right")):
        let_guard_pass(page)
        hands.press("Enter")  # Start the test; Take the test again
        page.wait_for_selector("#answers")
        for _ in range(4):
            hands.press_and_wait(right_key(ann, right=right))
        assert heading(page) == result
    let_guard_pass(page)
    hands.press("Enter")  # Start work
    page.wait_for_selector("button:has-text('Skip')")
    hands.press_and_wait("Digit1")
    assert Judgment.objects.get().label == "1"


def test_an_answer_whose_reply_was_lost_is_counted_once_and_one_of_a_tab_that_is_behind_is_refused_in_its_place(
    new_page, task, ann, console_errors
):
    practised(ann, task)
    page = new_page(user=ann.user)
    page.goto(PATH)
    hands = Hands(page, FRENCH)
    lose_reply(page, "/answer/")
    let_guard_pass(page)
    hands.press("Digit1")
    page.wait_for_selector("text=There is no connection")
    console_errors.clear()  # the lost reply
    hands.press_and_wait("Digit1")
    assert "question 2 of 4" in page.inner_text(".tally")
    answered = TrialAnswer.objects.filter(trial__kind="test").exclude(label="")
    assert answered.count() == 1
    answer(ann, next_question(answered.get().trial).pk, "1")
    let_guard_pass(page)
    hands.press("Digit2")
    page.wait_for_selector("#notice .notice")
    assert "You have already answered Yes here" in page.inner_text("#notice")
    assert "question 2 of 4" in page.inner_text(".tally")
    console_errors.clear()  # the refusal
    with page.expect_navigation():
        hands.press("Enter")
    assert "question 3 of 4" in page.inner_text(".tally")


LONG = "Donaudampfschifffahrtsgesellschaft" * 6


def every_step(page, task, annotator):
    """Take a page through every step and yield each step's name while it is shown."""
    page.goto("/")
    yield "home"
    page.goto("/tasks/crowd/")
    yield "queue"
    page.goto(PATH)
    yield "guidelines"
    page.click("text=I have read them")
    page.wait_for_selector("#answers")
    yield "practice"
    let_guard_pass(page)
    page.click("#answers button[value='1']")
    page.wait_for_selector(".explained.right")
    yield "right"
    page.click("text=Next")
    page.wait_for_selector("#answers")
    let_guard_pass(page)
    page.click("#answers button[value='1']")
    page.wait_for_selector(".explained:not(.right)")
    yield "wrong"
    move_clock(page, 1000)  # the link is where the answer was tapped: presses.js
    page.click("text=Continue to the test")
    page.wait_for_selector("text=Start the test")
    yield "test"
    page.click("text=Start the test")
    page.wait_for_selector("#answers")
    yield "question"
    for wrong in (2, 1):
        go_through(annotator, task, "test", wrong=wrong)
        page.goto(PATH)
        yield f"{wrong} missed"
    new_version(task, "en", "Otherwise.", major=True)
    page.goto(PATH)
    yield "new guidelines"
    page.goto("/tasks/crowd/guidelines/")
    yield "guidelines alone"


LOOKS = [((1280, 740), "light", "none"), ((390, 844), "dark", "none")]


@pytest.mark.slow
def test_at_every_step_nothing_sticks_out_all_is_legible_and_buttons_fit_a_thumb(new_page, task, ann):
    Item.objects.update(fields={"question": LONG, "passage": LONG})
    task.gold_answers.update(explanation=LONG)
    new_version(task, "en", f"# {LONG}\n\n| a | b |\n|---|---|\n| {LONG} | {LONG} |", major=False)
    page = new_page(user=ann.user, **PHONE)
    for step in every_step(page, task, ann):
        for look in LOOKS:
            set_look(page, look)
            assert not sticks_out(page), (step, look)
            assert worst_contrast(page) >= 4.5, (step, look)
            heights = page.locator("#work button:not(.plain):visible, #work a.primary:visible").evaluate_all(
                "nodes => nodes.map(node => node.getBoundingClientRect().height)"
            )
            assert min(heights, default=44) >= 44, (step, look)
