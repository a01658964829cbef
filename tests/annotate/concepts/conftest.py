"""Fixtures: the acts, the vocabulary of their concepts, and their readers."""

import pytest
from django.apps import apps
from django.db import connection

from corpora import models
from tests.annotate.concepts import acts

# The tables of a vocabulary.
PARTS = ("Vocabulary", "Scheme", "Concept", "Concept_schemes", "Broader", "Related", "Label", "LabelWord")
TABLES = [apps.get_model("corpora", part)._meta.db_table for part in PARTS]
_rows: dict[str, list[tuple]] = {}


@pytest.fixture
def eurovoc(db):
    """The vocabulary, for tests that commit. It is imported once per process, and its rows are then restored."""
    if not _rows:
        acts.import_eurovoc()
    with connection.cursor() as cursor:
        if not _rows:
            _rows.update({table: cursor.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES})
            assert len(_rows[models.Vocabulary._meta.db_table]) == 1, "another vocabulary is there"
            return
        for table, rows in _rows.items():
            cursor.executemany(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(rows[0]))})", rows)


@pytest.fixture(scope="module")
def begin(make_world, request):
    """The state that the tests of a module start with: the result of its BEGUN, or only the corpus."""
    return make_world(getattr(request.module, "BEGUN", acts.import_both))


@pytest.fixture
def corpus(begin, data_dir, db):
    return begin(data_dir)


@pytest.fixture
def task(corpus):
    """The task that the tests of the module start with."""
    return corpus


@pytest.fixture
def suggestions_for_all(corpus):
    """Show suggestions to everybody in the task that the tests of the module start with."""
    acts.suggesting(corpus, 0.0)


@pytest.fixture
def plain(corpus):
    """Ids of concepts, none of which is broader than another."""
    return [concept.key for concept in models.Concept.objects.filter(broader=None, narrower=None).order_by("key")[:25]]


@pytest.fixture
def readers(person):
    return [person(f"reader{number}", "en") for number in range(3)]
