"""What survives an import, tool by tool and field by field: the table in the documentation is computed here."""

from pathlib import Path

import datasets
import pytest
from django.conf import settings

from annotate.exchange.export_files import TOOLS, recognize_tool
from annotate.exchange.items import GOLD
from annotate.exchange.project import project_of
from annotate.exchange.tool_files import WRITERS, GoldSet
from tests.annotate.exchange.conftest import EXPORTS
from tests.annotate.exchange.test_import_project import READ

PAGE = Path(settings.BASE_DIR) / "annotate" / "docs" / "reference" / "formats.md"
FORMS = {"choice": "one label", "labels": "several", "spans": "spans", "grades": "scale"}
FIELDS = (*FORMS.values(), "person", "time", "metadata", "predictions", "decision")
FILES = {"doccano": ("*-*.jsonl", "gold.jsonl"), "label-studio": ("tasks.json",)}
SETS = {
    "choice": (("good", "bad"), "good", "bad"),
    "labels": (("food", "sport"), "food sport", "sport"),
    "spans": (("PER", "LOC"), "0:13:PER 22:27:LOC", "0:13:PER"),
}


def survivors(files):
    """Return the name of the tool whose export the files are, and the fields that survive."""
    tool, objects = recognize_tool(files, [])
    project = project_of(tool, objects, question="", language="en")
    survives = {FORMS[project.form]: True, "decision": GOLD in project.predictions}
    survives["person"] = any(by != "unknown" for _, by, *_ in project.judgments)
    survives["time"] = any(at for *_, at in project.judgments)
    survives["metadata"] = len(project.fields) > len(project.shown)
    survives["predictions"] = bool(project.predictions.keys() - {GOLD})
    return tool.name, {name for name, is_kept in survives.items() if is_kept}


def gold_set(form):
    codes, label, other = SETS[form]
    answers = {"annotator-1": label, "annotator-2": other}
    judgments = [
        {
            "annotator": by,
            "kind": "answer",
            "label": answer,
            "voided_at": None,
            "answered_at": "2025-03-02T10:00:00+00:00",
        }
        for by, answer in answers.items()
    ]
    row = {"id": "1", "language": "en", "label": label, "judgments": judgments, "body": "Angela Merkel visited Paris."}
    marked = "body" if form == "spans" else ""
    return GoldSet("Which?", form == "labels", ("body",), marked, dict(zip(codes, codes, strict=True)), lambda: [row])


def dataset_folders(folder):
    """Yield folders of Hugging Face data sets with one label, and with several labels, for each text."""
    one = datasets.ClassLabel(names=["bad", "good"])
    for name, feature, labels in (("one", one, [0, 1]), ("several", datasets.List(one), [[0], [0, 1]])):
        features = datasets.Features({"text": datasets.Value("string"), "mood": feature})
        data = datasets.Dataset.from_dict({"text": ["It boils fast.", "It leaks again."], "mood": labels}, features)
        datasets.DatasetDict({"train": data}).save_to_disk(folder / name)
        yield folder / name


@pytest.fixture
def table(tmp_path):
    """Return the lines of the table: the exports of each tool, and then the files that Assay writes for it."""
    rows = {tool.name: set() for tool in TOOLS}
    for export in READ:
        name, fields = survivors([EXPORTS / export])
        rows[name] |= fields
    for folder in dataset_folders(tmp_path):
        name, fields = survivors([folder])
        rows[name] |= fields
    for slug, write in WRITERS.items():
        for form in SETS if slug != "csv" else ():  # of no annotation tool
            folder = tmp_path / slug / form
            folder.mkdir(parents=True)
            write(folder, gold_set(form))
            patterns = FILES.get(slug, ("*.json*",))
            files = [
                file for pattern in patterns for file in sorted(folder.glob(pattern)) if file.name != "settings.json"
            ]
            name, fields = survivors(files)
            rows.setdefault(f"{name}, written by Assay", set()).update(fields)
    del rows["Assay"]
    lines = [f"| tool | {' | '.join(FIELDS)} |", f"|---|{':-:|' * len(FIELDS)}"]
    for name, fields in rows.items():
        lines.append(f"| {name} | {' | '.join('✓' if field in fields else '' for field in FIELDS)} |")
    return lines


def test_the_table_in_the_documentation_is_that_of_the_tests(table):
    text = PAGE.read_text(encoding="utf-8")
    assert "\n".join(table) in text, "Replace the table with:\n" + "\n".join(table)
