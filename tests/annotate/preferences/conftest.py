"""A task in which people compare two systems, and people who do."""

import pytest

from tests.annotate.conftest import make_person
from tests.annotate.preferences.comparing import open_comparison


@pytest.fixture
def compare(tmp_path, db):
    """compare("mt5", "bert", number=4) opens a task in which each message has replies of these systems."""

    def make(*systems, **options):
        return open_comparison(tmp_path, *systems, **options)

    return make


@pytest.fixture
def person(db):
    """As everywhere, but that nobody's pseudonym is left to chance: lots fall by it."""

    def make(username, languages="", **fields):
        return make_person(username, languages, pseudonym=f"annotator-{username}", **fields)

    return make


@pytest.fixture
def ann(person):
    return person("ann", "en")
