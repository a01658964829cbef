"""A kind that asks for the topic of a sentence, the sentences, and people who read them."""

import pytest

from tests.annotate.balancing.acts import LANGUAGES, ROOT, SENTENCES, import_documents


@pytest.fixture
def kind(tmp_path):
    """The path of its file."""
    path = tmp_path / "sentence_topic.toml"
    path.write_text(SENTENCES, encoding="utf-8")
    return str(path)


@pytest.fixture
def sentences(db):
    """The corpus of the fixtures, sib."""
    files = [ROOT / f"fixtures/topics/sib200.{language}.jsonl" for language in LANGUAGES]
    options = {"fields": "body sentence", "column": ["body=text"], "labels": "topic", "licence": "CC-BY-SA-4.0"}
    import_documents("sib", *files, **options)


@pytest.fixture
def readers(person):
    return [person(f"reader{number}", "de en fr ja") for number in range(3)]
