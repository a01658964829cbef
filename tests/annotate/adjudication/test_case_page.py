"""A case's page: why it waits, how its answers differ, other cases of the same text, and decisions by keyboard."""

import re
from html import unescape
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from annotate.core import stages
from annotate.kinds import Answer
from annotate.models import Judgment
from annotate.pages.case_summary import MOST_CHARACTERS, comparison, shorten
from annotate.work.adjudication import discard, settle, to_adjudicate, with_same_text
from annotate.work.interventions import pause
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from tests.annotate.acts import NO_CHECKS
from tests.annotate.adjudication.conftest import LIST, where
from tests.annotate.conftest import DISPUTED
from tests.annotate.hands import let_guard_pass
from tests.looks import sticks_out

DESK = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def why(client, unit):
    page = client.get(f"{LIST}{unit.pk}/").text
    words = re.sub("<[^>]*>", "", re.search(r'<p class="why">(.*?)</p>', page, re.DOTALL)[1])
    return " ".join(unescape(words).split())


def test_the_line_has_the_beginning_of_a_long_answer_with_every_isolate_closed():
    spans = "; ".join(f"\u2068“Name {number}”\u2069 \u2068Person\u2069" for number in range(20))
    short = shorten(spans)
    assert short.startswith(spans[:40])
    assert "…" in short
    assert len(short) <= MOST_CHARACTERS + 1
    assert short.count("\u2068") == short.count("\u2069")
    assert shorten("German") == "German"


def test_a_line_states_why_a_case_waits_and_who_answered_what_by_names_of_languages(two_say, as_ada):
    units = two_say("de en", "de -", "- -").units.order_by("position")
    first, second = (
        Judgment.objects.filter(annotator__user__username=f"task-{number}").first().annotator.pseudonym
        for number in range(2)
    )
    detectors = "Detectors: German 2, English 1."
    assert [why(as_ada, unit) for unit in units] == [
        f"Answers differ. German: {first} (German). English: {second} (German). {detectors}",
        f"No reader left. German: {first} (German). Skipped by {second} (German). {detectors}",
        f"No reader left. Skipped by {first} (German). {detectors}",
    ]
    page = as_ada.get(f"{LIST}{units[0].pk}/").text
    assert "task-0" not in page
    assert not re.search(r"<b>(?:de|en|fr)</b>", page)
    assert "<td>German, English</td>" in as_ada.get(LIST).text


def test_answers_are_compared_label_by_label_first_those_that_differ(two_say, as_ada):
    unit = two_say("de en").units.get()
    page = as_ada.get(f"{LIST}{unit.pk}/").text
    table = re.search(r'<table class="rows compared">.*?</table>', page, re.DOTALL)[0]
    assert re.findall(r'<th scope="row"><bdi>(\w+)', table) == ["German", "English"]
    assert table.count('class="differs"') == 2
    assert comparison(two_say("de -", name="other").units.get(), []) == {}


def test_sets_of_labels_are_compared_label_by_label():
    kind = SimpleNamespace(form=SimpleNamespace(facets=str.split), in_words=lambda label, _unit: label.upper())
    unit = SimpleNamespace(language="en", kind=kind)
    unit.item = unit.task = unit
    judgments = [SimpleNamespace(voided_at=None, kind=Judgment.ANSWER, seen=seen) for seen in ("a b", "b c", "b c")]
    assert [(row.name, row.contains, row.differs) for row in comparison(unit, judgments)["compared"]] == [
        ("C", [False, True, True], True),
        ("A", [True, False, False], True),
        ("B", [True, True, True], False),
    ]


def test_cases_that_are_checked_blind_show_no_line_about_answers_and_no_comparison(checked, eve, as_eve):
    blind = [unit for unit in to_adjudicate(checked, eve) if unit.blind]
    lines = {why(as_eve, unit) for unit in blind}
    assert lines == {"Blind check: votes and answers are hidden so that they do not influence you."}
    pages = [as_eve.get(f"{LIST}{unit.pk}/").text for unit in blind]
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


# --- cases of one text


def test_cases_of_one_text_stand_beside_each_other_and_copies_are_counted(make_task, person, ada, as_ada):
    same = {"text": "the very same text of a post, long enough", "votes": DISPUTED}
    task = make_task([{**same, "key": "a"}, {**same, "key": "b"}, DISPUTED], rounds=1)
    original = task.units.exclude(stage=stages.COPIED).order_by("position").first()
    # Another task asks about the same post.
    other = make_task([DISPUTED], name="other", rounds=1)
    twin = other.units.get()
    twin.item = task.units.get(stage=stages.COPIED).item
    twin.save()
    ann = person("ann", "de")
    for current in (task, other):
        while lease := take(ann, current):
            skip(ann, lease.pk)
    assert [unit for unit, _ in with_same_text(original, ada)] == [twin]
    page = as_ada.get(reverse("adjudicate", args=[task.name, original.pk])).text
    assert "1 copy gets the same label." in page
    assert f'href="/tasks/other/adjudication/{twin.pk}/"' in page
    discard(ada, twin.pk, "Nothing found")
    assert with_same_text(original, ada) == []


@pytest.fixture
def twins(make_task, person):
    """Two cases of one post in two tasks. knobs: options of the second, in which a reader has answered."""

    def make(**knobs):
        first, second = make_task([DISPUTED], rounds=1), make_task([DISPUTED], name="second", rounds=1, **knobs)
        second.units.update(item=first.units.get().item)
        ann, bea = person("ann", "de"), person("bea", "de")
        skip(ann, take(ann, first).pk)
        judge(ann, take(ann, second).pk, Answer("de"))
        if lease := take(bea, second):
            skip(bea, lease.pk)
        return first.units.get(), second.units.get()

    return make


def test_a_blind_case_is_never_listed_with_another_case(twins, ada, as_ada):
    plain, blind = twins(**NO_CHECKS | {"check_share": 1.0})
    assert (where(plain)[0], where(blind)[0]) == (stages.ADJUDICATION, stages.ADJUDICATION)
    assert with_same_text(plain, ada) == []
    for unit in (plain, blind):
        page = as_ada.get(reverse("adjudicate", args=[unit.task.name, unit.pk])).text
        assert "The same text" not in page


def test_a_task_in_which_an_adjudicator_is_paused_is_not_led_to(twins, ada, manager):
    plain, other = twins(redundancy=2, skip_limit=1)
    assert [unit for unit, _ in with_same_text(plain, ada)] == [other]
    pause(ada, other.task, by=manager, reason="asleep")
    assert with_same_text(plain, ada) == []


# --- on a phone, and by keys alone


@pytest.mark.slow
def test_nothing_sticks_out_of_a_phone_however_long_names_are(two_say, ada, new_page):
    task = two_say("de en", "de -")
    User.objects.update(first_name="Bartholomäus Maximilian", last_name="Wolkenstein-Trostburg")
    page = new_page(user=ada.user, viewport={"width": 320, "height": 568})
    for address in (LIST, *(f"{LIST}{unit.pk}/" for unit in task.units.all())):
        page.goto(address)
        assert not sticks_out(page), address


# The keys pressed for a case, and the label that they give.
BY_FIRST_REASON, BY_OWN_REASON = ["Shift", "Digit1"], ["Shift", "Digit7"]
BY_KEYS = [
    ([*BY_FIRST_REASON, "Digit1"], "de"),
    ([*BY_FIRST_REASON, "Digit2"], "en"),
    (["Shift", "Digit5", "KeyQ"], "und"),
    (["Shift", "Digit6", "Digit0"], ""),
    *(([*BY_FIRST_REASON, "KeyW", *letters, "Enter"], code) for letters, code in (("fre", "fr"), ("עבר", "he"))),
    ([*BY_OWN_REASON, "Digit1"], "de"),
]


@pytest.mark.slow
def test_every_decision_is_made_by_at_most_seven_keys(two_say, ada, new_page):
    """Enter begins with the first case. A reason and a label are three keys, Shift among them; a language that is not
    among the first is found by as many letters as tell it from others.
    """
    task = two_say(*["- -"] * (1 + len(BY_KEYS)))
    first, *units = task.units.order_by("position")
    settle(ada, first.pk, Answer("de", "A friend reads it"))
    page = new_page(user=ada.user)
    page.goto(LIST)
    with page.expect_navigation():
        page.keyboard.press("Enter")
    for keys, _ in BY_KEYS:
        let_guard_pass(page)
        *before, last = keys
        for key in before:
            if key == "Shift":
                page.keyboard.down(key)
            elif key.isascii():
                page.keyboard.press(key)
            else:
                page.keyboard.insert_text(key)
            if key.startswith("Digit"):
                page.keyboard.up("Shift")
        with page.expect_navigation():
            page.keyboard.press(last)
    assert [where(unit)[1] for unit in units] == [label for _, label in BY_KEYS]
    reasons = list(Judgment.objects.decisions().filter(unit__in=units).order_by("pk").values_list("reason", flat=True))
    assert (reasons[3], reasons[-1]) == ("Nothing found", "A friend reads it")
    assert max(len(keys) for keys, _ in BY_KEYS) == 7
