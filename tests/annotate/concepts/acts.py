"""Functions for EU acts and the concepts that people choose for them, from fixtures/eurlex and eurovoc."""

import io
import json
import re
import tempfile
from html import unescape
from pathlib import Path

from annotate.actions.registry import call_command
from annotate.kinds import Answer
from annotate.models import Task
from annotate.work.judgments import judge
from annotate.work.queue import take

ROOT = Path(__file__).resolve().parents[3]
SPLITS = ("train", "dev", "test")
EUROVOC = ROOT / "fixtures/eurovoc"


def command(name, *arguments, **options):
    """Return the output of the command."""
    out = io.StringIO()
    call_command(name, *map(str, arguments), stdout=out, stderr=out, **options)
    return out.getvalue()


def import_acts(name="acts", files=None, **options):
    files = files or [ROOT / f"fixtures/eurlex/{split}.jsonl" for split in SPLITS]
    return command("import_corpus", name, *files, **({"format": "eurlex", "licence": "CC-BY-SA-4.0"} | options))


def import_eurovoc(name="eurovoc"):
    return command("import_vocabulary", name, EUROVOC / "concepts.json", schemes=str(EUROVOC / "schemes.json"))


def opened(name, **options):
    """Return the output of the command."""
    return command("open_task", name, **({"kind": "concepts", "corpus": "acts", "seed": "1"} | options))


def task_of(name="acts", **options):
    opened(name, **options)
    return Task.objects.get(name=name)


def import_both():
    import_eurovoc()
    import_acts()


def begun(name="acts", **options):
    """Return the corpus and a task on it, which the tests of a module share."""
    import_both()
    return task_of(name, **options)


def gold_file(*purposes):
    """Write a file of known answers, with one act and its declared concepts for each purpose."""
    lines = (ROOT / "fixtures/eurlex/train.jsonl").read_text(encoding="utf-8").splitlines()
    path = Path(tempfile.mkdtemp()) / "gold.jsonl"
    with open(path, "w", encoding="utf-8") as file:
        for act, purpose in zip(map(json.loads, lines), purposes, strict=False):
            row = {"id": act["celex_id"], "label": " ".join(act["eurovoc_concepts"]), "purpose": purpose}
            file.write(json.dumps(row | {"explanation": "These are the publisher's."}) + "\n")
    return path


def choose(annotator, task, *keys, **answer):
    """Take the next document, choose these concepts, and return the judgment."""
    lease = take(annotator, task)
    return judge(annotator, lease.pk, Answer(" ".join(sorted(keys)), **answer))


def values_of(html, name):
    """Return the values of the form fields with this name on a page."""
    return [unescape(value) for value in re.findall(rf'name="{name}" value="([^"]*)"', html)]


def suggesting(task, blind_share):
    """Let a task show suggestions that the test stores, as if it had been opened with --suggest."""
    task.suggest, task.blind_share = ["a@1"], blind_share
    task.save()
