"""Fixtures: a task in which people compare two systems, and the people."""

import pytest

from tests.annotate.conftest import make_person
from tests.annotate.preferences.comparing import open_comparison


@pytest.fixture
def compare(tmp_path, db):
    """Return a function: compare("mt5", "bert", number=4) opens a task with 4 messages and replies by both systems."""

    def make(*systems, **options):
        return open_comparison(tmp_path, *systems, **options)

    return make


@pytest.fixture
def person(db):
    """The usual fixture, but with fixed pseudonyms, because random draws depend on them."""

    def make(username, languages="", **fields):
        return make_person(username, languages, pseudonym=f"annotator-{username}", **fields)

    return make


@pytest.fixture
def ann(person):
    return person("ann", "en")
