"""The pages for records with several fields: by keyboard, on a phone, in dark colours, and right to left."""

import re

import pytest

from annotate.core import stages
from annotate.kinds import KINDS as KINDS
from annotate.kinds import Answer
from annotate.models import Guidelines, Task
from annotate.work.judgments import judge
from annotate.work.queue import open_lease, take
from tests.annotate.hands import FRENCH, answers_of, let_guard_pass, sent, worst_contrast

pytestmark = pytest.mark.slow
HTMX = {"HX-Request": "true"}
ANN_READS = "en de"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
RECORD_TYPES = ["ad_relevance", "qa_match", "web_ranking"]


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
    kind, item = KINDS[task_type], task.units.get().item
    fields = re.findall(r'<dt>(\w+)</dt><dd lang="(\w+)"><p dir="auto">([^<]*)</p></dd>', page)
    assert fields == [(name.capitalize(), "de", item.fields[name]) for name in kind.fields]
    answers = re.findall(
        r'<button name="answer" value="(\w+)" lang="de" data-key="Digit(\d)">\s*<kbd>(\d)</kbd>'
        r"<b>([^<]*)</b><small>([^<]*)</small>",
        page,
    )
    named = kind.answers
    assert answers == [
        (label, f"{n}", f"{n}", named[label].name("de"), named[label].means("de"))
        for n, label in enumerate(kind.labels, 1)
    ]
    assert "Undefined" not in page
    assert "post" not in re.sub("<[^>]*>", "", page)


def test_an_answer_is_called_by_its_name_wherever_it_is_shown(make_records_task, as_ann, ann):
    make_records_task("web_ranking", 3)
    start(as_ann)
    assert "Last: Excellent" in send(as_ann, ann, answer="3").text
    assert "Last: Bad" in send(as_ann, ann, answer="0", comment="a comment").text
    assert "Last: Skipped" in send(as_ann, ann, skip="1").text
    rows = re.findall(
        r'<td class="written">(?:<b>)?(\w+)(?:</b>)?<(?:span|/td)', as_ann.get("/tasks/crowd/answers/").text
    )
    assert rows == ["skipped", "Bad", "Excellent"]
    lease = ann.leases.first()
    refused = as_ann.post("/tasks/crowd/judge/", {"lease": lease.pk, "answer": "4"}, headers=HTMX)
    assert "You have already answered Excellent." in refused.text


@pytest.mark.parametrize("answer", ["2", "Yes", "und", "de", "und mixed", "1 mixed"])
def test_an_answer_that_the_task_does_not_take_is_refused_and_record_and_comment_stay(
    make_records_task, as_ann, ann, answer
):
    make_records_task("qa_match", 2)
    passage = re.search(r"the passage of [\w-]+", start(as_ann))[0]
    refused = send(as_ann, ann, **sent(answer), comment="kept")
    assert refused.status_code == 400
    assert passage in refused.text
    assert "kept</textarea>" in refused.text
    assert answers_of(ann) == []


# --- adjudication


@pytest.fixture
def disagreed(make_records_task, ann, person):
    """A record that three people graded 4, 2 and 0, as a case for an adjudicator."""
    task = make_records_task("web_ranking", 1, on_conflict="ADJUDICATION")
    for annotator, label in ((ann, "0"), (person("bea", "en"), "4"), (person("cem", "en"), "2")):
        judge(annotator, take(annotator, task).pk, Answer(label, comment=f"because of {label}"))
    unit = task.units.get()
    assert unit.stage == stages.ADJUDICATION
    return unit


def test_an_adjudicator_sees_the_fields_and_what_was_answered_and_gives_one_of_the_labels(disagreed, person, client):
    client.force_login(person("ada", adjudicates=True).user)
    listed = client.get("/tasks/crowd/adjudication/").text
    assert re.findall(r"<td>([^<]*)</td>", listed) == ["English", "Perfect, Good, Bad"]
    assert " · the title of en-" in listed
    path = f"/tasks/crowd/adjudication/{disagreed.pk}/"
    page = client.get(path).text
    assert re.findall(r"<dt>(\w+)</dt>", page) == ["Query", "Title", "Snippet"]
    buttons = re.findall(r'<button name="label" value="(\w+)" data-key="Digit\d"><kbd>\d</kbd><span>(\w+)<small>', page)
    assert buttons == [("4", "Perfect"), ("3", "Excellent"), ("2", "Good"), ("1", "Fair"), ("0", "Bad")]
    assert re.findall(r"answered <b>(\w+)</b>", page) == ["Bad", "Perfect", "Good"]
    assert "because of 4" in page
    assert not re.search("Votes|Undefined|<select|Author’s|post(?!=)", re.sub("<[^>]*>", "", page))
    assert client.post(path, {"label": "und", "reason": "I think so"}).status_code == 400
    assert client.post(path, {"label": "3", "reason": ""}).status_code == 400
    after = client.post(path, {"label": "3", "reason": "Web search"}, follow=True).text
    assert "Decided: Excellent." in after
    assert "<b>Excellent</b></td>" in after
    assert "You said: <b>Excellent</b> (Web search)." in client.get(path).text
    disagreed.refresh_from_db()
    assert (disagreed.stage, disagreed.label) == (stages.LABELLED, "3")


# --- in a browser


def with_fields(task, **fields):
    """Give the first record of a task these fields."""
    item = task.units.first().item
    item.fields |= fields
    item.text = "\n".join(item.fields.values())
    item.save()


def test_a_page_is_graded_by_keys_that_lie_as_their_buttons_do_the_best_grade_first(at_work, make_records_task, ann):
    hands = at_work(make_records_task("web_ranking", 5), ann, FRENCH)
    places = hands.page.locator(".options button").evaluate_all(
        "nodes => nodes.map(node => [node.dataset.key, node.getBoundingClientRect().x])"
    )
    assert [key for key, _ in sorted(places, key=lambda place: place[1])] == [f"Digit{n}" for n in range(1, 6)]
    for code in ("Digit6", "KeyQ", "KeyW"):  # no such answer, no Undefined, no other language
        hands.press(code)
    for number in range(1, 6):
        hands.press_and_wait(f"Digit{number}")
    assert [label for _, label, _ in answers_of(ann)] == ["4", "3", "2", "1", "0"]


@pytest.mark.parametrize("task_type", RECORD_TYPES)
def test_record_and_answers_fit_a_phone_and_a_thumb_and_have_contrast_by_day_and_by_night(
    at_work, make_records_task, ann, task_type
):
    task = make_records_task(task_type, 2)
    *_, last = KINDS[task_type].fields
    with_fields(task, **{last: "Donaudampfschifffahrtsgesellschaft" * 9 + " and much more" * 30})
    page = at_work(task, ann, **PHONE).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for button in page.locator(".answers button:visible").all():
        box = button.bounding_box()
        assert box["height"] >= 44
        assert 0 <= box["y"] <= 844 - box["height"]
    sizes = page.locator("#post p").evaluate_all("nodes => nodes.map(n => parseFloat(getComputedStyle(n).fontSize))")
    assert min(sizes) >= 20
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert worst_contrast(page) >= 4.5, scheme
    let_guard_pass(page)
    page.tap(".options button >> nth=1")
    page.wait_for_selector("#work:has-text('1 answered')")
    assert answers_of(ann) == [("answer", KINDS[task_type].labels[1], "")]


def test_the_answers_stay_in_their_place_from_record_to_record(at_work, make_records_task, ann):
    task = make_records_task("qa_match", 2)
    with_fields(task, passage="A passage that goes on and on. " * 12)
    hands = at_work(task, ann)
    before = hands.page.locator(".options").bounding_box()
    hands.press_and_wait("Digit1")
    assert hands.page.locator(".options").bounding_box() == before


@pytest.mark.parametrize("task_type", ["ad_relevance", "qa_match"])
def test_a_record_is_read_from_right_to_left_with_its_names_and_frames(at_work, make_records_task, ann, task_type):
    task = make_records_task(task_type, 1)
    first, *_, last = KINDS[task_type].fields
    with_fields(task, **{first: "מתכון לחלה רכה", last: "קמח, שמרים וביצים\nAnd a line in English"})
    page = at_work(task, ann).page
    directions = "nodes => nodes.map(node => getComputedStyle(node).direction)"
    texts = page.locator("#post p").evaluate_all(directions)
    assert texts == ["rtl", *["ltr"] * (len(texts) - 3), "rtl", "ltr"]
    fields = page.locator("#post .zone").evaluate_all(directions)
    assert (fields[0], fields[-1]) == ("rtl", "rtl")


def test_the_guidelines_beside_the_record_are_in_its_language(at_work, make_records_task, ann):
    task = make_records_task("qa_match", 1, languages=("en", "de"))
    Guidelines.objects.create(task=task, language="de", text="Lies.")
    hands = at_work(task, ann)
    hands.page.click("#guidelines summary")
    languages, shown = [], []
    for _ in range(2):
        languages.append(hands.page.get_attribute("#post dd", "lang"))
        shown.append(hands.page.inner_text("#guidelines .prose"))
        hands.press_and_wait("Digit1")
    assert sorted(languages) == ["de", "en"]
    assert shown == [{"de": "Lies.", "en": "Read."}[language] for language in languages]
