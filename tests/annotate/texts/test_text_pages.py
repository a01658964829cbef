"""Writing, reviewing and deciding on texts in a real browser, by keyboard."""

import pytest

from annotate.kinds import Answer
from annotate.models import Judgment
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.hands import let_guard_pass, worst_contrast

pytestmark = pytest.mark.django_db(transaction=True)

ARABIC = {"p1": "الكمان أصغر أفراد عائلته، وله أربعة أوتار."}
QUESTION = {"en": "How many strings does a violin have?", "ar": "كم عدد أوتار الكمان؟"}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def at_work(page):
    page.goto("/tasks/questions/")
    if page.query_selector("button[data-key=Enter]"):
        page.click("button[data-key=Enter]")
    page.wait_for_selector("#answers")
    let_guard_pass(page)
    return page


def labels():
    return list(Judgment.objects.order_by("pk").values_list("label", flat=True))


def test_a_text_is_written_reviewed_and_decided_on_with_the_keyboard_alone(opened, person, ada, new_page):
    task = opened(size="2")
    wim, ria, rob = (person(name, "en") for name in ("wim", "ria", "rob"))
    page = at_work(new_page(user=wim.user))
    # The field has the focus, and typed text survives a reload.
    page.keyboard.type("  How many  strings ")
    page.reload()
    page.wait_for_selector("#answers")
    assert page.input_value("#text") == "  How many  strings "
    let_guard_pass(page)
    page.focus("#text")
    page.keyboard.press("End")
    page.keyboard.type("have a violin?")
    assert page.inner_text("#length") == "31 / 200"
    page.keyboard.press("Control+Enter")
    page.wait_for_function("() => document.querySelector('#text').value === ''")
    assert labels() == ["How many strings have a violin?"]
    # Undo brings back the item with the text.
    page.keyboard.press("Escape")
    let_guard_pass(page)
    page.keyboard.press("z")
    page.wait_for_function("() => document.querySelector('#text').value.startsWith('How many')")
    let_guard_pass(page)
    page.keyboard.press("Control+Enter")
    page.wait_for_function("() => document.querySelector('#text').value === ''")

    review = at_work(new_page(user=ria.user))
    review.keyboard.press("a")
    review.wait_for_selector(".to-review", state="detached")
    review = at_work(new_page(user=rob.user))
    review.keyboard.press("e")
    assert review.evaluate("document.activeElement.id") == "text"
    review.keyboard.press("Control+A")
    review.keyboard.type(QUESTION["en"])
    review.keyboard.press("Control+Enter")
    review.wait_for_selector(".to-review", state="detached")
    first = "How many strings have a violin?"
    assert labels() == [first, first, first, QUESTION["en"]]

    [unit] = task.units.filter(stage="ADJUDICATION")
    bench = new_page(user=ada.user)
    bench.goto(f"/tasks/questions/adjudication/{unit.pk}/")
    let_guard_pass(bench)
    assert bench.locator(".version ins").all_inner_texts() == ["does", " have"]
    bench.keyboard.press("Shift+Digit2")
    bench.keyboard.press("2")
    bench.wait_for_url("**/adjudication/?decided=*")
    unit.refresh_from_db()
    assert (unit.stage, unit.label) == ("LABELLED", QUESTION["en"])


@pytest.mark.slow
def test_a_refused_text_stays_in_its_field_and_obeys_the_policy_of_the_page(opened, person, new_page, console_errors):
    opened(size="1")
    page = at_work(new_page(user=person("wim", "en").user))
    page.fill("#text", "Why?")
    page.evaluate("document.querySelector('#text').style.height = '9rem'")  # as if its corner were dragged
    page.click("#save")
    page.wait_for_function("() => document.querySelector('#notice').innerText.includes('needs at least 8')")
    assert page.input_value("#text") == "Why?"
    assert [error for error in console_errors if "400 (Bad Request)" not in error] == []
    console_errors.clear()


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"color_scheme": "dark"}, PHONE], ids=["light", "dark", "phone"])
def test_an_arabic_text_reads_from_right_to_left_and_everything_fits(opened, person, new_page, options):
    task = opened(language="ar", texts=ARABIC, size="1")
    wim, ria = (person(name, "ar") for name in ("wim", "ria"))
    page = at_work(new_page(user=wim.user, locale="ar", **options))
    page.fill("#text", QUESTION["ar"])
    assert page.evaluate("getComputedStyle(document.querySelector('#text')).direction") == "rtl"
    assert worst_contrast(page) >= 4.5
    judge(wim, take(wim, task).pk, Answer(QUESTION["ar"]))
    page = at_work(new_page(user=ria.user, locale="ar", **options))
    page.click(".correct summary")
    assert page.evaluate("getComputedStyle(document.querySelector('.to-review')).direction") == "rtl"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert worst_contrast(page) >= 4.5
