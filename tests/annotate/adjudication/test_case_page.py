"""The page of a case: why it waits, how its answers differ, and where its buttons are."""

import re
from html import unescape

import pytest

from annotate.kinds import Answer
from annotate.models import Judgment
from annotate.pages.case_summary import MOST_SHOWN, comparison, shortened
from annotate.work.adjudication import settle, to_adjudicate
from tests.annotate.adjudication.acts import LIST, where
from tests.annotate.hands import let_guard_pass

DESK = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def why(client, unit):
    page = client.get(f"{LIST}{unit.pk}/").text
    words = re.sub("<[^>]*>", "", re.search(r'<p class="why">(.*?)</p>', page, re.DOTALL)[1])
    return " ".join(unescape(words).split())


def test_the_line_has_the_beginning_of_a_long_answer_with_every_isolate_closed():
    spans = "; ".join(f"\u2068“Name {number}”\u2069 \u2068Person\u2069" for number in range(20))
    short = shortened(spans)
    assert short.startswith(spans[:40])
    assert "…" in short
    assert len(short) <= MOST_SHOWN + 1
    assert short.count("\u2068") == short.count("\u2069")
    assert shortened("German") == "German"


def test_a_line_states_why_a_case_waits_and_who_answered_what_by_names_of_languages(two_say, ada, client):
    units = two_say("de en", "de -", "- -").units.order_by("position")
    first, second = (
        Judgment.objects.filter(annotator__user__username=f"task-{number}").first().annotator.pseudonym
        for number in range(2)
    )
    client.force_login(ada.user)
    detectors = "Detectors: German 2, English 1."
    assert [why(client, unit) for unit in units] == [
        f"Answers differ. German: {first} (German). English: {second} (German). {detectors}",
        f"No reader left. German: {first} (German). Skipped by {second} (German). {detectors}",
        f"No reader left. Skipped by {first} (German). {detectors}",
    ]
    page = client.get(f"{LIST}{units[0].pk}/").text
    assert "task-0" not in page
    assert not re.search(r"<b>(?:de|en|fr)</b>", page)
    assert "<td>German, English</td>" in client.get(LIST).text


def test_answers_are_compared_label_by_label_first_those_that_differ(two_say, ada, client):
    unit = two_say("de en").units.get()
    client.force_login(ada.user)
    page = client.get(f"{LIST}{unit.pk}/").text
    table = re.search(r'<table class="rows compared">.*?</table>', page, re.DOTALL)[0]
    assert re.findall(r'<th scope="row"><bdi>(\w+)', table) == ["German", "English"]
    assert table.count('class="differs"') == 2
    assert comparison(two_say("de -", name="other").units.get(), []) == {}


def test_sets_of_labels_are_compared_label_by_label():
    class Said:
        voided_at, kind = None, Judgment.ANSWER

        def __init__(self, seen):
            self.seen = seen

    class Labels:
        facets = staticmethod(str.split)

    class Kind:
        form = Labels
        in_words = staticmethod(lambda label, _unit: label.upper())

    class Something:
        language, kind = "en", Kind

    unit = Something()
    unit.item = unit.task = unit
    found = comparison(unit, [Said("a b"), Said("b c"), Said("b c")])["compared"]
    assert [(row.name, row.given, row.differs) for row in found] == [
        ("C", [False, True, True], True),
        ("A", [True, False, False], True),
        ("B", [True, True, True], False),
    ]


def test_cases_that_are_checked_blind_show_no_line_about_answers_and_no_comparison(checked, eve, client):
    client.force_login(eve.user)
    blind = [unit for unit in to_adjudicate(checked, eve) if unit.blind]
    lines = {why(client, unit) for unit in blind}
    assert lines == {"Blind check: votes and answers are hidden so that they do not influence you."}
    pages = [client.get(f"{LIST}{unit.pk}/").text for unit in blind]
    assert not any(re.search("compared|Detectors|Skipped by|No reader|annotator-", page) for page in pages)
    assert len({tuple(re.findall(r'name="label" value="([\w-]+)"', page)) for page in pages}) == 1


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("options", [DESK, PHONE], ids=["desk", "phone"])
def test_nothing_moves_when_the_last_decision_is_shown_and_buttons_are_above_the_fold(two_say, ada, new_page, options):
    first, second = two_say("de en", "de en").units.order_by("position")
    settle(ada, first.pk, Answer("de", "I read it"))
    page = new_page(user=ada.user, **options)
    places = []
    for query in ("", f"?decided={first.pk}"):
        page.goto(f"{LIST}{second.pk}/{query}")
        assert page.locator(".toast").count() == bool(query)
        controls = page.locator("#post, #settle button, #settle input, #settle summary").filter(visible=True).all()
        places.append([control.bounding_box() for control in controls])
    assert places[0] == places[1]
    if options is DESK:
        boxes = [control.bounding_box() for control in page.locator("#settle > .languages button").all()]
        assert max(box["y"] + box["height"] for box in boxes) <= 800
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        assert page.locator("#settle [name=reason]").bounding_box()["y"] >= 0
    else:
        page.goto(LIST)
        assert max(row.bounding_box()["height"] for row in page.locator(".filter").all()) <= 56


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_blind_case_is_decided_by_a_digit(checked, eve, new_page):
    unit = next(unit for unit in to_adjudicate(checked, eve) if unit.blind)
    page = new_page(user=eve.user)
    page.goto(f"{LIST}{unit.pk}/")
    second = page.locator("[name=label][data-key=Digit2]").get_attribute("value")
    let_guard_pass(page)
    page.keyboard.press("Shift+Digit1")
    with page.expect_navigation():
        page.keyboard.press("2")
    assert eve.judgments.get(unit=unit).label == second
    assert where(unit)
