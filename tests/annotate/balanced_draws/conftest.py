"""Fixtures: a kind that asks for the topic of a sentence, the sentences, and their readers."""

import pytest

from tests.annotate.balanced_draws.acts import SENTENCES, import_sentences


@pytest.fixture
def kind(tmp_path):
    """Return the path of the kind's file."""
    path = tmp_path / "sentence_topic.toml"
    path.write_text(SENTENCES, encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def begin(make_world):
    return make_world(import_sentences)


@pytest.fixture
def sentences(begin, data_dir, db):
    """The corpus `sib` from the fixtures, for tests that do not commit."""
    begin(data_dir)


@pytest.fixture
def readers(person):
    return [person(f"reader{number}", "de en fr ja") for number in range(3)]
