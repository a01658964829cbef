"""The pages of long documents in a real browser: reading and labelling by keyboard, on a phone, and right to left."""

import itertools
import json

import pytest
from django.conf import settings

from annotate.actions.registry import call_command
from annotate.core import stages
from annotate.kinds import Answer
from annotate.models import Judgment, Task
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.hands import FRENCH, Hands, answers_of, let_guard_pass, worst_contrast

DESK = {"viewport": {"width": 1280, "height": 800}}
# A window of the same laptop next to another one, and one at a zoom of 200%.
NARROW = {"viewport": {"width": 700, "height": 800}}
ZOOMED = {"viewport": {"width": 640, "height": 400}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
# A laptop's window can be narrowed in place; a phone is a separate device.
ANN_READS = "en he ja"
SIZES = pytest.mark.parametrize("sizes", [(DESK, NARROW), (PHONE,)], ids=["laptop", "phone"])

TOPICS = ["entertainment", "geography", "health", "politics", "science/technology", "sports", "travel"]
KIND = """
title = "What is the article about?"
form = "choice"

[[layout]]
style = "headline"
fields = ["headline"]

[[layout]]
style = "document"
fields = ["body"]

[options]
redundancy = 1

[guidelines]
en = '''
Choose what most of the article is about.
'''
"""
ANSWER = """
[[answers]]
code = "{}"
name = "{}"
meaning = "an article about {}"
"""
# The lengths of MasakhaNEWS, from its shortest article to its longest of 3,307 words.
WORDS = [100 + round((3307 - 100) * (number / 9) ** 2) for number in range(10)]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def kind_file(folder, answers=tuple(TOPICS)):
    path = folder / "article_topic.toml"
    tables = [ANSWER.format(code, code.capitalize(), code) for code in answers]
    path.write_text(KIND + "".join(tables))
    return path


def sentences(topic, language="en"):
    lines = (settings.BASE_DIR / f"fixtures/topics/sib200.{language}.jsonl").read_text().splitlines()
    return [row["text"] for row in map(json.loads, lines) if row["topic"] == topic]


def article(number, words):
    """Return an article about one of the topics with this many words, headline included. Every second article has
    paragraphs, and the others are on one line.
    """
    topic = TOPICS[number % len(TOPICS)]
    headline = f"{topic.capitalize()}, article {number}"
    text = itertools.cycle(sentences(topic))
    body, left = [], words - len(headline.split())
    while left > 0:
        body.append(" ".join(next(text).split()[:left]))
        left -= len(body[-1].split())
    parts = [" ".join(body[place : place + 3]) for place in range(0, len(body), 3)]
    return {"id": f"a{number}", "language": "en", "headline": headline, "body": "\n "[number % 2].join(parts)}


def document(body, headline="A headline", language="en", key="one"):
    return {"id": key, "language": language, "headline": headline, "body": body}


@pytest.fixture
def open_articles(tmp_path, data_dir, db):
    """open_articles(rows, gold="id,label…") opens a task that asks what these articles are about."""

    def open_them(rows, *, answers=tuple(TOPICS), gold="", **options):
        file = tmp_path / "articles.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        call_command("import_corpus", "articles", file, fields="headline body", licence="CC-BY-SA-4.0")
        arguments = {"test_items": 0, "gold_share": 0} | options
        if gold:
            (tmp_path / "gold.csv").write_text(gold)
            arguments["gold"] = [tmp_path / "gold.csv"]
        languages = " ".join({row["language"] for row in rows})
        kind = str(kind_file(tmp_path, answers))
        call_command("open_task", "articles", kind=kind, corpus="articles", languages=languages, seed="1", **arguments)
        return Task.objects.get(name="articles")

    return open_them


LONG = [article(1, 3307), article(3, 3307), article(5, 3307)]


# --- where things are


def in_turn(page, sizes):
    """Yield after the window has been resized, for each of these sizes."""
    for size in sizes:
        page.set_viewport_size(size["viewport"])
        yield size


def scroll_to(page, share):
    """Scroll to a position on the page, from 0 (top) to 1 (end)."""
    page.evaluate("share => scrollTo(0, share * (document.documentElement.scrollHeight - innerHeight))", share)


def press_and_scroll(page, key):
    """Press a key that scrolls, and return the distance scrolled (pixels)."""
    before = page.evaluate(
        """() => {
          const seen = document.documentElement.dataset;
          delete seen.scrolled;
          const before = scrollY;
          // An earlier scroll, to the top of a new document, may end only now.
          addEventListener("scrollend", function ended() {
            if (scrollY === before) return;
            removeEventListener("scrollend", ended);
            seen.scrolled = "";
          });
          return before;
        }"""
    )
    page.keyboard.press(key)
    page.wait_for_selector("html[data-scrolled]")
    return page.evaluate("scrollY") - before


def scrolled(page):
    return page.evaluate("scrollY")


def hidden_of(page, selector):
    """Return the words in these elements that are outside the window or covered."""
    return page.locator(selector).evaluate_all(
        """nodes => nodes.filter(node => {
          const { left, top, right, bottom } = node.getBoundingClientRect();
          const inside = left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
          const corners = [[left + 8, top + 8], [right - 8, top + 8], [left + 8, bottom - 8], [right - 8, bottom - 8]];
          return !inside || !corners.every(at => node.contains(document.elementFromPoint(...at)));
        }).map(node => node.innerText)"""
    )


def box(page, selector):
    """Return the left, top, right and bottom of the first matching element (pixels of the window)."""
    bounds = page.locator(selector).first.bounding_box()
    return bounds["x"], bounds["y"], bounds["x"] + bounds["width"], bounds["y"] + bounds["height"]


def foot_of_text(page):
    """Return where the visible text ends: at the bottom of the window, or at the bar of answers."""
    left, top, *_ = box(page, ".answers")
    _, _, right_of_text, _ = box(page, "#post")
    return top if left < right_of_text else page.viewport_size["height"]


def all_read(page):
    """Return whether the last line is in the window."""
    return box(page, "#post .document dd > p:last-child")[3] <= foot_of_text(page)


def key_of(label):
    return f"Digit{1 + TOPICS.index(label)}"


def headline(page):
    return page.inner_text("#post .headline dd")


# --- reading and labelling


def test_ten_articles_of_100_to_3307_words_are_labelled_by_keys_alone(at_work, open_articles, ann):
    articles = [article(number, words) for number, words in enumerate(WORDS)]
    assert [len(f"{row['headline']} {row['body']}".split()) for row in articles] == WORDS
    hands = at_work(open_articles(articles), ann, FRENCH, **DESK)
    page = hands.page
    for _ in articles:
        assert scrolled(page) == 0
        _, top, _, bottom = box(page, "#post .headline dd p")
        assert 0 <= top < bottom <= foot_of_text(page)
        number = int(headline(page).rpartition(" ")[2])
        for key in ("PageDown", "End"):
            if not all_read(page):
                assert press_and_scroll(page, key) > 0
        assert all_read(page)
        assert hidden_of(page, "#answers button:visible") == []
        hands.press_and_wait(key_of(TOPICS[number % len(TOPICS)]))
    assert "All done" in page.inner_text("#work")
    answers = Judgment.objects.filter(annotator=ann, voided_at=None).values_list("unit__item__key", "label")
    assert dict(answers) == {row["id"]: TOPICS[number % len(TOPICS)] for number, row in enumerate(articles)}
    assert len(answers) == len(WORDS)


@SIZES
def test_answers_and_skip_are_in_sight_from_the_top_to_the_end_and_all_has_contrast_by_day_and_by_night(
    at_work, open_articles, ann, sizes
):
    page = at_work(open_articles(LONG), ann, **sizes[0]).page
    assert page.locator("#answers button:visible").count() == len(TOPICS) + 1
    for size in in_turn(page, sizes):
        for share in (0, 0.5, 1):
            scroll_to(page, share)
            assert hidden_of(page, "#answers button:visible") == []
            assert hidden_of(page, "[name=comment]") == []
            assert page.evaluate("document.documentElement.scrollWidth") <= size["viewport"]["width"]
            # Most of the window is for the text.
            assert foot_of_text(page) >= 0.7 * size["viewport"]["height"]
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert worst_contrast(page) >= 4.5, scheme


def test_beside_the_text_nothing_moves_while_it_scrolls_and_guidelines_cover_neither_text_nor_answers(
    at_work, open_articles, ann
):
    page = at_work(open_articles(LONG), ann, **DESK).page
    before = [box(page, selector) for selector in ("#answers", ".tally")]
    scroll_to(page, 0.5)
    after = [box(page, selector) for selector in ("#answers", ".tally")]
    for was, now in zip(before, after, strict=True):
        assert was == pytest.approx(now, abs=2)
    page.click("#guidelines summary")
    assert box(page, "#answers")[2] <= box(page, "#guidelines > .prose")[0]
    for share in (0, 0.5, 1):
        scroll_to(page, share)
        assert hidden_of(page, "#answers button:visible") == []


def test_page_down_space_and_arrows_scroll_without_a_click_and_leave_out_no_line(at_work, open_articles, ann):
    hands = at_work(open_articles(LONG), ann, FRENCH, **DESK)
    page = hands.page
    page.reload()  # like a person who returns to an open document
    for _ in in_turn(page, (DESK, NARROW, ZOOMED)):
        for key in ("PageDown", "Space"):
            step = press_and_scroll(page, key)
            assert 0 < step <= foot_of_text(page) - 20
        assert press_and_scroll(page, "ArrowDown") > 0
        assert press_and_scroll(page, "Shift+Space") < 0
        hands.press_and_wait("Digit1")
        assert scrolled(page) == 0
    assert answers_of(ann) == [("answer", TOPICS[0], "")] * 3


@pytest.mark.parametrize("size", [DESK, NARROW], ids=["desk", "narrow"])
def test_0_skips_z_takes_back_c_comments_and_g_opens_the_guidelines_from_the_middle_of_a_text(
    at_work, open_articles, ann, size
):
    hands = at_work(open_articles(LONG[:2]), ann, FRENCH, **size)
    page, first = hands.page, headline(hands.page)
    scroll_to(page, 0.5)
    hands.press_and_wait("Digit0")
    assert headline(page) != first
    scroll_to(page, 0.5)
    assert hidden_of(page, "#answers button:visible") == []
    hands.press_and_wait("KeyZ")
    assert (headline(page), scrolled(page)) == (first, 0)
    scroll_to(page, 0.5)
    middle = scrolled(page)
    let_guard_pass(page)
    hands.press("KeyC")
    page.keyboard.type("only in part")
    hands.press("Escape")
    hands.press("KeyG")
    assert "most of the article" in page.inner_text("#guidelines")
    hands.press("KeyG")
    assert scrolled(page) == middle
    assert press_and_scroll(page, "PageDown") > 0
    hands.press_and_wait("Digit2")
    assert answers_of(ann) == [("answer", TOPICS[1], "")]
    assert Judgment.objects.get(voided_at=None).comment == "only in part"


@pytest.mark.parametrize("size", [DESK, NARROW], ids=["desk", "narrow"])
def test_reaching_the_answers_by_tab_does_not_move_the_text(at_work, open_articles, ann, size):
    page = at_work(open_articles(LONG), ann, **size).page
    scroll_to(page, 0.5)
    middle = scrolled(page)
    for name in [*map(str.capitalize, TOPICS), "Skip", "Flag"]:
        page.keyboard.press("Tab")
        assert name in page.evaluate("document.activeElement.innerText")
        assert hidden_of(page, ":focus") == []
        assert page.locator(":focus").evaluate("node => getComputedStyle(node).outlineStyle") == "solid"
    assert scrolled(page) == middle


def test_twenty_answers_leave_most_of_a_phone_to_the_text_and_are_all_reached(at_work, open_articles, ann):
    answers = [f"a rather long class {letter}".replace(" ", "-") for letter in "abcdefghijklmnopqrst"]
    task = open_articles(LONG, answers=answers)
    page = at_work(task, ann, **PHONE).page
    assert foot_of_text(page) >= 0.55 * 844
    let_guard_pass(page)
    page.tap(f"button:has-text('{answers[-1].capitalize()}')")
    page.wait_for_selector("#work:has-text('1 answered')")
    assert answers_of(ann) == [("answer", answers[-1], "")]


# --- how it reads


@pytest.mark.parametrize(
    ("language", "size", "low", "high"),
    [("en", DESK, 55, 75), ("ja", DESK, 26, 38), ("en", PHONE, 30, 45)],
    ids=["english", "japanese", "phone"],
)
def test_a_line_has_as_many_letters_as_one_reads_well(at_work, open_articles, ann, language, size, low, high):
    text = "" if language == "ja" else " "
    page = at_work(open_articles([document(text.join(sentences("health", language)), language=language)]), ann, **size)
    lines = page.page.locator("#post .document p").evaluate_all(
        """nodes => nodes.map(node => {
          const range = document.createRange();
          range.selectNodeContents(node);
          const rows = new Set([...range.getClientRects()].map(rect => Math.round(rect.top)));
          return [node.textContent.trim().length, rows.size];
        })"""
    )
    letters, rows = map(sum, zip(*lines, strict=True))
    assert low <= letters / rows <= high


def test_a_text_of_one_line_is_read_in_paragraphs_and_not_a_letter_is_changed(at_work, open_articles, ann):
    page = at_work(open_articles([LONG[0]]), ann, **DESK).page
    shown = page.locator("#post .document p").all_text_contents()
    assert "".join(shown) == LONG[0]["body"]
    assert 20 < len(shown) < 60
    tall = page.locator("#post .document p").evaluate_all("all => Math.max(...all.map(p => p.offsetHeight))")
    assert tall < 800


def test_lines_are_paragraphs_unless_empty_lines_part_these(at_work, open_articles, ann):
    rows = [document("One.\nTwo.", "by lines"), document("One\ntwo.\n\nThree.", "by empty lines", key="two")]
    hands = at_work(open_articles(rows), ann, **DESK)
    gaps = {}
    for _ in rows:
        tops = hands.page.locator("#post .document p").evaluate_all("all => all.map(p => p.getBoundingClientRect())")
        gaps[headline(hands.page)] = [round(b["top"] - a["bottom"]) for a, b in itertools.pairwise(tops)]
        hands.press_and_wait("Digit1")
    (between,) = gaps["by lines"]
    assert between > 10
    assert gaps["by empty lines"] == [0, 0, 0]


# --- before the work, and after it


@pytest.mark.parametrize(("size", "answer"), [(DESK, "travel"), (PHONE, "politics")], ids=["desk", "phone"])
def test_in_practice_and_test_the_answers_are_in_sight_and_what_was_right_is_at_once(
    new_page, open_articles, ann, size, answer
):
    gold = "id,label,purpose,explanation\na1,geography,practice,Because it is.\na3,politics,test,\n"
    task = open_articles(LONG, gold=gold, test_items=1, tries=1)
    page = new_page(user=ann.user, **size)
    hands = Hands(page, FRENCH)
    page.goto(f"/tasks/{task.name}/qualification/en/")
    page.click("text=I have read them")
    page.wait_for_selector("#answers")
    for share in (0, 0.5, 1):
        scroll_to(page, share)
        assert hidden_of(page, "#answers button:visible") == []
    hands.press_and_wait(key_of("geography"))
    assert scrolled(page) == 0
    assert "Right: Geography" in page.inner_text(".explained")
    assert hidden_of(page, ".explained") == []
    for share in (0, 0.5, 1):
        scroll_to(page, share)
        assert hidden_of(page, "p.answers a") == []
    hands.press_and_wait("Enter")
    let_guard_pass(page)
    hands.press("Enter")  # Start the test
    page.wait_for_selector("#answers")
    scroll_to(page, 0.5)
    assert hidden_of(page, "#answers button:visible") == []
    hands.press_and_wait(key_of(answer))
    if answer == "politics":
        assert "Passed: 1 of 1 right" in page.inner_text("#work")
    else:
        assert "Not passed: 0 of 1 right" in page.inner_text("#work")
        assert "Correct: Politics" in page.inner_text(".missed .explained")
        assert hidden_of(page, ".missed .explained") == []


@SIZES
def test_an_adjudicator_has_the_answers_in_sight_from_the_top_of_a_document_to_its_end(
    new_page, open_articles, person, sizes
):
    task = open_articles(LONG[:1], redundancy=3, on_conflict=stages.ADJUDICATION)
    for name, label in zip("abc", TOPICS, strict=False):
        reader = person(name, "en")
        judge(reader, take(reader, task).pk, Answer(label, comment=f"because of {label}"))
    page = new_page(user=person("ada", adjudicates=True).user, **sizes[0])
    page.goto(f"/tasks/{task.name}/adjudication/{task.units.get().pk}/")
    for _ in in_turn(page, sizes):
        for share in (0, 0.5, 0.8):
            scroll_to(page, share)
            assert hidden_of(page, ".settle .languages button") == []
            assert hidden_of(page, "[name=reason]") == []
        assert press_and_scroll(page, "PageUp") < 0
    page.fill("[name=reason]", "The guidelines say so")
    page.click(".settle button:has-text('Sports')")
    assert "Decided: Sports." in page.inner_text("[role=status]")
