"""Work that may hurt in a real browser: agreed to, unveiled text by text, by keys, on a phone, and without scripts."""

import pytest
from playwright.sync_api import expect

from annotate.models import Consent, Judgment
from tests.annotate.hands import Hands, let_guard_pass, said, worst_contrast

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

ARABIC_MESSAGE = "لماذا تكتب هنا أصلا؟ لا أحد يريد أن يسمع رأيك."
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.fixture
def hurting(make_records_task):
    """A task of three pairs, one of them Arabic; two a day are given to one person."""
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
    shown = page.inner_text("main")
    # In a language that the person reads, if the kind has it in one.
    assert any(warning.splitlines()[0] in shown for warning in task.kind.sensitive.warnings.values())
    page.click("button:has-text('I agree')")


def is_seen(page, text):
    return page.get_by_text(text).first.is_visible()


def test_a_day_of_such_work_by_keys(new_page, hurting, person):
    ann = person("ann", "en:5 ar:4")
    page = new_page(user=ann.user)
    agree(page, hurting)
    assert Consent.objects.get().annotator == ann
    page.click("text=Start")
    hands = Hands(page, {})
    for number in range(3):
        page.wait_for_selector("#veil:not([open])")
        field = page.locator("#post dd").first
        assert not field.is_visible()
        assert not page.locator("button[value=toxic]").is_visible()
        let_guard_pass(page)
        hands.press("Digit1")  # what has not been read is not answered
        assert Judgment.objects.count() == number
        hands.press("KeyV")
        page.wait_for_selector("#veil[open]")
        assert field.is_visible()
        assert page.locator("button[value=toxic]").is_visible()
        expect(page.locator("#post")).to_be_focused()
        hands.press_and_wait("Digit2")
    assert "That is enough for today: you have read 3 of these" in page.inner_text("#work")
    assert [label for _, label, _ in said(ann)] == ["not-toxic"] * 3


def test_a_text_may_be_skipped_unread_and_undone_from_the_end_of_the_day(new_page, hurting, person):
    ann = person("ann", "en:5 ar:4")
    page = new_page(user=ann.user)
    agree(page, hurting)
    page.click("text=Start")
    hands = Hands(page, {})
    page.wait_for_selector("#veil")
    for _ in range(3):
        hands.press_and_wait("Space")
    assert [kind for kind, _, _ in said(ann)] == ["skip"] * 3
    assert "enough for today" in page.inner_text("#work")
    hands.press_and_wait("KeyZ")
    page.wait_for_selector("#veil:not([open])")
    assert len(said(ann)) == 2


def test_a_comment_outlives_a_reload_whether_or_not_the_text_is_shown(new_page, hurting, person):
    ann = person("ann", "en")
    page = new_page(user=ann.user)
    agree(page, hurting)
    page.click("text=Start")
    page.click("#veil summary")
    page.fill("[name=comment]", "a second look, please")
    page.reload()
    page.click("#veil summary")
    expect(page.locator("[name=comment]")).to_have_value("a second look, please")


def test_on_a_phone_an_arabic_message_is_unveiled_by_a_touch_and_stands_at_the_right(new_page, hurting, person):
    ann = person("ann", "ar")
    page = new_page(user=ann.user, **PHONE)
    agree(page, hurting)
    page.click("text=Start")
    page.wait_for_selector("#veil:not([open])")
    assert not is_seen(page, ARABIC_MESSAGE)
    assert worst_contrast(page) >= 4.5
    page.locator("#veil summary").tap()
    page.wait_for_selector("#veil[open]")
    assert is_seen(page, ARABIC_MESSAGE)
    words = page.locator("#post p").first
    assert words.evaluate("each => getComputedStyle(each).direction") == "rtl"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert worst_contrast(page) >= 4.5
    let_guard_pass(page)
    page.locator("button[value=toxic]").tap()
    page.wait_for_selector("#veil:not([open])")
    assert said(ann) == [("answer", "toxic", "")]


def test_without_scripts_the_text_is_unveiled_and_answered_all_the_same(new_page, hurting, person):
    ann = person("ann", "en")
    page = new_page(user=ann.user, java_script_enabled=False)
    agree(page, hurting)
    page.click("button:has-text('Start')")
    field = page.locator("#post dd").first
    assert not field.is_visible()
    assert not page.locator("button[value=toxic]").is_visible()
    page.locator("#veil summary").click()
    assert field.is_visible()
    page.click("button[value=toxic]")
    assert page.locator("#veil:not([open])").count() == 1
    assert said(ann) == [("answer", "toxic", "")]


def test_an_adjudicators_bench_is_veiled_too(new_page, hurting, person):
    ann, ada = person("ann", "en"), person("ada", adjudicates=True)
    hurting.options |= {"on_conflict": "ADJUDICATION", "skip_limit": 1}
    hurting.save()
    page = new_page(user=ann.user)
    agree(page, hurting)
    page.click("text=Start")
    page.wait_for_selector("#veil")
    Hands(page, {}).press_and_wait("Space")
    unit = hurting.units.get(stage="ADJUDICATION")
    bench = new_page(user=ada.user)
    bench.goto(f"/tasks/{hurting.name}/consent/")
    bench.click("button:has-text('I agree')")
    bench.goto(f"/tasks/{hurting.name}/adjudication/{unit.pk}/")
    assert not bench.locator("#post dd").first.is_visible()
    assert not bench.locator("#settle button[value=toxic]").is_visible()
    let_guard_pass(bench)
    Hands(bench, {}).press("KeyV")
    bench.wait_for_selector("#veil[open]")
    assert bench.locator("#post dd").first.is_visible()
    bench.fill("[name=reason]", "I read it")
    bench.click("#settle button[value=toxic]")
    assert "Settled as Toxic." in bench.inner_text("main")
