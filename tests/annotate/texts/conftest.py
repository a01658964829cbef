"""Fixtures: a task in which people write questions about passages and review each other's."""

import json

import pytest

from annotate.actions.registry import call_command
from annotate.models import Task

PASSAGES = {
    "p1": "The violin has four strings, which are tuned in fifths.",
    "p2": "Botanists call the tomato a fruit, because it holds the seeds.",
    "p3": "The lake froze in January, for the first time since 1963.",
}


@pytest.fixture
def passages(db, tmp_path):
    """Return a function that imports passages: passages("ar", {"p1": "…"})."""

    def make(language="en", texts=PASSAGES, name="passages"):
        file = tmp_path / f"{name}.jsonl"
        rows = [{"id": key, "language": language, "passage": text} for key, text in texts.items()]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        call_command("import_corpus", name, file, fields="passage", licence="CC0-1.0", source="made", verbosity=0)
        return name

    return make


@pytest.fixture
def opened(passages):
    """Return a function that opens a task of the kind question_writing: opened(size="1")."""

    def make(kind="question_writing", language="en", texts=PASSAGES, size="3"):
        how = {"kind": str(kind), "corpus": passages(language, texts), "languages": language, "seed": "1", "size": size}
        call_command("open_task", "questions", **how, verbosity=0)
        return Task.objects.get()

    return make
