"""Fixtures: completed tasks about records, and the export of one of them."""

import json

import pytest

from annotate.actions.registry import call_command
from annotate.goldsets.exporter import export
from annotate.kinds import KINDS
from annotate.work.moves import decide
from annotate.work.task_creation import GoldRow
from corpora.models import Corpus
from tests.annotate.acts import open_records
from tests.annotate.record_export.records import FIELDS, HIDDEN, LANGUAGES, ROWS, most_agree, number_of, record


@pytest.fixture
def corpus_of(tmp_path, db):
    """Return a function: corpus_of("qa_match") imports 20 records in each of three languages, and gold records."""

    def make(task_type, *more, **options):
        rows = [record(task_type, language, number) for language in LANGUAGES for number in range(ROWS + 1 + HIDDEN)]
        path = tmp_path / f"{task_type}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *more]), encoding="utf-8")
        options = {"licence": "CC BY 4.0", "source": "made for a test", "verbosity": 0} | options
        call_command("import_corpus", task_type, str(path), fields=" ".join(FIELDS[task_type]), **options)
        return Corpus.objects.get(name=task_type)

    return make


@pytest.fixture
def crowd(person):
    """Four people with unique names."""
    return [person(f"labeler_qzx{number}", "en de fr") for number in range(4)]


@pytest.fixture
def opened(corpus_of):
    """Return a function: opened("qa_match") opens a task that has no answers yet."""

    def make(task_type, *more, languages=LANGUAGES, **knobs):
        corpus = corpus_of(task_type, *more)
        labels = KINDS[task_type].labels
        gold = [
            GoldRow(f"{language}{ROWS + place}", labels[place % 2], purpose, "A secret explanation.")
            for language in languages
            for place, purpose in enumerate(["practice"] + ["queue"] * HIDDEN)
        ]
        knobs = {"test_items": 0, "gold_share": 0} | knobs
        return open_records(task_type, corpus, task_type, languages, size=None, seed="7", gold=gold, **knobs).task

    return make


@pytest.fixture
def answered(judged, crowd):
    """Return a function: answered(task, says) stores answers by three people without the queue, which would be slow."""

    def make(task, says=most_agree):
        for unit in task.units.filter(honeypot=False, copy_of=None).select_related("item", "task"):
            places = [(number_of(unit) + turn) % 4 for turn in range(3)]
            for place in places:
                judged(crowd[place], unit, says(place, unit), comment="a comment\twith a tab")
            decide(unit, unit.judgments.live().answers().order_by("pk"))
        return task

    return make


@pytest.fixture
def ads(opened, answered):
    return answered(opened("ad_relevance"))


@pytest.fixture(scope="package")
def once():
    return {}


@pytest.fixture
def exported(once, request, tmp_path_factory):
    """The folder and the manifest of `ads`, exported once for all tests that only read them."""
    if not once:
        out = tmp_path_factory.mktemp("exports") / "gold"
        once["ads"] = out, export(request.getfixturevalue("ads"), out)
    return once["ads"]


@pytest.fixture
def out(tmp_path):
    return tmp_path / "exports" / "gold"
