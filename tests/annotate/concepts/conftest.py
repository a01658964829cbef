"""The acts, the vocabulary of their concepts, and people who read them."""

import pytest
from django.apps import apps
from django.db import connection

from annotate.controls import concept_suggestions
from corpora import models
from tests.annotate.concepts import acts

# What a vocabulary is stored in.
PARTS = ("Vocabulary", "Scheme", "Concept", "Concept_schemes", "Broader", "Related", "Label", "LabelWord")
TABLES = [apps.get_model("corpora", part)._meta.db_table for part in PARTS]
_rows: dict[str, list[tuple]] = {}


@pytest.fixture
def eurovoc(db):
    """For tests that commit. Imported once in a process; then its rows, which never change, are put back."""
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
    """What the tests of a module begin with: what its BEGUN makes and returns, else the corpus alone."""
    return make_world(getattr(request.module, "BEGUN", acts.import_both))


@pytest.fixture
def corpus(begin, data_dir, db):
    return begin(data_dir)


@pytest.fixture
def task(corpus):
    """That which the module begins with."""
    return corpus


@pytest.fixture
def suggestions_for_all(monkeypatch):
    """Nobody is blind: suggestions are shown to everybody."""
    monkeypatch.setattr(concept_suggestions, "BLIND_SHARE", 0.0)


@pytest.fixture
def plain(corpus):
    """Ids of concepts of which none is broader than another."""
    return [each.key for each in models.Concept.objects.filter(broader=None, narrower=None).order_by("key")[:25]]


@pytest.fixture
def readers(person):
    return [person(f"reader{number}", "en") for number in range(3)]
