"""The pages that ask about records of several fields: by keyboard, on a phone, in the dark, from right to left."""

import re

import pytest

from annotate.core import stages
from annotate.judging import judge
from annotate.models import Judgment, Task
from annotate.queue import open_lease, take
from annotate.task_types import TASK_TYPES
from annotate.task_types.task_type import Answer
from tests.annotate.hands import ARABIC, FRENCH, GRACE, said

HTMX = {"HX-Request": "true"}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
RECORD_TYPES = ["ad_relevance", "qa_match", "web_ranking"]


@pytest.fixture
def ann(person):
    return person("ann", "en de")


@pytest.fixture
def as_ann(client, ann):
    client.force_login(ann.user)
    return client


def start(client, task="crowd"):
    return client.post(f"/tasks/{task}/start/", headers=HTMX).text


def send(client, annotator, task="crowd", **fields):
    lease = open_lease(annotator, Task.objects.get(name=task))
    return client.post(f"/tasks/{task}/judge/", {"lease": lease.pk, **fields}, headers=HTMX)


# --- what the page shows


@pytest.mark.parametrize("task_type", RECORD_TYPES)
def test_each_field_is_shown_by_its_name_and_each_answer_with_what_it_means(make_records_task, as_ann, ann, task_type):
    task = make_records_task(task_type, 1, languages=("de",))
    page = start(as_ann)
    kind, item = TASK_TYPES[task_type], task.units.get().item
    fields = re.findall(r'<dt>(\w+)</dt><dd lang="(\w+)"><p dir="auto">([^<]*)</p></dd>', page)
    assert fields == [(name.capitalize(), "de", item.fields[name]) for name in kind.fields]
    answers = re.findall(
        r'<button name="answer" value="(\w+)" data-key="Digit(\d)">\s*<kbd>(\d)</kbd>'
        r"<b>([^<]*)</b><small>([^<]*)</small>",
        page,
    )
    assert answers == [(label, f"{n}", f"{n}", *kind.answers[label]) for n, label in enumerate(kind.labels, 1)]
    assert "Undefined" not in page
    assert "post" not in re.sub("<[^>]*>", "", page)


def test_an_answer_is_called_by_its_name_wherever_it_is_shown(make_records_task, as_ann, ann):
    make_records_task("web_ranking", 3)
    start(as_ann)
    assert "Last: Excellent" in send(as_ann, ann, answer="3").text
    assert "Last: Bad" in send(as_ann, ann, answer="0", comment="a comment").text
    assert "Last: Skipped" in send(as_ann, ann, skip="1").text
    rows = re.findall(r"<td>(?:<b>)?(\w+)(?:</b>)?(?:<br>|</td>)", as_ann.get("/tasks/crowd/answers/").text)
    assert rows == ["skipped", "Bad", "Excellent"]
    lease = ann.leases.first()
    refused = as_ann.post("/tasks/crowd/judge/", {"lease": lease.pk, "answer": "4"}, headers=HTMX)
    assert "You have already answered Excellent here" in refused.text


@pytest.mark.parametrize("answer", ["2", "Yes", "und", "de", "und mixed", "1 mixed"])
def test_an_answer_that_the_task_does_not_take_is_refused_and_record_and_comment_stay(
    make_records_task, as_ann, ann, answer
):
    make_records_task("qa_match", 2)
    passage = re.search(r"the passage of [\w-]+", start(as_ann))[0]
    refused = send(as_ann, ann, answer=answer, comment="kept")
    assert refused.status_code == 400
    assert passage in refused.text
    assert "kept</textarea>" in refused.text
    assert said(ann) == []


# --- adjudication


@pytest.fixture
def disagreed(make_records_task, ann, person):
    """A record that three people graded 4, 2 and 0, before an adjudicator."""
    task = make_records_task("web_ranking", 1, on_conflict="ADJUDICATION")
    for annotator, label in ((ann, "0"), (person("bea", "en"), "4"), (person("cem", "en"), "2")):
        judge(annotator, take(annotator, task).pk, Answer(label, comment=f"because of {label}"))
    unit = task.units.get()
    assert unit.stage == stages.ADJUDICATION
    return unit


def test_an_adjudicator_sees_the_fields_and_what_was_answered_and_gives_one_of_the_labels(disagreed, person, client):
    client.force_login(person("ada", adjudicates=True).user)
    listed = client.get("/tasks/crowd/adjudication/").text
    assert re.findall(r"<td>([^<]*)</td>", listed) == ["en", "Perfect, Good, Bad"]
    assert " · the title of en-" in listed
    path = f"/tasks/crowd/adjudication/{disagreed.pk}/"
    page = client.get(path).text
    assert re.findall(r"<dt>(\w+)</dt>", page) == ["Query", "Title", "Snippet"]
    buttons = re.findall(r'<button name="label" value="(\w+)"><span>(\w+)<small>', page)
    assert buttons == [("4", "Perfect"), ("3", "Excellent"), ("2", "Good"), ("1", "Fair"), ("0", "Bad")]
    assert re.findall(r"answer <b>(\w+)</b>", page) == ["Bad", "Perfect", "Good"]
    assert "because of 4" in page
    assert not re.search("Votes|Undefined|<select|Author’s|post(?!=)", re.sub("<[^>]*>", "", page))
    assert client.post(path, {"label": "und", "reason": "I think so"}).status_code == 400
    assert client.post(path, {"label": "3", "reason": ""}).status_code == 400
    after = client.post(path, {"label": "3", "reason": "Web search"}, follow=True).text
    assert "Settled as Excellent." in after
    assert "<b>Excellent</b></td>" in after
    assert "You said: <b>Excellent</b> (Web search)." in client.get(path).text
    disagreed.refresh_from_db()
    assert (disagreed.stage, disagreed.label) == (stages.LABELLED, "3")


def test_who_has_answered_leaves_the_record_to_another_adjudicator(disagreed, ann, as_ann):
    ann.adjudicates = True
    ann.save()
    page = as_ann.get("/tasks/crowd/adjudication/").text
    assert "1 record waits for another adjudicator, since you have judged it." in page
    assert "Another adjudicator must decide this one." in as_ann.get(f"/tasks/crowd/adjudication/{disagreed.pk}/").text


# --- in a browser

in_browser = pytest.mark.django_db(transaction=True, serialized_rollback=True)


@in_browser
@pytest.mark.parametrize("layout", [ARABIC, FRENCH], ids=["arabic", "french"])
def test_a_pair_is_judged_by_keyboard(at_work, make_records_task, ann, layout):
    hands = at_work(make_records_task("qa_match", 4), ann, layout)
    hands.press_and_wait("Digit1")
    hands.press_and_wait("Digit1")
    hands.press_and_wait("KeyZ")
    hands.press_and_wait("Digit2")
    hands.press_and_wait("Space")
    hands.page.wait_for_timeout(GRACE)
    hands.press("KeyC")
    hands.page.keyboard.type("only in part")
    hands.press("Escape")
    hands.press_and_wait("Digit2")
    assert "You have been through all" in hands.page.inner_text("#work")
    assert said(ann) == [("answer", "1", ""), ("answer", "0", ""), ("skip", "", ""), ("answer", "0", "")]
    assert Judgment.objects.last().comment == "only in part"
