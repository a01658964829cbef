"""A program that chooses concepts: what it is told may be chosen, how it finds them, and what is refused."""

import pytest

from annotate.models import ChosenConcept, Judgment
from annotate.work.judgments import LONGEST
from corpora.models import Concept
from tests.annotate.concepts.acts import begun
from tests.annotate.programs import Program

pytestmark = pytest.mark.usefixtures("corpus")


BEGUN = begun


@pytest.fixture
def program(client, readers):
    return Program(client, readers[0])


def taken(program, task="acts"):
    return program.post(f"tasks/{task}/next/").json()["lease"]["id"]


def nested():
    """A concept and one that is broader."""
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
    """The sentences of the form itself are in test_labels_form.py."""
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
