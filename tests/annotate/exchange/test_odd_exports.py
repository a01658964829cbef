"""Exports as people really have them: what is odd in them is kept, or reported as lost, or refused with a sentence."""

import json
import re
import zipfile

import openpyxl
import pytest
from django.core.management.base import CommandError

from annotate.models import Judgment, Task
from tests.annotate.exchange.test_import_project import answers, imported, jsonl  # noqa: F401 - a fixture

pytestmark = pytest.mark.django_db
TEXTS = ("It boils fast", "It leaks again", "It is for sale")


def choice(*labels):
    return {"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": [*labels]}}


def label_studio(*annotations, **more):
    """Return tasks with these annotations, after one task for each of two labels."""
    said = [{"result": [choice(label)], "completed_by": 1} for label in ("good", "bad")]
    return [
        {"id": n, "data": {"text": text}, "annotations": [*given], **(more if n == 3 else {})}
        for n, text, given in zip((1, 2, 3), TEXTS, ([said[0]], [said[1]], annotations), strict=True)
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


OPTIONS = [{"id": 1, "text": "good"}, {"id": 2, "text": "bad"}]
BOTH = {("1", "1", "good"), ("2", "1", "bad")}
UNKNOWN = {("1", "unknown", "good"), ("2", "unknown", "bad")}


@pytest.mark.parametrize(
    ("rows", "kept", "lost"),
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
    ],
)  # fmt: skip
def test_what_an_odd_export_contains_is_kept_or_reported(imported, tmp_path, rows, kept, lost):  # noqa: F811
    said = imported(jsonl(tmp_path / "a.jsonl", *rows))
    assert answers() == kept
    assert lost in said
    assert bool(lost) == ("Not kept" in said)


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
    ],
)
def test_what_cannot_be_right_is_refused(imported, tmp_path, rows, refusal):  # noqa: F811
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
def test_tables_of_tools_are_read(imported, tmp_path, name, content, person):  # noqa: F811
    (tmp_path / name).write_text(content)
    said = imported(tmp_path / name)
    assert answers() == {("1", person, "good"), ("2", person, "bad")}
    assert ("labels such as nan" in said) == ("nan" in content)


def test_a_report_of_appen_in_which_nobody_differs_needs_the_question(imported, tmp_path):  # noqa: F811
    file = tmp_path / "a.csv"
    file.write_text("_unit_id,_worker_id,mood,text\n1,7,good,a b\n2,7,bad,c d\n")
    with pytest.raises(CommandError, match=r"contains the answers: mood, text\. Add --question"):
        imported(file)
    imported(file, question="mood")
    assert answers() == {("1", "7", "good"), ("2", "7", "bad")}


def test_a_workbook_and_a_packed_file_are_read(imported, tmp_path):  # noqa: F811
    book = openpyxl.Workbook()
    for row in (["HITId", "WorkerId", "Input.text", "Answer.m"], ["1", "w", "a b", "good"], ["2", "w", "c d", "bad"]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    imported(tmp_path / "a.xlsx")
    assert answers() == {("1", "w", "good"), ("2", "w", "bad")}


def test_times_may_be_in_milliseconds(imported, tmp_path):  # noqa: F811
    tasks = label_studio()
    tasks[0]["annotations"][0]["created_at"] = 1704067200000
    imported(jsonl(tmp_path / "a.jsonl", *tasks))
    assert Judgment.objects.earliest("answered_at").answered_at.isoformat() == "2024-01-01T00:00:00+00:00"


def test_a_zip_file_may_contain_any_format(imported, tmp_path):  # noqa: F811
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
def test_a_damaged_configuration_is_refused(imported, tmp_path, content, refusal):  # noqa: F811
    (tmp_path / "c.json").write_bytes(content)
    with pytest.raises(CommandError, match=re.escape(refusal)):
        imported(jsonl(tmp_path / "a.jsonl", *doccano("good", "bad")), config=tmp_path / "c.json")


def mark(start, end, words, label):
    value = {"start": start, "end": end, "text": words, "labels": [label]}
    return {"from_name": "who", "to_name": "text", "type": "labels", "value": value}


def test_marks_count_an_emoji_as_label_studio_does_never_stand_on_other_words_and_may_be_none(imported, tmp_path):  # noqa: F811
    text = "\U0001f600 Bob met Ann"
    marks = [mark(3, 6, "Bob", "PER"), mark(11, 14, "Ann", "PER"), mark(3, 6, "Eve", "PER")]
    given = [{"result": marks, "completed_by": 1}, {"result": [], "completed_by": 2}]
    said = imported(jsonl(tmp_path / "a.jsonl", {"id": 1, "data": {"text": text}, "annotations": given}))
    assert answers() == {("1", "1", "2:5:PER 10:13:PER"), ("1", "2", "none")}
    assert "marks whose words do not stand at their place (1)" in said


def test_a_choice_named_none_is_a_label_and_nan_is_reported(imported, tmp_path):  # noqa: F811
    rows = [
        {"id": n, "text": text, "mood": mood, "annotator": 1, "annotation_id": n, "created_at": "2026-01-01T00:00:00Z"}
        for n, (text, mood) in enumerate(zip(TEXTS, ("None", "good", "nan"), strict=True), 1)
    ]
    said = imported(jsonl(tmp_path / "a.jsonl", *rows))
    assert answers() == {("1", "1", "None"), ("2", "1", "good")}
    assert "answers that say nothing, such as nan (1)" in said


def test_ids_and_languages_of_the_data_go_before_numbers_of_tasks_and_the_option(imported, tmp_path):  # noqa: F811
    tasks = label_studio()
    for task, key, language in zip(tasks, ("x", "y", "z"), ("de", "fr", ""), strict=True):
        task["data"] |= {"id": key, "language": language}
    imported(jsonl(tmp_path / "a.jsonl", *tasks), language="en")
    items = Task.objects.get().units.values_list("item__key", "item__language")
    assert set(items) == {("x", "de"), ("y", "fr"), ("z", "en")}


def test_configurations_in_the_folder_of_an_export_are_no_items(imported, tmp_path):  # noqa: F811
    folder = tmp_path / "export"
    folder.mkdir()
    jsonl(folder / "gold.jsonl", *doccano("good", "bad"))
    (folder / "label_config.json").write_text(json.dumps([{"text": "good"}, {"text": "bad"}]))
    imported(folder)
    assert answers() == UNKNOWN
