"""A kind that asks for the topic of a sentence, and the sentences."""

import io

import pytest
from django.core.management import call_command

from tests.annotate.balancing.acts import LANGUAGES, ROOT

SENTENCES = """\
title = "What is the sentence about?"
form = "choice"
answers_from = "draw"

[[layout]]
style = "document"
fields = ["body"]

[publishes]
mldoc = "documents"
"""


@pytest.fixture
def kind(tmp_path):
    path = tmp_path / "sentence_topic.toml"
    path.write_text(SENTENCES, encoding="utf-8")
    return str(path)


@pytest.fixture
def sentences(db):
    """The corpus of the fixtures, sib."""
    files = [str(ROOT / f"fixtures/topics/sib200.{language}.jsonl") for language in LANGUAGES]
    options = {"fields": "body sentence", "column": ["body=text"], "labels": "topic", "licence": "CC-BY-SA-4.0"}
    call_command("import_corpus", "sib", *files, stdout=io.StringIO(), **options)


@pytest.fixture
def readers(person):
    return [person(f"reader{number}", "de en fr ja") for number in range(3)]
