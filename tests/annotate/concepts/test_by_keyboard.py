"""Choosing concepts in a real browser by keyboard alone: two people, then the adjudicator."""

import json

import pytest
from playwright.sync_api import expect

from annotate.core import stages
from annotate.models import Change, ChosenConcept, Judgment, Suggestion, Unit
from corpora.models import Concept
from tests.annotate.concepts.acts import ROOT, choose, import_acts, suggesting, task_of
from tests.annotate.hands import FRENCH, let_guard_pass, move_clock

WORDS = 3420  # of the longest of 300 acts
DESK = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
FRESH_MEAT, AWARD, PIP_FRUIT, CITRUS = "4689", "20", "1118", "693"

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("eurovoc"),
    pytest.mark.slow,
]


def long_act():
    """Return an act with the articles of many acts, cut to a fixed number of words."""
    lines = (ROOT / "fixtures/eurlex/train.jsonl").read_text(encoding="utf-8").splitlines()
    acts = [json.loads(line) for line in lines]
    act = acts[0] | {"main_body": [], "attachments": ""}
    left = WORDS - len(" ".join(act[key] for key in ("title", "header", "recitals")).split())
    for article in (text for source in acts * 9 for text in source["main_body"]):
        if left > 0:
            act["main_body"].append(" ".join(article.split()[:left]))
            left -= len(article.split())
    return act


@pytest.fixture
def task(tmp_path):
    file = tmp_path / "train.jsonl"
    file.write_text(json.dumps(long_act()) + "\n", encoding="utf-8")
    import_acts(files=[file])
    task = task_of()
    suggesting(task, 0.0)
    unit = task.units.get()
    Suggestion.objects.create(unit=unit, system="a@1", ranked=[PIP_FRUIT, CITRUS, FRESH_MEAT])
    return task


@pytest.fixture
def disputed(task, readers, person):
    """The adjudicator of an act on which no two people agree."""
    for reader, key in zip(readers, (PIP_FRUIT, CITRUS, FRESH_MEAT), strict=True):
        choose(reader, task, key)
    assert task.units.get().stage == stages.ADJUDICATION
    return person("ada", "en", adjudicates=True)


def chosen(page, number):
    """Wait until this many concepts are chosen."""
    page.wait_for_selector(f"#chosen h2 b:text-is('{number}')")


def search(page, typed):
    page.keyboard.type(typed)
    page.wait_for_selector(f'#found[data-typed="{typed}"]')


def value(page):
    return page.evaluate("document.activeElement.value")


def go_to(page, wanted):
    """Move down the list until the row with this action has the focus."""
    for _ in range(60):
        if value(page) == wanted:
            return
        page.keyboard.press("ArrowDown")
    raise AssertionError(f"{wanted} is not in the list")


def test_an_act_of_3420_words_gets_five_concepts_by_keyboard_alone_from_a_reader_and_an_adjudicator(
    at_work, new_page, task, readers, person
):
    unit = task.units.get()
    assert len(" ".join(unit.item.fields[name] for name in task.kind.fields).split()) == WORDS
    readers[0].languages.create(language="fr")
    target = Concept.objects.filter(schemes__domain__isnull=False, broader=None).order_by("-key").first()
    scheme = target.schemes.exclude(domain=None).order_by("key").first()

    page = at_work(task, readers[0], FRENCH, **DESK).page
    assert "Done" in page.inner_text("#done")
    let_guard_pass(page)
    page.keyboard.press("1")
    chosen(page, 1)
    page.keyboard.press("2")
    chosen(page, 2)
    page.keyboard.press("f")
    search(page, "fre mea")
    page.keyboard.press("Enter")
    chosen(page, 3)
    # The field is empty again, and has the focus.
    assert (page.evaluate("document.activeElement.id"), value(page)) == ("typed", "")
    search(page, "adjudic march")
    page.keyboard.press("Enter")
    chosen(page, 4)
    page.keyboard.press("Escape")
    page.keyboard.press("b")
    page.wait_for_selector('#found [name=view][value="browse"]', state="attached")
    for place in (f"scheme:{scheme.domain.key}", f"scheme:{scheme.key}"):
        go_to(page, f"open {place}")
        page.keyboard.press("ArrowRight")
        page.wait_for_selector(f'#found [name=at][value="{place}"]', state="attached")
    go_to(page, f"add {target.key} browsed")
    page.keyboard.press("Enter")
    chosen(page, 5)
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=1 answered")
    ways = {
        choice.concept.key: (choice.way, choice.rank)
        for choice in ChosenConcept.objects.filter(judgment__annotator=readers[0]).select_related("concept")
    }
    assert ways == {
        PIP_FRUIT: ("suggested", 1),
        CITRUS: ("suggested", 2),
        FRESH_MEAT: ("searched", None),
        AWARD: ("searched", None),
        target.key: ("browsed", None),
    }

    for reader, key in zip(readers[1:], ("1605", "1309"), strict=True):
        choose(reader, task, key)
    unit.refresh_from_db()
    assert unit.stage == stages.ADJUDICATION

    ada = person("ada", "en", adjudicates=True)
    page = new_page(user=ada.user, **DESK)
    page.goto(f"/tasks/{task.name}/adjudication/{unit.pk}/")
    assert f"1 vote: {readers[0].pseudonym}" in page.inner_text("#found")
    move_clock(page, 1000)
    page.keyboard.press("1")
    chosen(page, 1)
    page.keyboard.press("2")
    chosen(page, 2)
    while page.evaluate("document.activeElement.name") != "reason":
        page.keyboard.press("Tab")
    page.keyboard.type("the title says so")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/adjudication/?decided=*")
    unit.refresh_from_db()
    assert (unit.stage, len(unit.label.split())) == (stages.LABELLED, 2)
    assert Judgment.objects.get(annotator=ada).chosen.count() == 2


def test_a_key_is_heard_by_what_htmx_has_put_in_but_not_yet_settled(new_page, task, disputed):
    page = new_page(user=disputed.user, **DESK)
    page.goto(f"/tasks/{task.name}/adjudication/{task.units.get().pk}/")
    move_clock(page, 1000)
    # Pressed as soon as the page has the first answer; the required reason is still empty.
    page.evaluate(
        """() => document.addEventListener("htmx:afterRequest", () => {
          document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "2", code: "Digit2", bubbles: true }));
        }, { once: true })"""
    )
    page.keyboard.press("1")
    chosen(page, 2)


def test_what_is_typed_is_not_mistaken_for_what_was_found_before(at_work, task, readers):
    page = at_work(task, readers[0], FRENCH, **DESK).page
    let_guard_pass(page)
    # Typed and entered before any response can have arrived.
    page.evaluate(
        """() => {
          const field = document.querySelector("#typed");
          field.focus();
          field.value = "fre mea";
          field.dispatchEvent(new Event("input", { bubbles: true }));
          const enter = { key: "Enter", code: "Enter", bubbles: true, cancelable: true };
          field.dispatchEvent(new KeyboardEvent("keydown", enter));
        }"""
    )
    chosen(page, 1)
    assert page.inner_text("#chosen li").startswith("fresh meat")


def test_who_chooses_by_arrows_goes_on_typing_in_the_search(at_work, task, readers):
    page = at_work(task, readers[0], FRENCH, **DESK).page
    let_guard_pass(page)
    page.keyboard.press("f")
    search(page, "import")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    chosen(page, 1)
    page.wait_for_selector("#typed:focus")
    search(page, "textile x")
    assert page.locator("#chosen li").count() == 1


def test_both_of_two_concepts_are_meant_by_a_key_and_enter_sends_them(at_work, task, readers):
    narrower = Concept.objects.exclude(broader=None).order_by("key").first()
    Suggestion.objects.update(ranked=[narrower.key, narrower.broader.first().key])
    page = at_work(task, readers[0], FRENCH, **DESK).page
    let_guard_pass(page)
    for number in (1, 2):
        page.keyboard.press(str(number))
        chosen(page, number)
    page.keyboard.press("m")
    page.wait_for_selector(".insist :checked")
    page.focus(".insist input")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=1 answered")
    assert len(Judgment.objects.get().label.split()) == 2


def test_a_draft_outlives_a_reload_and_goes_with_its_answer(at_work, task, readers):
    page = at_work(task, readers[0], FRENCH, **DESK).page
    let_guard_pass(page)
    page.keyboard.press("1")
    chosen(page, 1)
    page.keyboard.press("2")
    chosen(page, 2)
    page.reload()
    chosen(page, 2)
    assert Judgment.objects.count() == 0


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_what_is_chosen_and_the_buttons_are_always_in_sight(at_work, task, readers, size):
    page = at_work(task, readers[0], FRENCH, **size).page
    let_guard_pass(page)
    if size is PHONE:
        # Here, the text comes first.
        assert not page.is_visible("#typed")
        page.click(".finder summary")
    page.click("#found [data-row] >> nth=0")
    chosen(page, 1)
    for share in (0, 0.5, 1):
        page.evaluate("share => scrollTo(0, share * document.documentElement.scrollHeight)", share)
        for selector in ("#chosen li", "#done", ".outline a >> nth=0"):
            box = page.locator(selector).first.bounding_box()
            assert box["y"] >= 0, selector
            assert box["y"] + box["height"] <= size["viewport"]["height"], selector


def test_the_search_has_room_for_what_is_typed_and_its_outline_and_the_comment_touches_nothing(at_work, task, readers):
    page = at_work(task, readers[0], FRENCH, **DESK).page
    style = page.locator("#typed").evaluate(
        "field => [getComputedStyle(field).paddingLeft, getComputedStyle(field).paddingRight]"
    )
    assert [float(side.removesuffix("px")) for side in style] == [pytest.approx(8, abs=3), pytest.approx(40, abs=3)]
    room = "field => field.getBoundingClientRect().left - field.closest('.finder').getBoundingClientRect().left"
    assert page.locator("#typed").evaluate(room) >= 5  # an outline of three pixels, two apart
    comment, tally = (page.locator(selector).bounding_box() for selector in (".comment textarea", ".tally"))
    assert comment["y"] + comment["height"] <= tally["y"]


def test_guidelines_are_in_reach_wherever_a_long_document_has_scrolled_to(at_work, task, readers):
    page = at_work(task, readers[0], FRENCH, **DESK).page
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight / 2)")
    expect(page.locator("#guidelines > summary")).to_be_in_viewport()
    page.click("#guidelines > summary")
    expect(page.locator("#guidelines-text")).to_be_visible()
    assert page.locator("#post").evaluate("post => post.getBoundingClientRect().top") < 0


def test_the_outline_leads_to_each_zone_and_article(at_work, task, readers):
    page = at_work(task, readers[0], FRENCH, **DESK).page
    links = page.locator(".outline a")
    assert [links.nth(place).inner_text() for place in range(3)] == ["Header", "Recitals", "Main body"]
    last = links.last
    target = last.get_attribute("href")
    last.click()
    expect(page.locator(target)).to_be_in_viewport()
    assert Unit.objects.get().stage == stages.QUEUED


def test_what_was_chosen_is_chosen_otherwise_later_by_keys_alone(new_page, task, readers):
    first = choose(readers[0], task, AWARD, PIP_FRUIT)
    page = new_page(user=readers[0].user, **DESK)
    page.goto(f"/tasks/{task.name}/answers/{first.pk}/")
    let_guard_pass(page)
    chosen(page, 2)
    page.keyboard.press("x")
    chosen(page, 1)
    page.keyboard.press("f")
    search(page, "fre mea")
    page.keyboard.press("Enter")
    chosen(page, 2)
    page.keyboard.press("Control+Enter")
    page.wait_for_url(f"**/tasks/{task.name}/answers/")
    assert set(Change.objects.get().label.split()) == {PIP_FRUIT, FRESH_MEAT}
