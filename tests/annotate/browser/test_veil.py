"""Disturbing work in a real browser: consent, unveiling each text, by keyboard, on a phone, and without scripts."""

import pytest
from playwright.sync_api import expect

from annotate.models import Consent, Judgment
from tests.annotate.hands import Hands, answers_of, let_guard_pass, worst_contrast

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

ARABIC_MESSAGE = "لماذا تكتب هنا أصلا؟ لا أحد يريد أن يسمع رأيك."
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.fixture
def hurting(make_records_task):
    """A task with three pairs, one of them Arabic. A person gets two per day."""
    task = make_records_task("toxic_pairs", 2, languages=["en", "ar"], redundancy=1, stop_early=False)
    task.kind_file = task.kind.source.replace("a_day = 50", "a_day = 3")
    task.save()
    for unit in task.units.filter(item__language="ar").select_related("item"):
        unit.item.fields = {"message": ARABIC_MESSAGE, "reply": "هذا ليس من شأنك."}
        unit.item.save()
    return task


def agree(page, task):
    page.goto(f"/tasks/{task.name}/")
    page.click("a:has-text('Read the warning')")
    warning = page.inner_text("main")
    # In a language that the person reads, if the kind has it.
    assert any(words.splitlines()[0] in warning for words in task.kind.sensitive.warnings.values())
    page.click("button:has-text('I agree')")


@pytest.fixture
def at_veil(new_page, hurting, person):
    """at_veil("en") returns the page on which Ann sees the first text veiled."""

    def begin(languages="en", **options):
        page = new_page(user=person("ann", languages).user, **options)
        agree(page, hurting)
        page.click("button:has-text('Start')")
        page.wait_for_selector("#veil:not([open])")
        return page

    return begin


def test_a_day_of_such_work_by_keys_ends_and_can_be_undone(at_veil):
    page = at_veil("en:5 ar:4")
    ann = Consent.objects.get().annotator
    hands = Hands(page, {})
    for number in range(2):
        page.wait_for_selector("#veil:not([open])")
        field = page.locator("#post dd").first
        assert not field.is_visible()
        assert not page.locator("button[value=toxic]").is_visible()
        let_guard_pass(page)
        hands.press("Digit1")  # a text that has not been read cannot be answered
        assert Judgment.objects.count() == number
        hands.press("KeyV")
        page.wait_for_selector("#veil[open]")
        assert field.is_visible()
        assert page.locator("button[value=toxic]").is_visible()
        expect(page.locator("#post")).to_be_focused()
        hands.press_and_wait("Digit2")
    hands.press_and_wait("Space")  # a text may be skipped unread
    assert "That is enough for today: you have read 3 of these" in page.inner_text("#work")
    assert answers_of(ann) == [("answer", "not-toxic", "")] * 2 + [("skip", "", "")]
    hands.press_and_wait("KeyZ")
    page.wait_for_selector("#veil:not([open])")
    assert len(answers_of(ann)) == 2
    page.click("#veil summary")
    page.fill("[name=comment]", "a second look, please")
    page.reload()
    page.click("#veil summary")
    expect(page.locator("[name=comment]")).to_have_value("a second look, please")


def test_on_a_phone_an_arabic_message_is_unveiled_by_a_touch_and_stands_at_the_right(at_veil):
    page = at_veil("ar", **PHONE)
    message = page.get_by_text(ARABIC_MESSAGE).first
    assert not message.is_visible()
    assert worst_contrast(page) >= 4.5
    page.locator("#veil summary").tap()
    page.wait_for_selector("#veil[open]")
    assert message.is_visible()
    assert page.locator("#post p").first.evaluate("words => getComputedStyle(words).direction") == "rtl"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert worst_contrast(page) >= 4.5
    let_guard_pass(page)
    page.locator("button[value=toxic]").tap()
    page.wait_for_selector("#veil:not([open])")
    assert answers_of(Consent.objects.get().annotator) == [("answer", "toxic", "")]


def test_an_adjudicators_page_is_veiled_too(at_veil, new_page, hurting, person):
    hurting.options |= {"on_conflict": "ADJUDICATION", "skip_limit": 1}
    hurting.save()
    Hands(at_veil(), {}).press_and_wait("Space")
    unit = hurting.units.get(stage="ADJUDICATION")
    page = new_page(user=person("ada", adjudicates=True).user)
    page.goto(f"/tasks/{hurting.name}/consent/")
    page.click("button:has-text('I agree')")
    page.goto(f"/tasks/{hurting.name}/adjudication/{unit.pk}/")
    assert not page.locator("#post dd").first.is_visible()
    assert not page.locator("#settle button[value=toxic]").is_visible()
    let_guard_pass(page)
    Hands(page, {}).press("KeyV")
    page.wait_for_selector("#veil[open]")
    assert page.locator("#post dd").first.is_visible()
    page.fill("[name=reason]", "I read it")
    page.click("#settle button[value=toxic]")
    assert "Decided: Toxic." in page.inner_text("main")
