"""Twenty posts under one question, where people mark only the odd ones out."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from annotate.models import Judgment, Lease
from annotate.work.queue import open_lease, open_sheet, take, take_sheet
from tests.annotate.acts import said_by
from tests.annotate.conftest import DISPUTED

pytestmark = pytest.mark.both_databases


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
    assert said_by(ann)[:6] == ["de", "not-de", "de", "de", "und", "skip"]
    assert (said_by(ann).count("de"), len(said_by(ann))) == (17, 20)
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
        assert said_by(ann) == ["not-de", "de"]
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
    assert said_by(ann) == ["de"] * 3


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
    assert said_by(ann) == []
    assert len(open_sheet(ann, task)) == 3


def test_an_answer_of_a_sheet_is_taken_back_from_today_s_answers(make_task, as_ann, ann):
    task = make_task([DISPUTED] * 3, asked="de")
    start(as_ann)
    send(as_ann, form(task, ann))
    judgment = Judgment.objects.get(unit__position=2)
    assert as_ann.post("/tasks/task/undo/", {"judgment": judgment.pk}).url == "/tasks/task/"
    assert open_lease(ann, task).unit.position == 2
    assert said_by(ann) == ["de", "de"]


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
