"""Sheets: twenty items under one question, where people mark only the exceptions."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from annotate.models import Judgment, Lease
from annotate.work import queue
from annotate.work.permit import acting
from annotate.work.queue import SHEET, open_lease, open_sheet, take, take_sheet
from tests.annotate.acts import said_by
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.hands import (
    ARABIC,
    RUSSIAN,
    Hands,
    answers_of,
    let_guard_pass,
    lose_reply,
    posts_of,
    stop_clock,
)
from tests.together import at_once

pytestmark = pytest.mark.both_databases
ANN_READS = "de sv"
HTMX = {"HX-Request": "true"}
SHEET_PAGE = "/tasks/task/sheet/"


def start(client):
    return client.post(f"{SHEET_PAGE}start/", headers=HTMX).text


def form(task, annotator, **marks):
    """The form of the annotator's open sheet: Yes except for marks, such as p3="not-de" for the third post."""
    fields = {"lease": []}
    for lease in open_sheet(annotator, task):
        fields["lease"].append(lease.pk)
        fields[f"answer-{lease.pk}"] = marks.get(f"p{lease.unit.position}", lease.unit.asked)
    return fields


def send(client, fields, **options):
    return client.post(f"{SHEET_PAGE}judge/", fields, **options)


def positions(page):
    leases = re.findall(r'name="lease" value="(\d+)"', page)
    return [Lease.objects.get(pk=lease).unit.position for lease in leases]


# --- what is shown and what is saved


def test_a_sheet_has_twenty_items_in_their_order_under_one_question(make_task, as_ann, ann):
    task = make_task([DISPUTED] * 23, asked="de", labels=["de", "sv"])
    task.units.filter(position=3).update(asked="sv")
    page = start(as_ann)
    assert positions(page) == [1, 2, *range(4, 22)]
    assert page.count("Is this <b>") == 1
    assert page.count('data-mark="KeyY" checked') == 20
    assert positions(as_ann.get(SHEET_PAGE).text) == positions(page)
    task.units.filter(position__gt=21).update(asked="sv")
    second = send(as_ann, form(task, ann), headers=HTMX).text
    assert ["New language" in sheet for sheet in (page, second)] == [False, True]
    assert "Is this <b>Swedish</b>" in second


def test_marks_are_saved_once_with_equal_times_and_the_reply_has_the_next_sheet(make_task, as_ann, ann):
    task = make_task([DISPUTED] * 22, asked="de")
    start(as_ann)
    Lease.objects.update(opened_at=timezone.now() - timedelta(minutes=1))
    fields = form(task, ann, p2="not-de", p5="und", p6="skip") | {"active_ms": "50000"}
    pages = [send(as_ann, fields, headers=HTMX).text for _ in range(2)]
    assert said_by(ann) == ["de", "not-de", "de", "de", "und", "skip", *["de"] * 14]
    assert set(Judgment.objects.values_list("active_seconds", flat=True)) == {2.5}
    for page in pages:
        assert "20 answers saved." in page
        assert positions(page) == [21, 22]
    page = send(as_ann, form(task, ann), headers=HTMX).text
    assert "All done. All items of this task have been read." in page
    assert "2 answers saved." in page
    assert "All done" in as_ann.get(SHEET_PAGE).text


def test_what_is_refused_is_said_and_the_rest_is_saved(make_task, as_ann, ann, person):
    task = make_task([DISPUTED] * 5, asked="de", labels=["de", "sv"])
    start(as_ann)
    fields = form(task, ann, p2="sv", p3="not-de")
    Lease.objects.filter(unit__position__in=(1, 5)).update(expires_at=timezone.now() - timedelta(seconds=1))
    for name in ("bea", "cem"):
        take(person(name, "de"), task)
    for headers in (HTMX, {}):
        answer = send(as_ann, fields, headers=headers)
        assert answer.status_code == 200
        assert "2 of 5 answers were saved." in answer.text
        assert "<li>2 not saved: You had this item open for too long" in answer.text
        assert (
            "<li>1 not saved: &#x27;sv&#x27; is not a valid answer. Valid answers: de, not-de and und.</li>"
            in answer.text
        )
        assert 'href="/tasks/task/answers/"' in answer.text
        assert said_by(ann) == ["not-de", "de"]
        assert positions(answer.text) == [2]  # which was not answered


def test_a_second_sheet_with_other_marks_is_refused_and_one_answer_can_be_taken_back(make_task, as_ann, ann):
    task = make_task([DISPUTED] * 3, asked="de")
    start(as_ann)
    fields = form(task, ann)
    send(as_ann, fields)
    page = send(as_ann, fields | {f"answer-{fields['lease'][0]}": "not-de"}).text
    assert "2 of 3 answers were saved." in page
    assert "You have already answered German." in page
    assert said_by(ann) == ["de"] * 3
    judgment = Judgment.objects.get(unit__position=2)
    assert as_ann.post("/tasks/task/undo/", {"judgment": judgment.pk}).url == "/tasks/task/"
    assert open_lease(ann, task).unit.position == 2
    assert said_by(ann) == ["de", "de"]


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda fields: {}, "does not identify the posts"),
        (lambda fields: fields | {"lease": ["x"]}, "does not identify the posts"),
        (lambda fields: {"lease": fields["lease"]}, "has no answer, so nothing was saved"),
        (lambda fields: fields | {f"answer-{fields['lease'][1]}": ""}, "has no answer, so nothing was saved"),
        (lambda fields: fields | {f"answer-{fields['lease'][1]}": "de\x00"}, "NUL character"),
    ],
)
def test_a_form_that_cannot_be_read_is_refused_whole(make_task, as_ann, ann, spoil, sentence):
    task = make_task([DISPUTED] * 3, asked="de")
    start(as_ann)
    refused = send(as_ann, spoil(form(task, ann)), headers=HTMX)
    assert (refused.status_code, refused["HX-Retarget"]) == (400, "#notice")
    assert sentence in refused.text
    assert 'action="/tasks/task/sheet/start/"' in refused.text
    assert said_by(ann) == []
    assert len(open_sheet(ann, task)) == 3


def test_a_task_that_asks_which_language_has_no_sheets(make_task, as_ann):
    make_task([DISPUTED] * 3)
    for answer in (as_ann.get(SHEET_PAGE), as_ann.post(f"{SHEET_PAGE}start/"), send(as_ann, {"lease": ["1"]})):
        assert answer.status_code == 404
        assert "This task has no sheets. Its items are shown one at a time." in answer.text
    assert not Lease.objects.exists()


def test_whoever_turns_to_one_by_one_begins_with_the_first_item_and_so_the_other_way(make_task, as_ann, ann):
    """Even if the only units left are on the sheet that they leave."""
    task = make_task([DISPUTED] * 3, asked="de")
    start(as_ann)
    assert "open with other readers" not in as_ann.get("/tasks/task/").text
    as_ann.post("/tasks/task/start/", {"read": 1})
    assert (open_lease(ann, task).unit.position, open_sheet(ann, task)) == (1, [])
    assert "open with other readers" not in as_ann.get(SHEET_PAGE).text
    as_ann.post(f"{SHEET_PAGE}start/", {"read": 1})
    assert [lease.unit.position for lease in open_sheet(ann, task)] == [1, 2, 3]
    assert open_lease(ann, task) is None
    assert as_ann.post("/tasks/task/pause/").url == "/"
    assert set(Lease.objects.values_list("outcome", "place")) == {("released", None)}
    assert open_sheet(ann, task) == []


def test_a_post_that_is_open_in_the_other_mode_is_handed_out_anew_where_two_are_asked(make_task, ann):
    """Its second place is free, and one person cannot hold both. The first was given back for the sheet, and waits."""
    task = make_task([DISPUTED] * 3, asked="de", redundancy=2)
    assert take(ann, task).unit.position == 1
    assert [lease.unit.position for lease in take_sheet(ann, task)] == [1, 2, 3]
    assert open_lease(ann, task) is None
    assert take(ann, task).unit.position == 2
    assert open_sheet(ann, task) == []
    assert Lease.objects.filter(closed_at=None).count() == 1


# --- several sheets begun at the same moment, in threads with their own connections


@pytest.mark.django_db(transaction=True)
def test_each_of_several_who_begin_at_once_has_a_whole_sheet(make_task, person):
    people = [person(f"reader{number}", "de") for number in range(6)]
    task = make_task([AGREED] * (SHEET * len(people)), asked="de")
    sheets = at_once(*(lambda annotator=annotator: take_sheet(annotator, task) for annotator in people))
    assert [len(sheet) for sheet in sheets] == [SHEET] * len(people), sheets
    assert len({lease.unit_id for sheet in sheets for lease in sheet}) == SHEET * len(people)


def test_units_that_somebody_took_before_they_were_locked_are_replaced_by_the_next(make_task, ann, person, monkeypatch):
    """The statement that locks units may start before the other transaction ends."""
    task = make_task([AGREED] * (3 * SHEET), asked="de")
    other = person("other", "de")
    with acting(other.user, task.name) as theirs:
        pass
    lease_locked, taken = queue.lease_locked, []

    def lose_race(unit, permit, **how):
        if len(taken) < SHEET:
            taken.append(lease_locked(unit, theirs, **how))
        return lease_locked(unit, permit, **how)

    monkeypatch.setattr(queue, "lease_locked", lose_race)
    assert [lease.unit.position for lease in take_sheet(ann, task)] == [*range(SHEET + 1, 2 * SHEET + 1)]
    assert len(open_sheet(other, task)) == SHEET


@pytest.mark.django_db(transaction=True)
def test_two_tabs_show_the_same_sheet_and_all_of_it(make_task, ann):
    task = make_task([AGREED] * (3 * SHEET), asked="de")
    first, *others = at_once(*[lambda: take_sheet(ann, task)] * 4)
    assert len(first) == SHEET
    assert others == [first] * 3
    assert Lease.objects.count() == SHEET


# --- by keyboard, by touch and in every look


PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


LETTERS = {"KeyN": "т", "KeyU": "г", "KeyS": "ы", "KeyY": "н", "KeyJ": "о", "KeyK": "л"}


@pytest.fixture
def on_sheet(new_page):
    """on_sheet(annotator) opens the first sheet as that person."""

    def begin(annotator, layout=RUSSIAN, **options):
        page = new_page(user=annotator.user, **options)
        page.goto("/tasks/task/sheet/")
        page.click("button:has-text('Start')")
        page.wait_for_selector(".posts")
        let_guard_pass(page)
        return Hands(page, layout | LETTERS)

    return begin


def press(hands, keys):
    for key in keys.split():
        hands.press(key)


def row(hands):
    """Return the number of the focused row, from 1."""
    return hands.page.evaluate(
        "1 + [...document.querySelectorAll('.posts > li')].findIndex(li => li.contains(document.activeElement))"
    )


def test_a_sheet_by_keyboard(on_sheet, make_task, ann):
    make_task([DISPUTED] * 6, asked="de")
    hands = on_sheet(ann, ARABIC)
    submit = hands.page.locator("#submit")
    assert submit.inner_text().startswith("Submit: 6 yes")
    press(hands, "ArrowUp KeyN")
    assert row(hands) == 1
    press(hands, "KeyJ KeyU ArrowDown KeyS KeyJ KeyN KeyN KeyJ KeyN KeyY KeyK")
    assert row(hands) == 4
    assert submit.inner_text().startswith("Submit: 3 yes, 1 no, 1 undefined, 1 skipped")
    press(hands, "Enter Enter")
    assert row(hands) == 6
    assert answers_of(ann) == []
    press(hands, "KeyN")
    hands.press_and_wait("Enter")  # on the last row
    assert said_by(ann) == ["not-de", "und", "skip", "de", "de", "not-de"]
    assert "All done" in hands.page.inner_text("#work")


def test_a_sheet_is_sent_once_by_keys_held_down_double_clicks_and_presses_meant_for_the_one_before(
    on_sheet, make_task, ann
):
    make_task([DISPUTED] * 45, asked="de")
    hands = on_sheet(ann)
    page = hands.page
    posted = posts_of(page)
    press(hands, "KeyN ArrowDown KeyU")
    page.keyboard.down("Control")
    page.keyboard.down("Enter")
    page.wait_for_selector("text=20 answers saved")
    let_guard_pass(page)
    for _ in range(5):
        page.keyboard.down("Enter")  # repeats
    page.keyboard.up("Enter")
    page.keyboard.up("Control")
    assert (len(posted), len(said_by(ann)), row(hands)) == (1, 20, 1)
    # Its marks are not those of the next.
    assert page.inner_text("#count") == "Submit: 20 yes"
    page.reload()
    assert page.inner_text("#count") == "Submit: 20 yes"
    stop_clock(page)
    let_guard_pass(page)
    page.dblclick("#submit")
    page.wait_for_selector("text=20 answers saved")
    page.click("#submit")
    assert (len(posted), page.locator(".posts > li").count()) == (2, 5)
    assert said_by(ann) == ["not-de", "und", *["de"] * 38]


@pytest.mark.slow
def test_a_sheet_on_a_phone(on_sheet, make_task, ann):
    text = "مرحبا بالعالم\nLatin letters " + "Donaudampfschifffahrtsgesellschaft" * 5
    make_task([DISPUTED, {"votes": DISPUTED, "text": text}, *[DISPUTED] * 18], asked="de")
    page = on_sheet(ann, **PHONE).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    sizes = page.locator(".marks span, #submit").evaluate_all(
        "nodes => nodes.map(node => node.getBoundingClientRect()).map(box => [box.width, box.height])"
    )
    assert min(width for width, _ in sizes) >= 44
    assert min(height for _, height in sizes) >= 44
    directions = page.locator(".posts > li:nth-child(2) p").evaluate_all(
        "nodes => nodes.map(node => [getComputedStyle(node).direction, node.attributes.length])"
    )
    assert directions == [["rtl", 1], ["ltr", 1]]
    page.tap(".posts > li:nth-child(2) label:has(.no)")
    page.tap(".posts > li:nth-child(20) label:has(.skip)")
    page.tap("text=Submit: 18 yes, 1 no, 1 skipped")
    page.wait_for_selector("text=20 answers saved")
    assert said_by(ann) == ["de", "not-de", *["de"] * 17, "skip"]


def test_marks_stay_when_line_reply_or_token_are_lost_and_the_sheet_counts_once(
    on_sheet, make_task, ann, console_errors
):
    make_task([DISPUTED] * 3, asked="de")
    hands = on_sheet(ann)
    page = hands.page
    page.context.set_offline(True)
    press(hands, "KeyN")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=There is no connection")
    assert page.inner_text("#count") == "Submit: 2 yes, 1 no"
    page.context.set_offline(False)
    site = page.url.partition("/tasks")[0]
    page.context.add_cookies([{"name": "csrftoken", "value": "x" * 32, "url": site}])
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=This page is older than your session")
    assert page.inner_text("#count") == "Submit: 2 yes, 1 no"
    page.click("text=Open sheet")
    page.wait_for_selector("#notice:empty", state="attached")
    assert page.inner_text("#count") == "Submit: 2 yes, 1 no"
    let_guard_pass(page)
    lose_reply(page, "/sheet/judge/")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=There is no connection")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=3 answers saved")
    assert said_by(ann) == ["not-de", "de", "de"]
    assert Judgment.objects.count() == 3
    console_errors.clear()  # the lost request, the refusal and the lost reply


@pytest.mark.slow
def test_marks_can_be_told_apart_where_the_systems_own_colours_hold(on_sheet, make_task, ann):
    make_task([DISPUTED] * 5, asked="de")
    page = on_sheet(ann, forced_colors="active").page
    grounds = "all => all.map(each => getComputedStyle(each.nextElementSibling).backgroundColor)"
    for mark in ("no", "undefined", "skip"):
        box = page.locator(f".posts > li:nth-child(5) .{mark}")
        before = box.evaluate_all(grounds)
        box.check(force=True)
        assert box.evaluate_all(grounds) != before, mark


@pytest.mark.slow
def test_the_page_that_one_is_on_can_be_told_where_the_systems_own_colours_hold(new_page, make_task, manager):
    make_task([DISPUTED])
    page = new_page(user=manager, forced_colors="active")
    page.goto("/manage/tasks/task/people/")
    borders = "all => all.map(each => getComputedStyle(each).borderBottomColor)"
    tabs = page.locator(".tabs").last  # of the task
    [here] = tabs.locator("a[aria-current]").evaluate_all(borders)
    others = tabs.locator("a:not([aria-current])").evaluate_all(borders)
    assert here not in others
    assert len(set(others)) == 1
