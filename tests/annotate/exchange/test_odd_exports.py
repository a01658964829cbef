"""Odd exports from real use: oddities are kept, reported as lost, or refused with a message."""

import copy
import json
import random
import re
import zipfile
from pathlib import Path

import openpyxl
import pytest
from django.core.management.base import CommandError

from annotate.actions.registry import call_command
from annotate.models import Judgment, Task
from corpora.storage.layout import read_manifest
from tests.annotate.exchange.conftest import EXPORTS, answers, jsonl

pytestmark = pytest.mark.django_db
TEXTS = ("It boils fast", "It leaks again", "It is for sale")


def choice(*labels):
    return {"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": [*labels]}}


def label_studio(*annotations, **more):
    """Return tasks with these annotations, after one task for each of two labels."""
    good, bad = ({"result": [choice(label)], "completed_by": 1} for label in ("good", "bad"))
    return [
        {"id": n, "data": {"text": text}, "annotations": [*entries], **(more if n == 3 else {})}
        for n, text, entries in zip((1, 2, 3), TEXTS, ([good], [bad], annotations), strict=True)
    ]


def stored(key, label):
    """Return an annotation as Label Studio writes it to a storage."""
    task = {"id": key, "data": {"text": TEXTS[key - 1]}}
    return {"id": key, "result": [choice(label)], "completed_by": {"email": "a@b.c"}, "task": task}


def argilla(key, label):
    response = {"values": {"mood": {"value": label}}, "status": "submitted", "user_id": None}
    chat = [{"role": "user", "content": TEXTS[key - 1]}]
    return {"id": f"{key}", "fields": {"chat": chat}, "responses": [response], "suggestions": []}


def prodigy(key, **answer):
    return {"text": TEXTS[key - 1], "_input_hash": key, "_task_hash": key, "_annotator_id": "ann"} | {
        "answer": "accept",
        **answer,
    }


def doccano(*labels, texts=TEXTS, **more):
    return [
        {"id": n, "text": text, "label": [label], **more}
        for n, (text, label) in enumerate(zip(texts, labels, strict=False), 1)
    ]


def mark(start, end, words, label):
    value = {"start": start, "end": end, "text": words, "labels": [label]}
    return {"from_name": "who", "to_name": "text", "type": "labels", "value": value}


def minimal(*moods):
    """Return a JSON_MIN export of Label Studio."""
    at = {"annotator": 1, "created_at": "2026-01-01T00:00:00Z"}
    return [
        {"id": n, "text": text, "mood": mood, "annotation_id": n, **at}
        for n, (text, mood) in enumerate(zip(TEXTS, moods, strict=True), 1)
    ]


def marked(*marks):
    """Return a task that one person marked, and in which another one found nothing to mark."""
    annotations = [{"result": marks, "completed_by": 1}, {"result": [], "completed_by": 2}]
    return {"id": 1, "data": {"text": "\U0001f600 Bob met Ann"}, "annotations": annotations}


OPTIONS = [{"id": 1, "text": "good"}, {"id": 2, "text": "bad"}]
BOTH = {("1", "1", "good"), ("2", "1", "bad")}
UNKNOWN = {("1", "unknown", "good"), ("2", "unknown", "bad")}


@pytest.mark.parametrize(
    ("rows", "expected", "lost"),
    [
        pytest.param(label_studio({"result": []}), BOTH, "answers without a result (1)", id="empty result"),
        pytest.param(label_studio({"result": [choice()]}), BOTH, "answers without a result (1)", id="no choice"),
        pytest.param(label_studio(drafts=[{"result": []}]), BOTH, "drafts (1)", id="drafts"),
        pytest.param(
            label_studio({"result": [choice("bad")], "completed_by": {}}), BOTH | {("3", "unknown", "bad")}, "",
            id="nobody named",
        ),
        pytest.param(
            [stored(1, "good"), stored(2, "bad")], {("1", "a@b.c", "good"), ("2", "a@b.c", "bad")}, "", id="storage"
        ),
        pytest.param([argilla(1, "good"), argilla(2, "bad")], UNKNOWN, "", id="chats from an API"),
        pytest.param(
            [prodigy(1, options=OPTIONS, accept=[1]), prodigy(2, options=OPTIONS, accept=[2]), prodigy(3, note="x")],
            {("1", "ann", "good"), ("2", "ann", "bad")}, "answers without options, a label or spans (1)",
            id="an answer without options",
        ),
        pytest.param(doccano("good", "bad", texts=("这个水壶烧得很快", "它又漏水了")), UNKNOWN, "", id="no spaces"),
        pytest.param(doccano("good", "bad", texts=("kettle", "boil")), UNKNOWN, "", id="one word"),
        pytest.param(
            doccano("very\ngood", "e\u0301", "\xe9"),
            {("1", "unknown", "very-good"), ("2", "unknown", "\xe9"), ("3", "unknown", "\xe9")}, "",
            id="labels in two lines, NFC and NFD",
        ),
        pytest.param(
            doccano("good", "bad", annotation_approver="admin", meta='{"shop": "north"}'), UNKNOWN, "approvals (2)",
            id="approvals",
        ),
        pytest.param(
            [*doccano("good", "bad"), doccano("good")[0] | {"id": 40}], UNKNOWN,
            "answers to an item with the same text as another (1)", id="a text twice",
        ),
        pytest.param(
            minimal("None", "good", "nan"), {("1", "1", "None"), ("2", "1", "good")},
            "empty answers, such as nan (1)", id="a choice named None",
        ),
        pytest.param(
            [marked(mark(3, 6, "Bob", "PER"), mark(11, 14, "Ann", "PER"), mark(3, 6, "Eve", "PER"))],
            {("1", "1", "2:5:PER 10:13:PER"), ("1", "2", "none")},
            "spans whose text is not at their position (1)", id="an emoji and other words",
        ),
    ],
)  # fmt: skip
def test_what_an_odd_export_contains_is_kept_or_reported(imported, tmp_path, rows, expected, lost):
    output = imported(jsonl(tmp_path / "a.jsonl", *rows))
    assert answers() == expected
    assert lost in output
    assert bool(lost) == ("Not kept" in output)


@pytest.mark.parametrize(
    ("rows", "refusal"),
    [
        (doccano("good") + doccano("bad", texts=TEXTS[1:]), "the id 1, with different texts. Give each its own."),
        (label_studio()[:1] + label_studio()[:1], "Several items of the export have the id 1"),
        (
            [{"id": 1, "data": {"text": "a b"}, "annotations": [{"was_cancelled": True, "result": []}]}],
            "Nobody has answered, .* Not kept: skipped answers \\(1\\).",
        ),
        ([{"id": 1, "text": TEXTS[0], "entities": [[0, 2, "A"]], "cats": ["x"]}], "the questions entities, cats"),
        (doccano("good", "bad", texts=("half \ud800 here", "b c")), "half of a surrogate pair"),
        ([*doccano("good"), '{"id": 2, "te'], "but a question needs two labels.* Unreadable lines: 1, the first: "),
        (doccano("x" * 61, "good"), "has 61 characters. The limit is 60."),
        (doccano(*(f"This is sentence number {n}" for n in "123")), "seem to be free texts"),
        ([doccano("good")[0] | {"label": []}], "Nobody has answered, but a question needs two labels."),
        ([{"id": 1, "data": {"text": "a b"}, "annotations": [5]}], "Object 1 of the export is not structured like an"),
    ],
)
def test_what_cannot_be_right_is_refused(imported, tmp_path, rows, refusal):
    with pytest.raises(CommandError, match=refusal):
        imported(jsonl(tmp_path / "a.jsonl", *rows))
    assert not Task.objects.exists()


@pytest.mark.parametrize(
    ("name", "content", "person"),
    [
        ("a.csv", "user,instance_id,displayed_text,m:::good,m:::bad\nann,1,a b,true,\nann,2,c d,,true\n", "ann"),
        ("a.csv", "id,text,label\n1,a b,good\n2,c d,bad\n3,e f,nan\n", "unknown"),
        ("a.csv", "annotation_id;annotator;id;mood;text\n1;7;1;good;a b\n2;7;2;bad;c d\n", "7"),
    ],
)
def test_tables_of_tools_are_read(imported, tmp_path, name, content, person):
    (tmp_path / name).write_text(content)
    output = imported(tmp_path / name)
    assert answers() == {("1", person, "good"), ("2", person, "bad")}
    assert ("labels such as nan" in output) == ("nan" in content)


def test_a_report_of_appen_in_which_nobody_differs_needs_the_question(imported, tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("_unit_id,_worker_id,mood,text\n1,7,good,a b\n2,7,bad,c d\n")
    with pytest.raises(CommandError, match=r"contains the answers: mood, text\. Add --question"):
        imported(file)
    imported(file, question="mood")
    assert answers() == {("1", "7", "good"), ("2", "7", "bad")}


def test_a_workbook_and_a_packed_file_are_read(imported, tmp_path):
    book = openpyxl.Workbook()
    for row in (["HITId", "WorkerId", "Input.text", "Answer.m"], ["1", "w", "a b", "good"], ["2", "w", "c d", "bad"]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    imported(tmp_path / "a.xlsx")
    assert answers() == {("1", "w", "good"), ("2", "w", "bad")}


def test_times_may_be_in_milliseconds(imported, tmp_path):
    tasks = label_studio()
    tasks[0]["annotations"][0]["created_at"] = 1704067200000
    imported(jsonl(tmp_path / "a.jsonl", *tasks))
    assert Judgment.objects.earliest("answered_at").answered_at.isoformat() == "2024-01-01T00:00:00+00:00"


def test_a_zip_file_may_contain_any_format(imported, tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("project-1.json", json.dumps(label_studio()))
        packed.writestr("__MACOSX/._project-1.json", b"\0")
    imported(tmp_path / "a.zip")
    assert answers() == BOTH


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        (b'{"questions": [{"title": "x"}]}', "is not structured like settings.json of Argilla (KeyError: 'name')"),
        (b"\xef\xbb\xbf<View", "c.json, line 1: "),
    ],
)
def test_a_damaged_configuration_is_refused(imported, tmp_path, content, refusal):
    (tmp_path / "c.json").write_bytes(content)
    with pytest.raises(CommandError, match=re.escape(refusal)):
        imported(jsonl(tmp_path / "a.jsonl", *doccano("good", "bad")), config=tmp_path / "c.json")


def test_ids_and_languages_of_the_data_go_before_numbers_of_tasks_and_the_option(imported, tmp_path):
    tasks = label_studio()
    for task, key, language in zip(tasks, ("x", "y", "z"), ("de", "fr", ""), strict=True):
        task["data"] |= {"id": key, "language": language}
    imported(jsonl(tmp_path / "a.jsonl", *tasks), language="en")
    items = Task.objects.get().units.values_list("item__key", "item__language")
    assert set(items) == {("x", "de"), ("y", "fr"), ("z", "en")}


def test_configurations_in_the_folder_of_an_export_are_no_items(imported, tmp_path):
    folder = tmp_path / "export"
    folder.mkdir()
    jsonl(folder / "gold.jsonl", *doccano("good", "bad"))
    (folder / "label_config.json").write_text(json.dumps([{"text": "good"}, {"text": "bad"}]))
    imported(folder)
    assert answers() == UNKNOWN


CLASSES = [{"id": n, "text": f"Text number {n}", "label": ["food" if n % 2 else "sport"]} for n in range(40)]


def test_one_broken_line_is_left_out_and_listed(imported, tmp_path):
    output = imported(jsonl(tmp_path / "a.jsonl", *CLASSES, '{"id": 41, "text": '))
    assert re.search(r"unreadable lines, the first: .*a.jsonl, line 41: The line is not valid JSON: .* \(1\)", output)
    assert Task.objects.get().units.count() == 40


def test_many_broken_lines_are_refused(imported, tmp_path):
    with pytest.raises(CommandError, match=r"line 41: The line is not valid JSON.* 10 lines cannot be read"):
        imported(jsonl(tmp_path / "a.jsonl", *CLASSES, *["{"] * 10))


def test_ratings_become_grades_with_the_best_first(imported, tmp_path):
    rows = [
        {"id": f"{n}", "fields": {"text": f"Review {n}"}, "responses": {"stars": [{"value": n, "user_id": "u"}]}}
        for n in (1, 5, 3)
    ]
    imported(jsonl(tmp_path / "a.jsonl", *rows))
    kind = Task.objects.get().kind
    assert (kind.form.slug, [*kind.answers]) == ("grades", ["5", "3", "1"])


def test_a_list_of_rejected_rows_remains_where_the_message_says(imported):
    with pytest.raises(CommandError, match="All rejected rows are listed in") as refused:
        imported("doccano_classes.jsonl", language="qqx")
    path = Path(re.search(r"listed in (\S+\.jsonl)", str(refused.value))[1])
    assert path.exists()
    assert read_manifest("kettle") is None


STRANGE = (None, "", 0, -1, 3.5, True, [], {}, [None], [[1]], {"a": 1}, "x" * 300, "é\u202e", [0, 1, 2], ["a", "b"])


def objects_of(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else list(map(json.loads, text.splitlines()))


def places(value, at=()):
    """Yield the path to each value inside a JSON value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield (*at, key)
        yield from places(inner, (*at, key))


def damaged(objects, chance):
    objects = copy.deepcopy(objects)
    *path, last = chance.choice([place for place in places(objects) if len(place) > 1])
    holder = objects
    for key in path:
        holder = holder[key]
    if chance.random() < 0.3 and isinstance(holder, dict):
        del holder[last]
    else:
        holder[last] = chance.choice(STRANGE)
    return objects


@pytest.mark.slow
@pytest.mark.parametrize(
    "export", sorted(path.name for path in EXPORTS.glob("*.json*") if not path.name.startswith("argilla_settings"))
)
def test_damaged_exports_are_imported_or_refused(export, data_dir, tmp_path):
    objects, chance = objects_of(EXPORTS / export), random.Random(export)
    for number in range(25):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(damaged(objects, chance)), encoding="utf-8")
        name = f"fuzz{number}"
        refused = ""
        try:
            call_command("import", name, path, licence="CC0-1.0", language="en", max_rejects="100%", verbosity=0)
        except CommandError as error:
            refused = str(error)
        is_there = not refused
        assert (Task.objects.filter(name=name).exists(), read_manifest(name) is not None) == (is_there, is_there)
