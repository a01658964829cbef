"""A fixture that opens tasks about spans."""

import json

import pytest

from annotate.actions.registry import call_command
from annotate.kinds import KINDS
from corpora.models import Corpus
from tests.annotate.acts import open_records


@pytest.fixture
def spans_task(tmp_path, db):
    """Return a function that imports texts and opens a task about them.

    texts: mappings from field to value, or the values of the only field
    """

    def make(texts, kind="ner", *, language="en", name="names", **options):
        fields = KINDS[kind].fields
        rows = [text if isinstance(text, dict) else {fields[0]: text} for text in texts]
        path = tmp_path / f"{name}.jsonl"
        lines = [
            json.dumps({"id": f"{language}-{number}", "language": language} | row) for number, row in enumerate(rows)
        ]
        path.write_text("\n".join(lines), encoding="utf-8")
        shown = {"fields": " ".join(fields), "licence": "CC0-1.0", "source": "made for a test", "verbosity": 0}
        call_command("import_corpus", name, str(path), **shown)
        corpus = Corpus.objects.get(name=name)
        options = {"test_items": 0, "gold_share": 0.0} | options
        return open_records(name, corpus, kind, [language], size=None, seed="7", gold=[], **options).task

    return make
