"""An annotator's day in a real browser: keys, languages, lost requests, and the look of the pages."""

import pytest
from django.utils import timezone

from annotate.kinds import Answer
from annotate.models import Judgment
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.conftest import DISPUTED
from tests.annotate.hands import (
    ARABIC,
    FRENCH,
    RUSSIAN,
    answers_of,
    let_guard_pass,
    move_clock,
    stop_clock,
    tap,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    "layout",
    [
        pytest.param(RUSSIAN, id="russian"),
        pytest.param(ARABIC, id="arabic", marks=pytest.mark.slow),
        pytest.param(FRENCH, id="french", marks=pytest.mark.slow),
    ],
)
def test_keys_are_places_on_the_keyboard_whatever_they_print(at_work, make_task, person, layout):
    task = make_task([DISPUTED] * 4)
    ann = person("ann", "de:5 en:4")
    hands = at_work(task, ann, layout)
    requests, before = [], hands.post
    hands.page.on("request", lambda request: requests.append(request.method))
    hands.press_and_wait("Digit2")
    assert (hands.post != before, requests) == (True, ["POST"])  # whose reply brings the next item
    hands.press_and_wait("Digit1")
    hands.press_and_wait("KeyZ")
    hands.press_and_wait("Digit2")
    hands.press_and_wait("Space")
    let_guard_pass(hands.page)
    hands.press("KeyQ")
    hands.press_and_wait("Digit1")
    english = ("answer", "en", "")
    assert answers_of(ann) == [english, english, ("skip", "", ""), ("answer", "und", "several")]


def test_a_key_held_down_or_meant_for_the_item_before_does_not_answer_the_next(at_work, make_task, person):
    ann = person("ann", "de:5 en:4")
    hands = at_work(make_task([DISPUTED] * 5), ann)
    page = hands.page
    stop_clock(page)
    hands.press_and_wait("Digit1")
    # While keys are ignored, they look dim.
    dim = page.locator(".guarded .languages kbd").first
    dim.wait_for()
    assert dim.evaluate("key => getComputedStyle(key).opacity") == "0.35"
    move_clock(page, 290)
    hands.press("Digit2")
    page.click("[data-key=Digit2]")
    move_clock(page, 20)
    page.locator(".guarded").wait_for(state="detached")
    assert page.locator(".languages kbd").first.evaluate("key => getComputedStyle(key).opacity") == "1"
    hands.press_and_wait("Digit1", after=0)
    let_guard_pass(page)
    for _ in range(20):
        hands.press("Digit1", repeat=True)
    hands.press_and_wait("Digit2")
    assert [label for _, label, _ in answers_of(ann)] == ["de", "de", "en"]


def test_the_picker_finds_a_language_by_any_of_its_names(at_work, make_task, person):
    ann = person("ann", "de")
    hands = at_work(make_task([DISPUTED] * 3), ann)
    let_guard_pass(hands.page)
    hands.press("KeyW")
    hands.page.keyboard.type("changed my mind")
    hands.press("Escape")
    # She reads "de", and has a button for it.
    for query in ("german", "עבר", "he"):
        let_guard_pass(hands.page)
        hands.press("KeyW")
        hands.page.keyboard.type(query)
        hands.press_and_wait("Enter")
    assert [label for _, label, _ in answers_of(ann)] == ["de", "he", "he"]


@pytest.mark.slow
def test_the_long_lists_of_languages_begin_anew_with_each_item_and_are_sent_again_only_if_they_change(
    at_work, make_task, person
):
    ann = person("ann", "de:5 en:4")
    hands = at_work(make_task([DISPUTED] * 5), ann)
    page = hands.page
    page.click("#picker summary")
    page.fill("#picker input", "no language is called so")
    page.evaluate("for (const open of [false, true]) document.querySelector('#picker').open = open")
    assert page.input_value("#picker input") == ""
    page.click("#picker summary")
    page.evaluate("for (const id of ['choices', 'picker', 'undefined']) document.getElementById(id).sent = 'once'")
    let_guard_pass(page)
    hands.press("KeyW")
    page.keyboard.type("german")
    hands.press_and_wait("Enter")
    assert not page.is_visible("#picker input")
    assert page.evaluate("document.activeElement.id") == "post"
    page.click("#picker summary")
    assert page.input_value("#picker input") == ""
    assert page.is_visible("#picker button:has-text('French')")
    page.click("#picker summary")
    let_guard_pass(page)
    hands.press("KeyQ")
    hands.press_and_wait("Digit2")
    assert not page.is_visible("#undefined .sheet")
    hands.press_and_wait("Digit2")
    hands.press_and_wait("KeyZ")
    assert page.evaluate("['choices', 'picker', 'undefined'].every(id => document.getElementById(id).sent)")
    assert not page.is_visible("#choices button:has-text('French')")
    ann.languages.create(language="fr")
    hands.press_and_wait("Digit1")
    assert page.is_visible("#choices button:has-text('French')")
    assert answers_of(ann) == [("answer", "de", ""), ("answer", "und", "mixed"), ("answer", "de", "")]


@pytest.mark.slow
def test_on_a_phone_items_are_large_buttons_fit_a_thumb_and_the_comment_is_not_covered(at_work, make_task, person):
    ann = person("ann", "de")
    options = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    page = at_work(make_task([DISPUTED] * 2), ann, **options).page
    assert page.locator("#post p").evaluate("node => parseFloat(getComputedStyle(node).fontSize)") >= 24
    heights = "nodes => nodes.map(node => node.getBoundingClientRect().height)"
    assert min(page.locator(".answers button:visible, .answers summary").evaluate_all(heights)) >= 44
    let_guard_pass(page)
    tap(page, "summary:has-text('Undefined')")
    let_guard_pass(page)
    tap(page, "button:has-text('not on the list')")
    tap(page, "[name=comment]")  # this fails if something covers it
    page.keyboard.type("Wolof")
    page.keyboard.press("Enter")
    page.wait_for_selector("#work:has-text('1 answered')")
    assert answers_of(ann) == [("answer", "und", "unlisted")]


def test_a_language_off_the_list_must_be_named_and_a_comment_on_another_answer_names_none(at_work, make_task, person):
    ann = person("ann", "de")
    hands = at_work(make_task([DISPUTED] * 3), ann)
    let_guard_pass(hands.page)
    hands.press("KeyQ")
    hands.press("Digit4")
    assert answers_of(ann) == []
    hands.press("Escape")
    hands.page.fill("[name=comment]", "a dialect")
    hands.press("Enter")
    hands.page.locator("[name=comment]").blur()
    hands.press_and_wait("Digit1")
    let_guard_pass(hands.page)
    hands.press("KeyQ")
    hands.press("Digit4")
    hands.page.keyboard.type("Wolof")
    hands.press_and_wait("Enter")
    assert answers_of(ann) == [("answer", "de", ""), ("answer", "und", "unlisted")]
    assert [judgment.comment for judgment in Judgment.objects.order_by("pk")] == ["a dialect", "Wolof"]


def test_an_answer_that_the_server_could_not_save_is_told_from_another_act(at_work, make_task, person, console_errors):
    ann = person("ann", "de")
    hands = at_work(make_task([DISPUTED] * 3), ann)
    page = hands.page
    hands.press_and_wait("Digit1")
    acts = {
        "**/judge/": ("Digit1", "Your answer is still here"),
        "**/undo/": ("KeyZ", "The server could not do this"),
    }
    for address in acts:
        page.route(address, lambda route: route.fulfill(status=500, body="no"), times=1)
    page.reload()  # a page that is already there may go on for a moment without the routes
    for key, notice in acts.values():
        let_guard_pass(page)
        hands.press(key)
        page.wait_for_selector(f"#notice:has-text('{notice}')")
    assert len(answers_of(ann)) == 1
    console_errors.clear()  # the refusals


def test_idle_time_does_not_count(at_work, make_task, person):
    ann = person("ann", "de")
    task = make_task([DISPUTED])
    page_at_work = at_work(task, ann)
    # An hour passes for the server and for the page, without activity.
    page = page_at_work.page
    ann.leases.update(opened_at=timezone.now() - timezone.timedelta(hours=1))
    stop_clock(page)
    page_at_work.press_and_wait("Digit1", after=3_600_000)
    assert 29 < Judgment.objects.get().active_seconds < 40


def test_each_paragraph_has_its_own_direction_and_nothing_else_tells_them_apart(at_work, make_task, person):
    texts = {"مرحبا بالعالم": "rtl", "שלום עולם": "rtl", "hello שלום": "ltr"}
    task = make_task([{"votes": DISPUTED, "text": f"{text}\nLatin letters"} for text in texts])
    hands = at_work(task, person("ann", "de"))
    shown = set()
    for _ in texts:
        paragraphs = hands.page.locator("#post p")
        text = paragraphs.first.inner_text()
        shown.add(text)
        styles = paragraphs.evaluate_all(
            "nodes => nodes.map(node => [getComputedStyle(node).direction, node.attributes.length])"
        )
        assert styles == [[texts[text], 1], ["ltr", 1]]
        fonts = paragraphs.evaluate_all("nodes => nodes.map(node => getComputedStyle(node).fontFamily)")
        assert len(set(fonts)) == 1
        assert "lang" not in hands.page.locator("#post").evaluate("node => node.getAttributeNames()")
        hands.press_and_wait("Digit1")
    assert shown == texts.keys()


def test_everything_works_without_javascript(new_page, make_task, person, console_errors):
    task = make_task([DISPUTED] * 4)
    ann = person("ann", "de")
    page = new_page(user=ann.user, java_script_enabled=False)
    page.goto("/")
    page.click("main button.primary")
    page.click("button:has-text('Start')")  # below the guidelines
    page.click("button:has-text('German')")
    page.click("button:has-text('Skip')")
    page.click("button:has-text('Undo')")
    page.click("summary:has-text('Undefined')")
    page.click("button:has-text('not on the list')")
    assert "Write in the comment which one it is" in page.inner_text("#notice")
    console_errors.clear()  # the answer was refused with status 400
    page.fill("[name=comment]", "Wolof")
    page.click("summary:has-text('Undefined')")
    page.click("button:has-text('not on the list')")
    page.click("summary:has-text('Another language')")
    page.click("button:has-text('Hebrew')")
    assert [label for _, label, _ in answers_of(ann)] == ["de", "und", "he"]
    page.click("#account > summary")
    page.click("text=Your answers")
    page.click("button:has-text('Take back') >> nth=0")
    assert [label for _, label, _ in answers_of(ann)] == ["de", "und"]
    assert task.units.filter(stage="LABELLED").count() == 2


WORD, WIDTHS = "Donaudampfschifffahrtsgesellschaft" * 60, (1280, 390)


def assert_fits(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width, page.url


@pytest.mark.slow
def test_no_page_is_wider_than_the_screen_for_one_long_word(new_page, make_task, person):
    task = make_task([{"votes": DISPUTED, "text": text} for text in (WORD, f"{WORD}y")])
    ann = person("ann", "de en fr he")
    judge(ann, take(ann, task).pk, Answer("de", comment=WORD))
    task.units.filter(judgments__annotator=ann).update(stage="ADJUDICATION", label="")
    page, ada = new_page(user=ann.user), new_page(user=person("ada", adjudicates=True).user)
    ada.goto(f"/tasks/task/adjudication/{task.units.get(stage='ADJUDICATION').pk}/")
    assert WORD in ada.inner_text("aside")
    for width in WIDTHS:
        assert_fits(ada, width)
        for address in ("/", "/account/", "/tasks/task/guidelines/"):
            page.goto(address)
            assert_fits(page, width)
        page.goto("/")
        page.click("button:has-text('Start'), button:has-text('Continue')")
        assert WORD in page.inner_text("#post")
        assert_fits(page, width)
        page.goto("/tasks/task/answers/")
        assert_fits(page, width)
        assert page.locator(".clamped").bounding_box()["height"] < 100
        # Ordinary words are not broken for this, and the text is not squeezed.
        assert page.locator("td.text").bounding_box()["width"] > width / 4
        assert page.locator("text=Take back").bounding_box()["height"] < 30


@pytest.mark.slow
def test_on_a_phone_a_task_s_name_leaves_room_for_its_figures(make_task, manager, new_page):
    task = make_task([DISPUTED])
    task.title = "Which of the many languages of this world is this post of July in, if it is in any? " + 50 * "x"
    task.save()
    page = new_page(user=manager, viewport={"width": 390, "height": 800})
    page.goto("/manage/")
    assert_fits(page, 390)
    row = page.locator(".task-rows li").first.bounding_box()
    for part in ("progress", ".badge"):
        box = page.locator(f".task-rows {part}").first.bounding_box()
        assert row["x"] <= box["x"]
        assert box["x"] + box["width"] <= row["x"] + row["width"]


def test_enter_is_heard_at_once_where_there_is_nothing_yet_to_answer(new_page, make_task, person):
    task, ann = make_task([DISPUTED] * 2), person("ann", "de")
    page = new_page(user=ann.user)
    page.goto(f"/tasks/{task.name}/")
    stop_clock(page)
    assert page.locator(".guarded").count() == 0
    page.keyboard.press("Enter")
    page.wait_for_selector("#post")
    # The new post has a guard.
    assert page.locator(".guarded").count() == 1
