"""Twenty posts under one question, where people mark only the odd ones out."""

import re
from datetime import timedelta
from statistics import mean

import pytest
from django.utils import timezone

from annotate.core import stages
from annotate.models import Judgment, Lease, Unit
from annotate.work.queue import open_lease, open_sheet, take, take_sheet
from tests.annotate.conftest import DISPUTED
from tests.annotate.hands import ARABIC, RUSSIAN, Hands, let_guard_pass, posts_of, said, stop_clock, worst_contrast

HTMX = {"HX-Request": "true"}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
SHEET = "/tasks/task/sheet/"


@pytest.fixture
def ann(person):
    return person("ann", "de sv")


@pytest.fixture
def as_ann(client, ann):
    client.force_login(ann.user)
    return client


def start(client):
    return client.post(f"{SHEET}start/", headers=HTMX).text


def form(task, annotator, **marks):
    """The form of the annotator's open sheet: Yes but for marks, such as p3="not-de" for the third post."""
    fields = {"lease": []}
    for lease in open_sheet(annotator, task):
        fields["lease"].append(lease.pk)
        fields[f"answer-{lease.pk}"] = marks.get(f"p{lease.unit.position}", lease.unit.asked)
    return fields


def send(client, fields, **options):
    return client.post(f"{SHEET}judge/", fields, **options)


def labels(annotator):
    live = Judgment.objects.filter(annotator=annotator, voided_at=None).order_by("unit__position")
    return [judgment.label or judgment.kind for judgment in live]


def positions(html):
    leases = re.findall(r'name="lease" value="(\d+)"', html)
    found = dict(Lease.objects.filter(pk__in=leases).values_list("pk", "unit__position"))
    return [found[int(lease)] for lease in leases]


# --- what is shown and what is saved


def test_a_sheet_has_twenty_posts_in_their_order_under_one_question(make_task, as_ann, ann):
    task = make_task([DISPUTED] * 23, asked="de", labels=["de", "sv"])
    task.units.filter(position=3).update(asked="sv")
    page = start(as_ann)
    assert positions(page) == [1, 2, *range(4, 22)]
    assert page.count("Is this <b>") == 1
    assert page.count('data-mark="KeyY" checked') == 20
    assert positions(as_ann.get(SHEET).text) == positions(page)


def test_marks_are_saved_and_the_next_sheet_comes_in_the_same_response(make_task, as_ann, ann):
    task = make_task([DISPUTED] * 22, asked="de")
    start(as_ann)
    page = send(as_ann, form(task, ann, p2="not-de", p5="und", p6="skip") | {"active_ms": "4000"}, headers=HTMX).text
    assert labels(ann)[:6] == ["de", "not-de", "de", "de", "und", "skip"]
    assert (labels(ann).count("de"), len(labels(ann))) == (17, 20)
    assert "20 answers saved." in page
    assert positions(page) == [21, 22]


def test_the_time_at_work_on_a_sheet_is_shared_out_evenly(make_task, as_ann, ann):
    task = make_task([DISPUTED] * 4, asked="de")
    start(as_ann)
    Lease.objects.update(opened_at=timezone.now() - timedelta(minutes=1))
    send(as_ann, form(task, ann, p1="skip") | {"active_ms": "10000"})
    assert set(Judgment.objects.values_list("active_seconds", flat=True)) == {2.5}


def test_a_sheet_that_is_sent_again_changes_nothing(make_task, as_ann, ann):
    task = make_task([DISPUTED] * 22, asked="de")
    start(as_ann)
    fields = form(task, ann, p2="not-de", p3="skip")
    first = send(as_ann, fields, headers=HTMX).text
    before = list(Judgment.objects.values())
    again = send(as_ann, fields, headers=HTMX).text
    assert list(Judgment.objects.values()) == before
    assert positions(again) == positions(first) == [21, 22]
    assert "20 answers saved." in again


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
        assert "<li>2 not saved: You had this one open for too long" in answer.text
        assert "<li>1 not saved: &#x27;sv&#x27; is not an answer here; it is de, not-de or und.</li>" in answer.text
        assert 'href="/tasks/task/answers/"' in answer.text
        assert labels(ann) == ["not-de", "de"]
        assert positions(answer.text) == [2]  # which was not answered


def test_a_second_sheet_with_other_marks_is_refused_and_the_first_stands(make_task, as_ann, ann):
    task = make_task([DISPUTED] * 3, asked="de")
    start(as_ann)
    fields = form(task, ann)
    send(as_ann, fields)
    changed = fields | {f"answer-{fields['lease'][0]}": "not-de"}
    page = send(as_ann, changed).text
    assert "2 of 3 answers were saved." in page
    assert "You have already answered German here, and that stands." in page
    assert labels(ann) == ["de"] * 3


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda fields: {}, "did not say which posts"),
        (lambda fields: fields | {"lease": ["x"]}, "did not say which posts"),
        (lambda fields: {"lease": fields["lease"]}, "without an answer, so nothing was saved"),
        (lambda fields: fields | {f"answer-{fields['lease'][1]}": ""}, "without an answer, so nothing was saved"),
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
    assert labels(ann) == []
    assert len(open_sheet(ann, task)) == 3


def test_an_answer_of_a_sheet_is_taken_back_from_today_s_answers(make_task, as_ann, ann):
    task = make_task([DISPUTED] * 3, asked="de")
    start(as_ann)
    send(as_ann, form(task, ann))
    judgment = Judgment.objects.get(unit__position=2)
    assert as_ann.post("/tasks/task/undo/", {"judgment": judgment.pk}).url == "/tasks/task/"
    assert open_lease(ann, task).unit.position == 2
    assert labels(ann) == ["de", "de"]


def test_a_task_that_asks_which_language_has_no_sheets(make_task, as_ann):
    make_task([DISPUTED] * 3)
    for answer in (as_ann.get(SHEET), as_ann.post(f"{SHEET}start/"), send(as_ann, {"lease": ["1"]})):
        assert answer.status_code == 404
        assert "This task has no sheets; its units come one by one." in answer.text
    assert not Lease.objects.exists()


def test_pausing_gives_the_whole_sheet_back(make_task, as_ann, ann):
    task = make_task([DISPUTED] * 3, asked="de")
    start(as_ann)
    assert as_ann.post("/tasks/task/pause/").url == "/"
    assert set(Lease.objects.values_list("outcome", "place")) == {("released", None)}
    assert open_sheet(ann, task) == []


def test_whoever_turns_to_one_by_one_begins_with_the_first_post_and_so_the_other_way(make_task, as_ann, ann):
    """Also where all that is left is on the sheet that they leave."""
    task = make_task([DISPUTED] * 3, asked="de")
    start(as_ann)
    assert "open with other readers" not in as_ann.get("/tasks/task/").text
    as_ann.post("/tasks/task/start/")
    assert (open_lease(ann, task).unit.position, open_sheet(ann, task)) == (1, [])
    assert "open with other readers" not in as_ann.get(SHEET).text
    as_ann.post(f"{SHEET}start/")
    assert [lease.unit.position for lease in open_sheet(ann, task)] == [1, 2, 3]
    assert open_lease(ann, task) is None
    assert set(Lease.objects.exclude(closed_at=None).values_list("outcome", flat=True)) == {"released"}


def test_a_post_that_is_open_in_the_other_mode_is_handed_out_anew_where_two_are_asked(make_task, ann):
    """Its second place is free, and one person cannot hold both. The first was given back for the sheet, and waits."""
    task = make_task([DISPUTED] * 3, asked="de", redundancy=2)
    assert take(ann, task).unit.position == 1
    assert [lease.unit.position for lease in take_sheet(ann, task)] == [1, 2, 3]
    assert open_lease(ann, task) is None
    assert take(ann, task).unit.position == 2
    assert open_sheet(ann, task) == []
    assert Lease.objects.filter(closed_at=None).count() == 1


def test_an_empty_sheet_says_why(make_task, as_ann, ann):
    task = make_task([DISPUTED] * 2, asked="de")
    start(as_ann)
    page = send(as_ann, form(task, ann), headers=HTMX).text
    assert "All done. Everything in this task has been read." in page
    assert "2 answers saved." in page
    assert "All done" in as_ann.get(SHEET).text


def test_a_change_of_the_language_is_said_aloud_on_a_sheet_too(make_task, as_ann, ann):
    task = make_task([DISPUTED] * 3, asked="de", labels=["de", "sv"])
    task.units.filter(position=3).update(asked="sv")
    first = start(as_ann)
    second = send(as_ann, form(task, ann), headers=HTMX).text
    assert ["New language" in page for page in (first, second)] == [False, True]
    assert "Is this <b>Swedish</b>" in second


# --- in a browser

in_browser = pytest.mark.django_db(transaction=True)
LETTERS = {"KeyN": "т", "KeyU": "г", "KeyS": "ы", "KeyY": "н", "KeyJ": "о", "KeyK": "л"}


@pytest.fixture
def on_sheet(new_page):
    """on_sheet(annotator) is that person with the first sheet before them."""

    def begin(annotator, layout=RUSSIAN, **options):
        page = new_page(user=annotator.user, **options)
        page.goto(SHEET)
        page.click("text=Start")
        page.wait_for_selector(".posts")
        let_guard_pass(page)
        return Hands(page, layout | LETTERS)

    return begin


def press(hands, keys):
    for key in keys.split():
        hands.press(key)


def row(hands):
    """The number of the row that has the focus, from 1."""
    return hands.page.evaluate(
        "1 + [...document.querySelectorAll('.posts > li')].findIndex(li => li.contains(document.activeElement))"
    )


@in_browser
@pytest.mark.parametrize("layout", [RUSSIAN, ARABIC], ids=["russian", "arabic"])
def test_a_sheet_by_keyboard(on_sheet, make_task, ann, layout):
    make_task([DISPUTED] * 6, asked="de")
    hands = on_sheet(ann, layout)
    submit = hands.page.locator("#submit")
    assert submit.inner_text().startswith("Submit: 6 yes")
    press(hands, "ArrowUp KeyN")
    assert row(hands) == 1
    press(hands, "KeyJ KeyU ArrowDown KeyS KeyJ KeyN KeyN KeyJ KeyN KeyY KeyK")
    assert row(hands) == 4
    assert submit.inner_text().startswith("Submit: 3 yes, 1 no, 1 undefined, 1 skipped")
    press(hands, "Enter Enter")
    assert row(hands) == 6
    assert said(ann) == []
    press(hands, "KeyN")
    hands.press_and_wait("Enter")  # on the last row
    assert labels(ann) == ["not-de", "und", "skip", "de", "de", "not-de"]
    assert "All done" in hands.page.inner_text("#work")


@in_browser
def test_enter_with_ctrl_submits_from_any_row_and_held_down_sends_one_sheet(on_sheet, make_task, ann):
    make_task([DISPUTED] * 45, asked="de")
    hands = on_sheet(ann)
    posted = posts_of(hands.page)
    hands.page.keyboard.down("Control")
    hands.page.keyboard.down("Enter")
    hands.page.wait_for_selector("text=20 answers saved")
    let_guard_pass(hands.page)
    for _ in range(5):
        hands.page.keyboard.down("Enter")  # repeats
    assert len(posted) == 1
    assert len(labels(ann)) == 20
    assert row(hands) == 1


@in_browser
def test_a_click_that_comes_twice_sends_one_sheet(on_sheet, make_task, ann):
    make_task([DISPUTED] * 45, asked="de")
    page = on_sheet(ann).page
    posted = posts_of(page)
    page.dblclick("#submit")
    page.wait_for_selector("text=20 answers saved")
    let_guard_pass(page)
    assert len(posted) == 1
    assert len(labels(ann)) == 20


@in_browser
def test_a_sheet_by_mouse(on_sheet, make_task, ann):
    make_task([DISPUTED] * 4, asked="de")
    page = on_sheet(ann).page
    page.click(".posts > li:nth-child(2) label:has(.no)")
    page.click(".posts > li:nth-child(3) .text")
    page.keyboard.press("KeyU")
    page.click(".posts > li:nth-child(4) label:has(.skip)")
    page.click(".posts > li:nth-child(4) label:has(.yes)")
    page.click("text=Submit: 2 yes, 1 no, 1 undefined")
    page.wait_for_selector("text=4 answers saved")
    assert labels(ann) == ["de", "not-de", "und", "de"]


@in_browser
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
    assert labels(ann) == ["de", "not-de", *["de"] * 17, "skip"]


@in_browser
def test_a_sheet_without_javascript(new_page, make_task, ann):
    make_task([DISPUTED] * 22, asked="de")
    page = new_page(user=ann.user, java_script_enabled=False)
    page.goto("/")
    page.click("button:has-text('Start a sheet')")
    page.click(".posts > li:nth-child(2) label:has(.no)")
    page.click("button:has-text('Submit all 20')")
    assert page.locator(".posts > li").count() == 2
    page.click("button:has-text('Submit all 2')")
    assert "All done" in page.inner_text("#work")
    assert labels(ann) == ["de", "not-de", *["de"] * 20]


@in_browser
def test_marks_stay_when_the_line_is_gone(on_sheet, make_task, ann, console_errors):
    make_task([DISPUTED] * 3, asked="de")
    hands = on_sheet(ann)
    press(hands, "KeyN")
    hands.page.context.set_offline(True)
    hands.page.keyboard.press("Control+Enter")
    hands.page.wait_for_selector("text=There is no connection")
    assert hands.page.inner_text("#count") == "Submit: 2 yes, 1 no"
    hands.page.context.set_offline(False)
    hands.page.keyboard.press("Control+Enter")
    hands.page.wait_for_selector("text=3 answers saved")
    assert labels(ann) == ["not-de", "de", "de"]
    console_errors.clear()  # the lost request


@in_browser
def test_a_sheet_whose_reply_was_lost_is_counted_once(on_sheet, make_task, ann, console_errors):
    make_task([DISPUTED] * 3, asked="de")
    hands = on_sheet(ann)
    press(hands, "KeyN")

    def lose(route):
        route.fetch()
        route.abort()

    hands.page.route("**/sheet/judge/", lose, times=1)
    hands.page.keyboard.press("Control+Enter")
    hands.page.wait_for_selector("text=There is no connection")
    hands.page.keyboard.press("Control+Enter")
    hands.page.wait_for_selector("text=3 answers saved")
    assert labels(ann) == ["not-de", "de", "de"]
    assert Judgment.objects.count() == 3
    console_errors.clear()  # the lost reply


@in_browser
def test_marks_outlive_the_session(on_sheet, make_task, ann):
    make_task([DISPUTED] * 3, asked="de")
    hands = on_sheet(ann)
    page = hands.page
    press(hands, "ArrowDown KeyN ArrowDown KeyS")
    page.context.clear_cookies(name="sessionid")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/login/**")
    page.fill("[name=username]", "ann")
    page.fill("[name=password]", "a long password")
    page.click("button:has-text('Log in')")
    page.wait_for_selector(".posts")
    assert page.inner_text("#count") == "Submit: 1 yes, 1 no, 1 skipped"
    let_guard_pass(page)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=3 answers saved")
    assert labels(ann) == ["de", "not-de", "skip"]


@in_browser
def test_a_page_older_than_the_session_keeps_the_marks(on_sheet, make_task, ann, console_errors):
    make_task([DISPUTED] * 3, asked="de")
    hands = on_sheet(ann)
    page = hands.page
    press(hands, "KeyN")
    page.context.add_cookies([{"name": "csrftoken", "value": "x" * 32, "url": page.url.partition("/tasks")[0]}])
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=This page is older than your session")
    assert page.inner_text("#count") == "Submit: 2 yes, 1 no"
    page.click("text=Open sheet")
    page.wait_for_selector("#notice:empty", state="attached")
    assert page.inner_text("#count") == "Submit: 2 yes, 1 no"
    let_guard_pass(page)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=3 answers saved")
    console_errors.clear()  # the refusal


@in_browser
def test_a_press_that_was_meant_for_the_sheet_before_sends_nothing(on_sheet, make_task, ann):
    make_task([DISPUTED] * 40, asked="de")
    page = on_sheet(ann).page
    stop_clock(page)
    posted = posts_of(page)
    for _ in range(2):
        page.keyboard.press("Control+Enter")
        page.wait_for_selector("text=20 answers saved")
    page.click("#submit")
    assert len(posted) == 1
    let_guard_pass(page)
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=All done")
    assert len(posted) == 2
    assert labels(ann) == ["de"] * 40


@in_browser
def test_marks_of_one_sheet_are_not_those_of_the_next(on_sheet, make_task, ann):
    make_task([DISPUTED] * 40, asked="de")
    hands = on_sheet(ann)
    press(hands, "KeyN ArrowDown KeyU")
    hands.page.keyboard.press("Control+Enter")
    hands.page.wait_for_selector("text=20 answers saved")
    assert hands.page.inner_text("#count") == "Submit: 20 yes"
    hands.page.reload()
    assert hands.page.inner_text("#count") == "Submit: 20 yes"


@in_browser
def test_idle_time_on_a_sheet_does_not_count(on_sheet, make_task, ann):
    make_task([DISPUTED] * 4, asked="de")
    page = on_sheet(ann).page
    ann.leases.update(opened_at=timezone.now() - timedelta(hours=1))
    page.evaluate("() => { const now = performance.now.bind(performance); performance.now = () => now() + 3600e3; }")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=4 answers saved")
    assert 29 < sum(Judgment.objects.values_list("active_seconds", flat=True)) < 40


@in_browser
def test_guidelines_open_beside_the_sheet_and_the_keys_go_on_working(on_sheet, make_task, ann):
    make_task([DISPUTED] * 4, asked="de")
    hands = on_sheet(ann)
    press(hands, "KeyG ArrowDown KeyN")
    assert hands.page.locator("#guidelines").get_attribute("open") is not None
    assert hands.page.inner_text("#count") == "Submit: 3 yes, 1 no"
    press(hands, "KeyG")
    assert hands.page.locator("#guidelines").get_attribute("open") is None


@in_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_have_contrast(on_sheet, make_task, ann, scheme):
    make_task([DISPUTED] * 4, asked="de")
    hands = on_sheet(ann, color_scheme=scheme)
    press(hands, "KeyN ArrowDown KeyU ArrowDown KeyS")
    assert worst_contrast(hands.page) >= 4.5


@in_browser
def test_both_ways_over_the_same_posts_with_their_times_an_item(at_work, on_sheet, make_task, ann, person):
    """How long an item takes each way is recorded; that one is quicker is for people to say, not for a script."""
    odd = {3, 11, 17}
    task = make_task([DISPUTED] * 20, asked="de", redundancy=2)
    bea = person("bea", "de")
    hands = at_work(task, ann)
    for position in range(1, 21):
        hands.press_and_wait("Digit2" if position in odd else "Digit1")
    assert "All done" not in hands.page.inner_text("#notice")

    hands = on_sheet(bea)
    for position in range(1, 21):
        if position in odd:
            hands.press("KeyN")
        if position < 20:
            hands.press("ArrowDown")
    hands.press_and_wait("Enter")
    hands.page.wait_for_selector("text=20 answers saved")

    expected = ["not-de" if position in odd else "de" for position in range(1, 21)]
    assert labels(ann) == labels(bea) == expected
    assert list(task.units.values_list("stage", "label")) == [(stages.LABELLED, label) for label in expected]
    times = {}
    for annotator, sheet in ((ann, False), (bea, True)):
        judgments = annotator.judgments.filter(lease__sheet=sheet)
        seconds = list(judgments.values_list("active_seconds", flat=True))
        assert len(seconds) == 20
        assert all(each is not None and each > 0 for each in seconds)
        times[sheet] = mean(seconds)
    print(f"\nby script, an item: {times[False]:.2f} s one by one, {times[True]:.2f} s on a sheet")
    assert Unit.objects.filter(stage=stages.QUEUED).count() == 0


@in_browser
def test_marks_can_be_told_apart_where_the_systems_own_colours_hold(on_sheet, make_task, ann):
    make_task([DISPUTED] * 5, asked="de")
    page = on_sheet(ann).page
    page.emulate_media(forced_colors="active")
    grounds = "all => all.map(each => getComputedStyle(each.nextElementSibling).backgroundColor)"
    for mark in ("no", "undefined", "skip"):
        box = page.locator(f".posts > li:nth-child(2) .{mark}")
        before = box.evaluate_all(grounds)
        box.check(force=True)
        assert box.evaluate_all(grounds) != before, mark


@in_browser
def test_the_page_that_one_is_on_can_be_told_where_the_systems_own_colours_hold(new_page, make_task, manager):
    make_task([DISPUTED])
    page = new_page(user=manager, forced_colors="active")
    page.goto("/manage/tasks/task/people/")
    borders = "all => all.map(each => getComputedStyle(each).borderBottomColor)"
    [here] = page.locator(".tabs a[aria-current]").evaluate_all(borders)
    others = page.locator(".tabs a:not([aria-current])").evaluate_all(borders)
    assert here not in others
    assert len(set(others)) == 1
