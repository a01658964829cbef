"""Functions that draw balanced sets from the sentences in fixtures/topics, each of which has one of seven topics."""

import io
import json
from pathlib import Path

from annotate.actions.registry import call_command
from tests.annotate.acts import work_through

ROOT = Path(__file__).resolve().parents[3]
TOPICS = "science/technology travel politics sports health entertainment geography"
SPELLED = {"de": "german", "en": "english", "fr": "french", "ja": "japanese"}
LANGUAGES = tuple(SPELLED)
# A kind that shows only a text.
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
SIZES = {"test": 35, "dev": 14, "train": "28 49 70"}


def import_documents(name, *files, **options):
    """Return the output of the command."""
    out = io.StringIO()
    call_command("import_corpus", name, *map(str, files), stdout=out, stderr=out, **options)
    return out.getvalue()


def import_sentences():
    """Import the corpus `sib` from the fixtures."""
    files = [ROOT / f"fixtures/topics/sib200.{language}.jsonl" for language in LANGUAGES]
    options = {"fields": "body sentence", "column": ["body=text"], "labels": "topic", "licence": "CC-BY-SA-4.0"}
    import_documents("sib", *files, **options)


def as_sets(options):
    """Return the options with test, dev, train, joint, short="fill" and apart combined into --sets."""
    names = ("test", "dev", "train", "joint", "apart")
    words = ["fill"] if "short" in options else []
    words += [f"{name} {options[name]}" for name in names if name in options]
    rest = {name: value for name, value in options.items() if name not in (*names, "short")}
    return rest | ({"sets": " ".join(words)} if words else {})


def opened(name, kind, corpus="sib", labels=TOPICS, **options):
    """Return the output of the command."""
    out, err = io.StringIO(), io.StringIO()
    fixed = {"kind": kind, "corpus": corpus, "labels": labels, "design": "balanced"}
    call_command("open_task", name, stdout=out, stderr=err, **fixed, **{"seed": "1"} | as_sets(options))
    return out.getvalue() + err.getvalue()


def read_all(task, readers, say):
    """Have each reader answer all their units, and return their number. say: function of (reader number, unit)."""
    return sum(
        len(work_through(reader, task, lambda lease, number=number: say(number, lease.unit)))
        for number, reader in enumerate(readers)
    )


def exported(name, out):
    """Export a task and return the rows of gold.jsonl."""
    call_command("export_gold", name, out=str(out), stdout=io.StringIO(), stderr=io.StringIO())
    return [json.loads(line) for line in (out / "gold.jsonl").read_text(encoding="utf-8").splitlines()]


def manifest_of(out):
    return json.loads((out / "manifest.json").read_text(encoding="utf-8"))


def card_of(out):
    return (out / "README.md").read_text(encoding="utf-8")


def lists(folder, spelled):
    """Return the ids in each set, in the order of the list."""
    return {path.name.partition(".")[2]: path.read_text().split() for path in folder.glob(f"mldoc-indices/{spelled}.*")}
