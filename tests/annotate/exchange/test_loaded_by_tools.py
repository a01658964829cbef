"""Files for other annotation tools are loaded by the tools themselves (tests/tool_readers.py).

Label Studio: its SDK validates and converts tasks. doccano: its upload imports files into a project in a database.
Argilla: its client reads settings and records. Potato and INCEpTION (dkpro-cassis) load exports of fixtures/exchange.
Prodigy cannot be installed, so its documented format is checked.
"""

import json
import shutil
import subprocess
from uuid import NAMESPACE_URL, uuid5

import pytest

from annotate.actions.registry import call_command
from annotate.kinds.forms.spans import spans_in
from annotate.models import Task
from tests.annotate.exchange.conftest import EXPORTS
from tests.running import ROOT

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
PYTHON = ROOT / ".tools" / "bin" / "python"
# export -> the form of its question: one label, several, spans, and a scale
SETS = {
    "mechanical_turk_boxes.csv": "choice",
    "prodigy_choice.jsonl": "labels",
    "label_studio_spans.json": "spans",
    "label_studio_rating.json": "grades",
}


@pytest.fixture(scope="module")
def read():
    """Return a function: read(tool, folder, form) returns what a tool loads, as sorted (text, person, labels)."""
    if not PYTHON.exists():
        pytest.skip("`make .tools/.requirements` installs the tools")

    def run(tool, folder, form=""):
        command = [PYTHON, ROOT / "tests" / "tool_readers.py", tool, folder, form]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=folder)
        assert done.returncode == 0, done.stderr
        return sorted(map(tuple, json.loads(done.stdout)))

    return run


@pytest.fixture(params=SETS)
def written(request, imported, tmp_path):
    """Return the form of a set, its folder with a copy for each tool, and its answers as (text, person, labels)."""
    imported(request.param, redundancy=1)
    tools = ["label-studio", "doccano", "argilla", "prodigy"]
    call_command("export_gold", "kettle", out=tmp_path / "set", **{"as": tools})
    [file] = (tmp_path / "set").glob("gold*.jsonl")
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    form = Task.objects.get().kind.form.slug

    def labels(answer):
        if form == "spans":
            return [list(span) for span in spans_in(answer)]
        return answer.split() if form == "labels" else [answer]

    answers = [(row["body"], "gold", labels(row["label"])) for row in rows if row["label"]]
    answers += [
        (row["body"], judgment["annotator"], labels(judgment["label"])) for row in rows for judgment in row["judgments"]
    ]
    assert form == SETS[request.param]
    assert len(answers) > 1
    return form, tmp_path / "set", sorted(answers)


@pytest.mark.parametrize("tool", ["label-studio", "doccano", "argilla"])
def test_each_tool_loads_every_label_and_answer_of_an_exported_set(written, read, tool):
    form, folder, answers = written
    [copy] = folder.glob(f"{tool}*")
    if tool == "argilla":  # whose users have a UUID
        answers = sorted(
            (text, by if by == "gold" else str(uuid5(NAMESPACE_URL, by)), labels) for text, by, labels in answers
        )
    assert read(tool, copy, form) == answers


def test_the_lines_for_prodigy_follow_its_documented_format(written):
    form, folder, answers = written
    [file] = folder.glob("prodigy*/*.jsonl")
    entries = []
    for line in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
        assert line["answer"] in ("accept", "reject", "ignore")
        assert isinstance(line["_input_hash"], int)
        assert isinstance(line["_task_hash"], int)
        if form == "spans":
            assert line["_view_id"] == "spans_manual"
            labels = [[span["start"], span["end"], span["label"]] for span in line["spans"]]
            assert all(0 <= start < end <= len(line["text"]) for start, end, _ in labels)
        else:
            assert line["_view_id"] == "choice"
            assert set(line["accept"]) <= {option["id"] for option in line["options"]}
            labels = line["accept"]
        entries.append((line["text"], line["_annotator_id"], labels))
    assert sorted(entries) == answers


def test_the_exports_that_imports_are_tested_with_are_valid_for_their_tools(read, tmp_path):
    shutil.copy(EXPORTS / "potato_user_state.jsonl", tmp_path)
    boils, leaks = "It boils fast", "It leaks again"
    assert read("potato", tmp_path) == [(boils, "ann", ["good"]), (boils, "bea", ["bad"]), (leaks, "ann", ["bad"])]
    (tmp_path / "inception").mkdir()
    shutil.copy(EXPORTS / "inception_spans.json", tmp_path / "inception")
    [(text, _, entities)] = read("inception", tmp_path / "inception")
    assert [text[start:end] for start, end, _ in entities] == ["Angela", "Paris"]
