"""The documentation in a real browser: axe-core finds nothing, nothing is wider than a phone, and search works."""

import json
import re

import pytest

from annotate.manual.pages import address
from annotate.models import Annotator
from annotate.pages import start_page as home
from tests.docs.markdown import PAGES
from tests.looks import A4, faults, lay_on_paper, too_wide

# A live server empties the database after each test, so the rows of the migrations are restored for the next one.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 375, "height": 760}
LAPTOP = {"width": 1280, "height": 800}
# Apart from navigation, all pages consist of the elements on these.
OF_EVERY_BUILD = ["/docs/", "/docs/tutorial/", "/docs/how-to/own-kind/", "/docs/reference/stages/", "/docs/glossary/"]
OF_EVERY_BUILD += ["/docs/?q=audit", "/docs/?q=xyzzy", "/login/"]


def wait_for_stops(page):
    """Wait until exactly those elements that scroll are Tab stops. The page itself checks this, because its policy
    forbids evaluating text again and again.
    """
    page.evaluate(
        """new Promise((done) => {
            const is_right = (each) => (each.tabIndex === 0) === (each.scrollWidth > each.clientWidth);
            const look = () =>
                [...document.querySelectorAll(".text pre, .text .wide")].every(is_right)
                    ? done() : requestAnimationFrame(look);
            look();
        })"""
    )


def check(page, size, scheme):
    page.set_viewport_size(size)
    page.emulate_media(color_scheme=scheme)
    wait_for_stops(page)
    assert faults(page) == [], (size, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


@pytest.mark.parametrize("path", OF_EVERY_BUILD)
def test_a_build_of_pages_is_for_everybody_on_a_desktop_and_on_a_phone_in_the_light_and_in_the_dark(page, path):
    page.goto(path)
    for size in (DESKTOP, PHONE):
        for scheme in ("light", "dark"):
            check(page, size, scheme)


@pytest.mark.page(viewport=LAPTOP)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_its_place_in_sight_is_for_everybody_on_a_phone_and_fits_light_paper(page, name):
    page.goto(address(name))
    here = page.locator(".beside [aria-current=page]").bounding_box()
    assert 0 <= here["y"] <= LAPTOP["height"] - here["height"]
    wait_for_stops(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= LAPTOP["width"]

    check(page, PHONE, "dark")

    page.set_viewport_size(A4)
    lay_on_paper(page)
    assert not page.locator(".narrow, .top, .side, .within, .turn").filter(visible=True).count()
    assert too_wide(page, ".text pre, .text .wide, body") == []
    ground, words = page.locator("html").evaluate(
        "each => [getComputedStyle(each).backgroundColor, getComputedStyle(each).color]"
    )
    assert (ground, words) == ("rgb(255, 255, 255)", "rgb(0, 0, 0)")


def test_a_page_of_an_error_is_dark_in_the_dark_and_has_a_link_to_the_start_page(
    new_page, console_errors, django_user_model, monkeypatch
):
    ann = Annotator.objects.create(user=django_user_model.objects.create_user("ann"))
    page = new_page(user=ann.user)
    page.goto("/")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert faults(page) == []
    monkeypatch.setattr(home, "open_permits", lambda *arguments: 1 / 0)
    for path, status in (("/", 500), ("/nothing/", 404), ("/docs/nothing/", 404), ("/manage/", 403)):
        assert page.goto(path).status == status
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
            assert (luminance(ground) < 0.1) == (scheme == "dark"), path
            assert faults(page) == []
        if path != "/docs/nothing/":
            assert page.get_by_role("link", name="Home").get_attribute("href") == "/"
            assert page.locator("h1").count() == 1
    console_errors.clear()
    page.goto("about:blank")
    page.set_content("<!doctype html><title>A page</title><main><img src='data:,'></main>")
    assert any(fault.startswith(("image-alt", "html-has-lang")) for fault in faults(page)), "axe finds no fault"


def test_what_the_admin_refuses_is_told_on_a_page_of_ours(client, django_user_model):
    client.force_login(django_user_model.objects.create_user("staff", is_staff=True))
    refused = client.get("/admin/annotate/annotator/")
    assert refused.status_code == 403
    assert "You do not have permission to do this." in refused.text
    assert ">Home<" in refused.text


@pytest.mark.page(viewport=DESKTOP)
def test_whoever_searches_reaches_the_passage_with_the_keyboard_alone(page):
    page.goto("/docs/")
    page.locator(".side input[name=q]").focus()
    page.keyboard.type("check_kind")
    page.keyboard.press("Enter")
    page.wait_for_url("**/docs/?q=check_kind")
    page.locator(".found a").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/docs/reference/commands/#check_kind")
    assert page.locator("#check_kind").is_visible()


@pytest.mark.page(viewport=PHONE)
def test_a_phone_has_the_contents_folded(page):
    page.goto("/docs/")
    contents = page.locator(".narrow .contents")
    assert page.get_by_role("searchbox").is_visible()
    assert not contents.is_visible()
    assert not page.locator(".beside").is_visible()
    page.locator(".side .narrow > summary").click()
    contents.get_by_text("Look up").click()
    contents.get_by_role("link", name="Commands", exact=True).click()
    page.wait_for_url("**/docs/reference/commands/")
    assert not page.locator(".within").is_visible()
    page.get_by_text("On this page").first.click()
    page.locator(".narrow.sections").get_by_role("link", name="open_task").click()
    page.wait_for_url("**/docs/reference/commands/#open_task")


@pytest.mark.page(viewport=LAPTOP)
def test_the_skip_link_skips_the_contents(page):
    page.goto("/docs/reference/stages/")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#main:focus")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main')?.id") == "main"
    assert page.evaluate("document.activeElement.closest('.side, .within, header')") is None


@pytest.mark.page(viewport=DESKTOP)
def test_only_what_scrolls_is_a_stop_of_the_tab_key(page):
    page.goto("/docs/how-to/own-kind/")
    frames, numbers = page.locator(".text pre, .text .wide"), []
    for size in (DESKTOP, PHONE, DESKTOP):
        page.set_viewport_size(size)
        wait_for_stops(page)
        numbers.append(page.locator(".text pre[tabindex], .text .wide[tabindex]").count())
    assert numbers[0] == numbers[2] < numbers[1] < frames.count()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_field_of_search_can_be_seen(page, scheme):
    page.emulate_media(color_scheme=scheme)
    page.goto("/docs/")
    border, words, ground, around = page.locator("#find").evaluate(
        """each => [getComputedStyle(each).borderTopColor, getComputedStyle(each, "::placeholder").color,
            getComputedStyle(each).backgroundColor, getComputedStyle(document.documentElement).backgroundColor]"""
    )
    assert min(contrast(border, ground), contrast(border, around)) >= 3
    assert contrast(words, ground) >= 4.5


def contrast(one, other):
    """Return the contrast of two colours such as rgb(0, 0, 0), from 1 to 21 (WCAG 2.2)."""
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.page(viewport=PHONE)
def test_what_is_wider_than_a_phone_scrolls_inside_itself(page):
    page.goto("/docs/reference/formats/")
    widths = page.locator(".wide").evaluate_all("all => all.map(each => [each.scrollWidth, each.clientWidth])")
    assert any(inner > outer for inner, outer in widths), json.dumps(widths)
    assert all(outer <= PHONE["width"] for _, outer in widths)
    # The stages are a list there, which needs no scrolling.
    page.goto("/docs/reference/stages/")
    assert not page.locator(".text .plot").is_visible()
    moves = page.locator(".text .moves")
    assert moves.is_visible()
    assert moves.evaluate("each => each.scrollWidth <= each.clientWidth")


@pytest.mark.page(viewport=DESKTOP)
def test_lines_are_no_longer_than_one_can_read(page):
    page.goto("/docs/reference/stages/")
    letters = page.locator(".text > p").first.evaluate(
        """each => {
            const one = document.createElement("span");
            one.style.cssText = "display: inline-block; width: 1ch";
            each.append(one);
            return each.clientWidth / one.offsetWidth;
        }"""
    )
    assert 60 <= letters <= 85
