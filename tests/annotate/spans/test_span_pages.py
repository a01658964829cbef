"""Marking spans in a real browser by keyboard, mouse and touch, and deciding on the marks of others."""

import re

import pytest
from django.urls import reverse

from annotate.actions.registry import call_command
from annotate.controls import qualification
from annotate.controls.qualification import next_question
from annotate.core.refusals import AlreadyAnswered
from annotate.kinds import Answer
from annotate.kinds.forms.spans import spans_in, text_of
from annotate.models import Judgment, Trial, TrialAnswer
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.acts import answer, begin, state
from tests.annotate.hands import let_guard_pass, worst_contrast
from tests.annotate.spans.marked_texts import KEYS, TEXTS, marks_of
from tests.looks import faults

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
CHOSEN = "() => ['chosen', 'marked'].flatMap(name => [...CSS.highlights.get(`${name}-span`) || []]).map(String).join()"


def mark_by_keys(page, words, key):
    """Go to a name by words, correct its ends by characters, and press the key of its label."""
    back = page.evaluate("getComputedStyle(document.querySelector('.markable p')).direction") == "rtl"
    on, off = ("ArrowLeft", "ArrowRight") if back else ("ArrowRight", "ArrowLeft")
    for _ in range(200):
        page.keyboard.press(on)
        chosen = page.evaluate(CHOSEN)
        if words.startswith(chosen) or chosen.startswith(words) or chosen.endswith(words):
            break
    for _ in range(20):
        if len(chosen := page.evaluate(CHOSEN)) >= len(words):
            break
        page.keyboard.press(f"Shift+{on}")
    for _ in range(20):
        if (chosen := page.evaluate(CHOSEN)) == words:
            break
        page.keyboard.press(f"Control+{off}" if not chosen.endswith(words) else f"Control+Shift+{on}")
    assert page.evaluate(CHOSEN) == words
    page.keyboard.press(key)


@pytest.mark.parametrize(
    "language", ["en", *(pytest.param(code, marks=pytest.mark.slow) for code in TEXTS if code != "en")]
)
def test_ten_names_are_marked_by_keys_and_their_offsets_are_pythons(at_work, person, spans_task, language):
    ann, (text, names) = person("ann", language), TEXTS[language]
    page = at_work(spans_task([text], language=language), ann, {}).page
    let_guard_pass(page)
    places = marks_of(language)
    for name, place in sorted(zip(names.split("|"), places, strict=True), key=lambda pair: pair[1]):
        words, _, label = name.rpartition(":")
        mark_by_keys(page, words, KEYS[label])
        assert page.evaluate(CHOSEN) == text[place.start : place.end]
    page.keyboard.press("Enter")
    page.wait_for_selector("#work > .empty")
    [answer] = Judgment.objects.values_list("label", flat=True)
    assert answer == text_of(places)
    assert [text[span.start : span.end] for span in spans_in(answer)] == [
        text[place.start : place.end] for place in sorted(places)
    ]


def marks_on(page, selector=".markable mark"):
    return page.eval_on_selector_all(selector, "nodes => nodes.map(node => `${node.textContent}:${node.dataset.tag}`)")


@pytest.fixture
def marking(at_work, person, spans_task):
    """marking("Ada met Noël.") returns the page on which Ann marks the first of these texts."""

    def begin(*texts, **options):
        page = at_work(spans_task(texts), person("ann", "en"), {}, **options).page
        let_guard_pass(page)
        return page

    return begin


def middle_of(page, words):
    """Return the centre of these words, which are a separate element."""
    box = page.evaluate(
        """words => { const range = document.createRange();
             const walk = document.createTreeWalker(document.querySelector('.passage dd p'), NodeFilter.SHOW_TEXT);
             for (let node = walk.nextNode(); node; node = walk.nextNode()) {
               const at = node.data.indexOf(words);
               if (at < 0) continue;
               range.setStart(node, at); range.setEnd(node, at + words.length);
               return range.getBoundingClientRect().toJSON(); } }""",
        words,
    )
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def click_on(page, words):
    page.mouse.click(*middle_of(page, words))


def drag(page, words, *modifiers):
    """Select words with the mouse, from the middle of their first letter to the middle of their last one."""
    ends = page.evaluate(
        """words => { const range = document.createRange(), [text] = document.querySelector('.markable p').childNodes;
             return [0, words.length - 1].map(index => { const at = text.data.indexOf(words) + index;
               range.setStart(text, at); range.setEnd(text, at + 1);
               const { left, right, y, height } = range.getBoundingClientRect();
               return [index ? right - 1 : left + 1, y + height / 2]; }); }""",
        words,
    )
    for key in modifiers:
        page.keyboard.down(key)
    page.mouse.move(*ends[0])
    page.mouse.down()
    page.mouse.move(*ends[1], steps=4)
    page.mouse.up()
    for key in modifiers:
        page.keyboard.up(key)


def test_marks_are_changed_removed_undone_and_announced_and_move_no_word(marking):
    page = marking("Ada Lovelace met Noe\u0308l in Rome.")
    at = "['.markable p', '#answers'].map(name => document.querySelector(name).getBoundingClientRect().height).join()"
    before = page.evaluate(at)
    page.keyboard.press("Digit1")
    assert page.inner_text("#span-said").startswith("Select words first")
    assert page.evaluate(at) == before
    page.wait_for_selector("#span-said:not(.unseen)")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#span-said") == "Ada"
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Digit1")
    assert page.inner_text("#span-said") == "Person: \u2068Ada Lovelace\u2069"
    page.keyboard.press("Digit2")
    assert marks_on(page) == ["Ada Lovelace:ORG"]
    page.keyboard.press("Control+z")
    assert marks_on(page) == ["Ada Lovelace:PER"]
    page.keyboard.press("Control+ArrowLeft")
    assert page.evaluate(CHOSEN) == "Ada Lovelac"
    page.keyboard.press("Delete")
    assert marks_on(page) == []
    assert page.inner_text("#span-said") == "Removed"
    # The drag ends within a word whose last letter has an accent. Whole characters are marked.
    drag(page, "Noe", "Alt")
    page.wait_for_function(f"words => ({CHOSEN})() === words", arg="Noe\u0308")
    page.keyboard.press("Digit1")
    page.dblclick(".markable p", position={"x": 20, "y": 20})
    page.click(".spans button:has-text('Person')")
    assert marks_on(page) == ["Ada:PER", "Noe\u0308:PER"]
    assert page.evaluate(at) == before
    assert worst_contrast(page) >= 4.5
    page.reload()  # the mark is kept
    page.wait_for_function("() => document.querySelectorAll('.markable mark').length === 2")
    let_guard_pass(page)
    page.keyboard.press("Enter")
    page.wait_for_selector("#work > .empty")
    assert [judgment.label for judgment in Judgment.objects.all()] == ["0:3:PER 17:21:PER"]


@pytest.mark.slow
def test_the_second_item_a_refused_answer_and_an_undone_one_are_marked_by_clicks(marking, console_errors):
    page = marking("Ada met Noël in Rome.", "Ada met Noël in Rome, twice.")
    page.click("button:has-text('Done')")
    page.wait_for_selector("#notice .notice")
    console_errors.clear()  # the answer without marks was refused with status 400
    let_guard_pass(page)
    for words in ("Ada", "Rome"):
        click_on(page, words)
        page.click(".spans button:has-text('Person')")
    assert marks_on(page) == ["Ada:PER", "Rome:PER"]
    text = page.inner_text(".record .passage dd")
    page.click("button:has-text('Done')")
    page.wait_for_function("text => document.querySelector('.record .passage dd').innerText !== text", arg=text)
    let_guard_pass(page)
    assert "\u2068“Ada”\u2069 \u2068Person\u2069; \u2068“Rome”\u2069" in page.inner_text(".tally .last")
    click_on(page, "Noël")
    page.click(".spans button:has-text('Place')")
    assert marks_on(page) == ["Noël:LOC"]
    [colour] = page.eval_on_selector_all(
        ".markable mark", "nodes => nodes.map(n => getComputedStyle(n).backgroundColor)"
    )
    assert colour != "rgba(0, 0, 0, 0)"
    page.click("button:has-text('Undo') >> nth=-1")
    page.wait_for_function("text => document.querySelector('.record .passage dd').innerText === text", arg=text)
    let_guard_pass(page)
    assert [mark.partition(":")[0] for mark in marks_on(page)] == ["Ada", "Rome"]
    click_on(page, "Noël")
    page.click(".spans button:has-text('Person')")
    page.click("button:has-text('Done')")
    page.wait_for_function("text => document.querySelector('.record .passage dd').innerText !== text", arg=text)
    assert Judgment.objects.live().get().label == "0:3:PER 8:12:PER 16:20:PER"


@pytest.mark.slow
def test_the_mouse_chooses_words_or_with_alt_their_parts_and_replaced_marks_are_told(marking):
    page = marking("\u200eAda\u200e met Noëlle in Rome.")
    drag(page, "met Noëll")
    page.wait_for_function(f"words => ({CHOSEN})() === words", arg="met Noëlle")
    page.keyboard.press("Digit1")
    page.evaluate("getSelection().empty()")
    click_on(page, "Rome")
    page.keyboard.press("Digit3")
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    drag(page, "Noël", "Alt")
    page.wait_for_function(f"words => ({CHOSEN})() === words", arg="Noël")
    page.keyboard.press("Digit1")
    page.evaluate("getSelection().empty()")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Digit2")
    for _ in range(3):
        page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Digit4")
    assert page.inner_text("#span-said:not(.unseen)").startswith(
        "Replaced: Organization: \u2068Ada\u2069, Person: \u2068Noël\u2069"
    )
    page.click("button:has-text('Done')")
    page.wait_for_selector("#work > .empty")
    assert Judgment.objects.get().label == "1:19:MISC"  # without the direction mark before the first word


@pytest.mark.slow
def test_on_a_phone_words_are_tapped_and_everything_fits_a_thumb(marking):
    page = marking("Ada met Noël in Rome.", **PHONE)
    page.touchscreen.tap(*middle_of(page, "Noël"))
    page.wait_for_function(f"words => ({CHOSEN})() === words", arg="Noël")
    page.tap(".spans button:has-text('Person')")
    assert marks_on(page) == ["Noël:PER"]
    heights = "nodes => nodes.map(node => node.getBoundingClientRect().height)"
    assert min(page.locator(".answers button:visible, .answers summary:visible").evaluate_all(heights)) >= 44
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.tap(".listed-spans button")
    assert marks_on(page) == []
    page.tap("button:has-text('Nothing to mark')")
    page.wait_for_selector("#work > .empty")
    assert Judgment.objects.get().label == "none"


@pytest.mark.slow
def test_without_scripts_spans_are_typed(new_page, person, spans_task):
    ann, task = person("ann", "en"), spans_task(["Ada met Noël in Rome."])
    page = new_page(user=ann.user, java_script_enabled=False)
    page.goto(f"/tasks/{task.name}/")
    page.click("button:has-text('Start')")
    assert "start:end:label" in page.inner_text(".typed-spans")
    assert "LOC Place" in page.inner_text(".typed-spans")
    page.fill(".typed-spans textarea", "8:12:PER\n16:20:LOC")
    page.click("button:has-text('Done')")
    assert Judgment.objects.get().label == "8:12:PER 16:20:LOC"


def test_an_adjudicator_sees_each_persons_marks_on_the_text_and_decides_with_marks(new_page, person, spans_task):
    task = spans_task(["Ada met Noël in Rome."])
    for number, label in enumerate(["0:3:PER", "0:7:PER 16:20:LOC", "16:20:ORG"]):
        annotator = person(f"p{number}", "en")
        judge(annotator, take(annotator, task).pk, Answer(label))
    page = new_page(user=person("ada", adjudicates=True).user)
    page.goto(f"/tasks/{task.name}/adjudication/{task.units.get().pk}/")
    page.wait_for_selector(".of-one mark")
    assert sorted(marks_on(page, ".of-one mark.differs")) == ["Ada met:PER", "Ada:PER", "Rome:LOC", "Rome:ORG"]
    assert "\u2068“Ada met”\u2069 \u2068Person\u2069" in page.inner_text(".compared")
    page.click("[data-take='0:7:PER 16:20:LOC']")
    assert marks_on(page) == ["Ada met:PER", "Rome:LOC"]
    let_guard_pass(page)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Digit1")
    assert marks_on(page) == ["Ada:PER", "Rome:LOC"]
    page.fill("[name=reason]", "I read it")
    page.click("button:has-text('Decide on the marks')")
    page.wait_for_url("**/adjudication/**")
    assert task.units.get().label == "0:3:PER 16:20:LOC"
    assert "“Ada”\u2069 \u2068Person" in page.inner_text(".toast")
    page.click(".toast button")  # the decision is marked again after Undo
    page.wait_for_selector("#settle")
    assert marks_on(page) == ["Ada:PER", "Rome:LOC"]


def test_everybody_reads_marked_words_and_only_files_have_their_places(client, desk, person, spans_task, tmp_path):
    task = spans_task(["Ada met Noël in Rome."])
    for number, label in enumerate(["0:3:PER", "16:20:LOC", "16:20:ORG"]):
        annotator = person(f"p{number}", "en")
        lease = take(annotator, task)
        judge(annotator, lease.pk, Answer(label))
    unit, ada = task.units.get(), person("ada", adjudicates=True)
    with pytest.raises(AlreadyAnswered, match="already answered \u2068“Rome”\u2069 \u2068Organization"):
        judge(annotator, lease.pk, Answer("0:3:PER"))
    item = desk.get(f"/manage/tasks/{task.name}/items/{unit.pk}/").text
    client.force_login(ada.user)
    pages = [client.get(f"/tasks/{task.name}/adjudication/{path}").text for path in ("", f"{unit.pk}/")]
    for page in (item, *pages):
        assert "“Rome”\u2069 \u2068Place" in page
        assert not re.search(r"\d+[–:]\d+", re.sub(r"<(?:script|time|kbd)[^>]*>.*?</|<[^>]+>|\d\d:\d\d", "", page))
    call_command("adjudicate", task.name, **{"as": "ada"}, list=True, out=tmp_path / "cases.tsv", verbosity=0)
    assert "“Rome”\u2069 \u2068Place" in (tmp_path / "cases.tsv").read_text(encoding="utf-8")


def test_only_pages_of_spans_load_their_script_and_style(marking, at_work, person, make_records_task):
    page = marking("Ada")
    assert page.locator("head :is([src*=spans], [href*=spans])").count() == 2
    page = at_work(make_records_task(), person("ben", "en"), {}).page
    assert page.locator("head :is([src*=spans], [href*=spans])").count() == 0


@pytest.mark.slow
def test_pages_of_spans_have_no_barriers(marking):
    page = marking("Ada met Noël in Rome.")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Digit1")
    page.wait_for_selector("body:not(.guarded)")  # until then keys look dim
    assert faults(page) == []


# --- practice and a test: near marks count, and corrections name the marked words


# Each text is "the sentence of en-1", so the last word is at 16.
GOLD = {"practice": ["16:20:PER"], "test": ["16:20:PER", "4:12:ORG 16:20:PER"]}
ADDRESS = "/tasks/crowd/qualification/en/"


@pytest.fixture
def tested(make_records_task):
    return make_records_task("ner", gold=GOLD, test_items=2, pass_mark=0.5, tries=1)


def test_practice_names_the_words_that_are_marked_and_those_that_should_be(tested, person, client):
    ann = person("ann", "en")
    question = next_question(begin(ann, tested, "en", Trial.PRACTICE))
    client.force_login(ann.user)
    assert 'id="spans"' in client.get(ADDRESS).text
    form = {"question": question.pk, "answer": "4:12:PER"}
    page = client.post(reverse("qualification-answer", args=["crowd", "en"]), form, follow=True).text
    assert "“sentence”\u2069 \u2068Person" in page
    assert "“en-1”\u2069 \u2068Person" in page
    assert "16–20" not in page
    assert "Because of 16:20:PER." in page  # the explanation, as its author wrote it


def test_practice_is_marked_by_keys_as_the_work_is(tested, person, new_page):
    ann = person("ann", "en")
    begin(ann, tested, "en", Trial.PRACTICE)
    page = new_page(user=ann.user)
    page.goto(ADDRESS)
    let_guard_pass(page)
    for key in ("ArrowRight", "Digit1", "Enter"):
        page.keyboard.press(key)
    page.wait_for_selector(".explained")
    assert TrialAnswer.objects.get(answered_at__isnull=False).label == "0:3:PER"


def test_marks_that_are_near_enough_pass_and_others_do_not(tested, person):
    labels = {"16:20:PER": ("16:19:PER", "4:12:PER"), "4:12:ORG 16:20:PER": ("4:12:ORG 16:20:PER", "none")}
    for number, name in enumerate(("ann", "bea")):
        reader = person(name, "en")
        answer(reader, next_question(begin(reader, tested, "en", Trial.PRACTICE)).pk, "16:20:PER")
        trial = begin(reader, tested, "en", Trial.TEST)
        while question := next_question(trial):
            answer(reader, question.pk, labels[question.gold_answer.label][number])
        assert state(reader, tested, "en").step == (qualification.FAILED if number else qualification.PASSED)
