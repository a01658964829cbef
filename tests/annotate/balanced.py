"""Balanced sets as tests make them: the documents of the fixtures, a kind that asks of them, tasks, and their lists."""

import io
import json
from pathlib import Path

from django.core.management import call_command

ROOT = Path(__file__).resolve().parents[2]
TOPICS = "science/technology travel politics sports health entertainment geography"
SPELLED = {"de": "german", "en": "english", "fr": "french", "ja": "japanese"}
LANGUAGES = tuple(SPELLED)
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


def kind_file(folder: Path) -> str:
    """The path of a kind that shows a body alone."""
    path = folder / "sentence_topic.toml"
    path.write_text(SENTENCES, encoding="utf-8")
    return str(path)


def import_documents(name, *files, **options):
    out = io.StringIO()
    call_command("import_corpus", name, *map(str, files), stdout=out, stderr=out, **options)
    return out.getvalue()


def import_sentences():
    """The corpus sib of the fixtures."""
    files = [ROOT / f"fixtures/topics/sib200.{language}.jsonl" for language in LANGUAGES]
    options = {"fields": "body sentence", "column": ["body=text"], "labels": "topic", "licence": "CC-BY-SA-4.0"}
    import_documents("sib", *files, **options)


def opened(name, kind, corpus="sib", classes=TOPICS, **options):
    """What open_task says."""
    out, err = io.StringIO(), io.StringIO()
    fixed = {"kind": kind, "corpus": corpus, "classes": classes, "design": "balanced"}
    call_command("open_task", name, stdout=out, stderr=err, **fixed, **{"seed": "1"} | options)
    return out.getvalue() + err.getvalue()


def exported(name, out):
    """The rows of gold.jsonl."""
    call_command("export_gold", name, out=str(out), stdout=io.StringIO(), stderr=io.StringIO())
    return [json.loads(line) for line in (out / "gold.jsonl").read_text(encoding="utf-8").splitlines()]


def lists(folder, spelled):
    """Set -> ids, in the order of the list."""
    return {path.name.partition(".")[2]: path.read_text().split() for path in folder.glob(f"mldoc-indices/{spelled}.*")}
