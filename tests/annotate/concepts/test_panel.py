"""Choosing concepts in a program, and in the panel as a browser without JavaScript sends and shows it."""

import re
from html import unescape

import pytest

from annotate.models import ChosenConcept, Judgment, Suggestion, Unit
from annotate.work.answer_changes import undo
from annotate.work.judgments import LONGEST
from annotate.work.queue import take
from corpora.models import Concept, Label
from tests.annotate.acts import words
from tests.annotate.concepts.acts import begun, choose, suggesting, values_of
from tests.annotate.programs import Program

pytestmark = pytest.mark.usefixtures("corpus", "suggestions_for_all")
BEGUN = begun


@pytest.fixture
def program(client, readers):
    return Program(client, readers[0])


def taken(program, task="acts"):
    return program.post(f"tasks/{task}/next/").json()["lease"]["id"]


def nested():
    """A concept and a broader one."""
    narrower = Concept.objects.exclude(broader=None).order_by("key").first()
    return narrower.key, narrower.broader.order_by("key").first().key


def test_a_program_reads_the_vocabulary_of_a_task_and_finds_concepts_in_the_languages_of_its_person(
    task, program, readers
):
    data = program.get("tasks/acts/").json()
    assert (data["answers"], data["labels"]) == ([], [])
    vocabulary = {"name": "eurovoc", "version": 1, "least": 1, "most": 20, "beside_broader": "ask"}
    assert data["vocabulary"] == vocabulary
    narrower, _ = nested()
    name = task.kind.name(narrower)
    rows = program.get(f"tasks/acts/concepts/?typed={name}").json()
    assert 0 < len(rows) <= 10
    assert (rows[0]["id"], rows[0]["label"]) == (narrower, name)
    assert rows[0]["path"]
    assert program.get("tasks/acts/concepts/").json() == []

    def in_french():
        return [row["id"] for row in program.get("tasks/acts/concepts/?typed=viande%20fra").json()]

    assert "4689" not in in_french()
    readers[0].languages.create(language="fr")
    assert "4689" in in_french()
    for query, sentence in (
        ("typed=%25", "The search text contains no letters or digits. Type the beginning of a word."),
        ("typed=env%00", "typed: Null characters are not allowed."),
        ("typed=env&language=%00", "language: Null characters are not allowed."),
    ):
        refused = program.get(f"tasks/acts/concepts/?{query}")
        assert (refused.status_code, refused.json()) == (400, {"code": "invalid_answer", "detail": sentence})


def test_a_program_sends_ids_in_any_order_and_is_asked_whether_it_means_a_broader_one_too(task, program, plain):
    sent = program.post(f"leases/{taken(program)}/judge/", label=f"{plain[3]}  {plain[1]} {plain[2]}")
    assert sent.json()["label"] == " ".join(plain[1:4])
    assert {chosen.concept.key for chosen in Judgment.objects.get().chosen.all()} == set(plain[1:4])
    lease, both = taken(program), " ".join(sorted(nested()))
    refused = program.post(f"leases/{lease}/judge/", label=both)
    assert refused.status_code == 400
    assert "or confirm that you mean both" in refused.json()["detail"]
    assert program.post(f"leases/{lease}/judge/", label=both, sure=True).json()["label"] == both


def test_an_answer_that_is_none_is_refused_in_a_sentence_and_nothing_is_written(task, program, readers, plain):
    """The messages of the form itself are tested in kinds/test_forms.py."""
    lease = taken(program)
    for label, sentence in (
        ("a;b", "'a;b' is not a concept of eurovoc, version 1. Look it up or remove it."),
        ("", "label: This field may not be blank."),
        (f"{plain[0]}\x00", "label: Null characters are not allowed."),
        ("1 " * LONGEST, f"The answer is longer than {LONGEST:,} characters. Choose fewer labels."),
    ):
        refused = program.post(f"leases/{lease}/judge/", label=label)
        assert (refused.status_code, refused.json()) == (400, {"code": "invalid_answer", "detail": sentence})
    assert not Judgment.objects.exists()
    assert not ChosenConcept.objects.exists()
    # The document is still theirs.
    assert program.post(f"leases/{lease}/judge/", label=plain[0]).status_code == 200


@pytest.fixture
def reader(readers):
    return readers[0]


@pytest.fixture
def page(client, task, reader):
    """page("add 1309 searched", view="browse") presses a button of the panel with the form's current content."""
    client.force_login(reader.user)
    lease = take(reader, task)
    state = {}

    def press(do="", **fields):
        sent = {"lease": lease.pk, "do": do} | state | fields
        html = client.post(f"/tasks/{task.name}/judge/", sent).content.decode()
        state.update({name: values_of(html, name) for name in ("answer", "way")})
        state.update({name: values_of(html, name)[0] for name in ("view", "at")})
        return html

    press.lease, press.state = lease, state
    return press


def buttons(html, verb):
    """Return the actions of the lists' buttons."""
    return [unescape(value) for value in re.findall(rf'data-row name="do" value="({verb}[^"]*)"', html)]


def label(key, language="en"):
    return Label.objects.get(concept__key=key, language=language, is_preferred=True).text


# --- finding


def test_a_concept_is_found_in_a_language_that_the_reader_reads_and_shown_with_its_label_and_what_is_broader(
    page, client, task, reader, django_assert_max_num_queries
):
    assert "add 4689 searched" in buttons(page("find", typed="MEA   fre"), "add")
    assert "add 4689 searched" not in buttons(page("find", typed="fraiche via"), "add")
    reader.languages.create(language="fr")
    html = page("find", typed="fraiche via")
    assert "add 4689 searched" in buttons(html, "add")
    assert "viande fraîche" in words(html).split("fresh meat")[1]
    concept = Concept.objects.filter(broader__broader__isnull=False, labels__language="en").first()
    narrow, middle = label(concept.key), label(concept.broader.first().key)
    assert f"› {middle}" in words(page("find", typed=narrow)).split(narrow, 1)[1]
    for typed, sentence in (("%", "contains no letters or digits"), ("qqqq", "No concept has this name.")):
        assert sentence in words(page("find", typed=typed))
    sent = {"lease": page.lease.pk, "do": "find"}
    for typed in ("fre mea", "p"):
        with django_assert_max_num_queries(8):
            client.post(f"/tasks/{task.name}/judge/", sent | {"typed": typed}, headers={"HX-Request": "true"})
    text = sum(len(value.encode()) for value in page.lease.unit.item.fields.values())
    for do in ("show browse", "find"):
        assert len(page(do, typed="a").encode()) - text < 200_000


def test_browsing_leads_from_the_domains_to_a_concept_and_back(page):
    concept = Concept.objects.exclude(broader=None).exclude(schemes=None).order_by("key").first()
    broader = concept.broader.order_by("key").first()
    scheme = concept.schemes.exclude(domain=None).order_by("key").first()
    assert f"open scheme:{scheme.domain.key}" in buttons(page("show browse"), "open")
    assert f"open scheme:{scheme.key}" in buttons(page(f"open scheme:{scheme.domain.key}"), "open")
    page(f"open scheme:{scheme.key}")
    shown = page(f"open concept:{broader.key}")
    assert f"add {concept.key} browsed" in buttons(shown, "add")
    assert f'value="open scheme:{scheme.domain.key}"' in page(f"open concept:{concept.key}")
    for place in ("concept:none", "scheme:none", "elsewhere", "concept:" + "x" * 10_000):
        assert buttons(page(f"open {place}"), "open"), "a place that does not exist is the beginning"


def test_suggestions_come_first_where_there_are_any_and_are_not_shown_to_a_blind_reader(page, task):
    Suggestion.objects.create(unit=page.lease.unit, system="a@1", ranked=["4689", "1309"])
    assert buttons(page(), "add") == ["add 4689 suggested", "add 1309 suggested"]
    suggesting(task, 1.0)
    shown = page("show suggestions")
    assert 'value="show suggestions"' not in shown
    assert not buttons(shown, "add")


# --- choosing


def test_what_is_chosen_stays_chosen_with_what_led_to_it_until_it_is_taken_away(page, task, reader, client):
    page("add 4689 searched")
    page("add 1309 browsed")
    assert page.state["way"] == ["4689 searched", "1309 browsed"]
    page("find", typed="fruit")
    page("add 4689 browsed")  # it is chosen already
    assert page.state["way"] == ["4689 searched", "1309 browsed"]
    page("drop 4689")
    assert page.state["answer"] == ["1309"]
    shown = page("add unheard-of searched")
    assert "unheard-of is not a concept of the vocabulary and was left out." in words(shown)
    page("add 4689 searched")
    assert page.state["answer"] == ["1309", "4689"]
    assert not Judgment.objects.exists()
    client.post(f"/tasks/{task.name}/judge/", {"lease": page.lease.pk, **page.state})
    assert Judgment.objects.get().label == "1309 4689"
    ways = ChosenConcept.objects.values_list("concept__key", "way")
    assert set(ways) == {("4689", "searched"), ("1309", "browsed")}
    # An answer that is taken back is chosen again.
    undo(reader, task)
    html = client.get(f"/tasks/{task.name}/").content.decode()
    assert values_of(html, "way") == ["1309 browsed", "4689 searched"]


def test_a_refused_answer_leaves_everything_as_it_was(page, task, client):
    narrower = Concept.objects.exclude(broader=None).order_by("key").first()
    broader = narrower.broader.first()
    page(f"add {narrower.key} searched")
    shown = words(page(f"add {broader.key} browsed"))
    assert f"{label(broader.key)} is broader than {label(narrower.key)}" in shown
    sent = {"lease": page.lease.pk, "comment": "both", **page.state}
    refused = client.post(f"/tasks/{task.name}/judge/", sent)
    assert refused.status_code == 400
    html = refused.content.decode()
    assert "and both are chosen. Remove" in words(html)
    assert values_of(html, "answer") == page.state["answer"]
    assert ">both</textarea>" in html
    client.post(f"/tasks/{task.name}/judge/", sent | {"is_sure": "1"})
    assert Judgment.objects.get().label == " ".join(sorted(page.state["answer"]))


def test_the_panel_shows_nothing_of_what_others_chose(page, task, readers):
    chosen = Concept.objects.filter(broader=None).order_by("-pk").first()
    before = page()

    def without_token(html):
        return re.sub(r'(csrfmiddlewaretoken" value=|X-CSRFToken": )"[^"]*"', "", html)

    lease = take(readers[1], task)
    assert lease.unit_id == page.lease.unit_id
    choose(readers[1], task, chosen.key)
    assert without_token(page()) == without_token(before)
    assert "vote" not in page("show votes").lower()


def test_a_form_of_thousands_of_fields_is_refused_in_a_sentence(page, task, client):
    sent = {"lease": page.lease.pk, "answer": [str(number) for number in range(10_000)]}
    refused = client.post(f"/tasks/{task.name}/judge/", sent)
    assert refused.status_code == 400
    assert "The form is too large, so nothing was saved." in words(refused.content.decode())


# --- adjudicators


def test_an_adjudicator_sees_who_chose_what_and_settles_the_set(client, task, readers, person):
    keys = ["4689", "1309", "1605"]
    for reader, key in zip(readers, keys, strict=True):
        unit = choose(reader, task, key).unit
    client.force_login(person("ada", "en", adjudicates=True).user)
    address = f"/tasks/{task.name}/adjudication/{unit.pk}/"
    html = client.get(address).content.decode()
    assert f"fresh meat 1 vote: {readers[0].pseudonym}" in words(html)
    assert sorted(button.split()[1] for button in buttons(html, "add")) == sorted(keys)
    html = client.post(address, {"do": "add 4689 "}).content.decode()
    sent = {"answer": values_of(html, "answer"), "way": values_of(html, "way"), "reason": "as titled"}
    client.post(address, sent)
    assert Unit.objects.get(pk=unit.pk).label == "4689"
