"""The acts, the vocabulary of their concepts, and people who read them."""

import pytest

from tests.annotate.labelling import acts


@pytest.fixture
def eurovoc(db):
    acts.import_eurovoc()


@pytest.fixture
def corpus(eurovoc):
    acts.import_acts()


@pytest.fixture
def readers(person):
    return [person(f"reader{number}", "en") for number in range(3)]
