"""Projects of other annotation tools: what `import` makes of their exports."""

import csv
import json
import re
import zipfile
from collections import Counter
from datetime import datetime

import pytest
from django.core.management.base import CommandError

from annotate.actions.registry import call_command
from annotate.models import Judgment, Task
from corpora.models import Corpus, Item
from corpora.predictions.predictor_labels import find_predictor, predicted_labels
from corpora.storage.layout import read_manifest
from tests.annotate.exchange.conftest import EXPORTS, answers, jsonl

# export -> the form of the question; the answers, each as item, person and label; what is not kept
READ = {
    "label_studio.json": (
        "choice",
        "11 ann@example.org Very-positive; 11 2 Negative; 12 2 Negative",
        ["skipped answers (1)", "marks of answers as ground truth (1)"],
    ),
    "label_studio_1.0.json": ("choice", "1 3 good; 2 3 bad", []),
    "label_studio_spans.json": ("spans", "1 ann@example.org 0:13:PER 22:27:LOC", []),
    "label_studio_rating.json": ("grades", "1 2 4; 2 2 1", []),
    "label_studio_min.json": ("labels", "7 1 good; 7 2 fast good; 8 1 bad", []),
    "label_studio.csv": ("choice", "7 1 good; 7 2 bad; 8 1 bad", []),
    "doccano_classes.jsonl": ("choice", "1 unknown food; 2 unknown sport", []),
    "doccano_spans.jsonl": ("spans", "1 unknown 0:13:PER 22:27:LOC", ["comments (1)"]),
    "doccano_1.0.json": ("choice", "1 1 3; 1 2 4; 2 1 4", ["values of 'source', which some items lack (1)"]),
    "doccano.csv": ("labels", "1 unknown food sport; 2 unknown sport", []),
    "prodigy_choice.jsonl": (
        "labels",
        "101 db-ann food; 101 db-bea food sport; 102 db-ann sport",
        ["skipped answers (1)"],
    ),
    "prodigy_binary.jsonl": ("choice", "1 db-ann accept; 2 db-ann reject", []),
    "prodigy_spans.jsonl": ("spans", "1 db-ann 0:13:PER", []),
    "argilla_2.json": ("choice", "r1 u1 good; r1 u2 bad; r2 u1 bad", []),
    "argilla_2_labels.json": ("labels", "r1 u1 food sport; r1 u2 food; r2 u1 sport", []),
    "argilla_2_spans.json": ("spans", "r1 u1 0:13:PER 22:27:LOC", []),
    "argilla_2_rating.json": ("grades", "r1 u1 4; r2 u1 1", []),
    "argilla_2_flat.jsonl": ("choice", "r1 u1 good; r2 u1 bad", ["answers that were draft (1)"]),
    "argilla_1_feedback.jsonl": ("choice", "r1 u1 good; r2 u1 bad", ["answers that were discarded (1)"]),
    "argilla_1_classes.json": ("choice", "r1 ann good; r2 ann bad", []),
    "mechanical_turk.csv": ("choice", "H1 W1 good; H1 W2 bad; H2 W1 bad", ["rejected assignments (1)"]),
    "mechanical_turk_boxes.csv": ("choice", "H1 W1 good; H2 W1 bad", []),
    "mechanical_turk_json.csv": ("choice", "H1 W1 good; H2 W1 bad", []),
    "appen.csv": (
        "choice",
        "901 44 good; 901 45 bad; 902 44 bad",
        ["answers of workers whom the platform excluded (1)"],
    ),
    "potato.jsonl": ("choice", "i1 ann good; i1 bea bad; i2 ann bad", []),
    "potato_user_state.jsonl": ("choice", "i1 ann good; i1 bea bad; i2 ann bad", []),
    "potato_spans.jsonl": ("spans", "i1 ann 0:13:PER 22:27:LOC", []),
    "inception_classes.jsonl": ("choice", "a.txt ann good; a.txt bea bad; b.txt ann bad", []),
    "inception_spans.json": ("spans", "a.txt ann 2:8:PER 12:17:LOC", ["relations (1)"]),
    "inception_legacy.jsonl": ("choice", "a.txt unknown good; b.txt unknown bad", []),
    "lighttag_classes.json": ("choice", "e1 ann good; e1 bea bad; e2 ann bad", []),
    "lighttag_spans.json": ("spans", "e1 ann 0:13:PER 22:27:LOC; e1 bea 0:13:PER", ["verdicts of reviewers (1)"]),
    "lighttag_examples.jsonl": ("labels", "e1 ann fast good; e2 bea bad", []),
    "langsmith_categories.jsonl": ("choice", "r1 u1 good; r1 u2 bad; r2 u1 bad", ["comments (1)"]),
    "langsmith_scores.jsonl": ("grades", "r1 u1 4; r2 u1 2", []),
    "langsmith_yes_no.json": ("choice", "r1 u1 True; r2 u1 False", ["feedback without a score or value (1)"]),
    "langfuse_traces.jsonl": ("choice", "t1 u1 good; t1 u2 bad; t2 u1 bad", ["comments (1)"]),
    "langfuse_api.json": (
        "choice",
        "t1 u1 good; t1 u2 bad; t2 u1 bad",
        ["comments (1)", "scores that are only named by their id (2)"],
    ),
    "langfuse_numbers.jsonl": ("grades", "t1 u1 4; t2 u1 2", []),
}

# export -> the first time at which somebody answered, if the export states it
TIMES = {
    "label_studio.json": "2021-03-09T22:16:08.728353+00:00",
    "label_studio_1.0.json": "2020-08-26T16:29:31+00:00",
    "label_studio_min.json": "2025-01-01T00:00:00+00:00",
    "label_studio.csv": "2025-01-01T00:00:00+00:00",
    "prodigy_choice.jsonl": "2025-01-01T10:00:00+00:00",
    "mechanical_turk.csv": "2018-01-22T20:01:28+00:00",
    "appen.csv": "2020-01-01T10:00:00+00:00",
    "lighttag_classes.json": "2020-07-26T20:42:03.676000+00:00",
    "langsmith_scores.jsonl": "2025-03-02T10:00:00.123456+00:00",
    "langfuse_traces.jsonl": "2025-03-02T10:00:00+00:00",
}

pytestmark = pytest.mark.django_db


# An export of each tool; the others are tried in the slow tier.
FIRST = set({re.split(r"[._]", name)[0]: name for name in reversed(READ)}.values())


def quick_if(condition):
    return [] if condition else [pytest.mark.slow]


@pytest.mark.parametrize(
    ("export", "form", "expected", "lost"),
    [pytest.param(name, *read, id=name, marks=quick_if(name in FIRST)) for name, read in READ.items()],
)
def test_the_answers_of_each_person_are_kept(imported, export, form, expected, lost):
    output = imported(export)
    task = Task.objects.get()
    assert (task.kind.form.slug, answers()) == (form, {tuple(answer.split(" ", 2)) for answer in expected.split("; ")})
    assert set(lost) == set(re.findall(r"(?:Not kept: |; )([^;.]+ \(\d+\))", output))
    assert task.is_open
    if export in TIMES:
        assert Judgment.objects.earliest("answered_at").answered_at.isoformat() == TIMES[export]


def test_a_time_in_the_future_is_counted_and_not_kept(imported, tmp_path):
    tasks = json.loads((EXPORTS / "label_studio_1.0.json").read_text(encoding="utf-8"))
    tasks[0]["completions"][0]["created_at"] = "2999-01-01T00:00:00Z"
    output = imported(jsonl(tmp_path / "a.jsonl", *tasks))
    assert "times of answers that are invalid or in the future (1)" in output


def test_the_label_of_a_curator_becomes_a_prediction(imported):
    imported("inception_classes.jsonl")
    assert predicted_labels("kettle", find_predictor("kettle", "gold@1"), ["a.txt"]) == {"a.txt": "good"}


def test_a_folder_of_inception_names_the_person_in_each_file(imported, tmp_path):
    for line in (EXPORTS / "inception_legacy.jsonl").read_text(encoding="utf-8").splitlines():
        meta = json.loads(line)["_views"]["_InitialView"]["DocumentMetaData"][0]
        for person in ("ann", "bea"):
            file = tmp_path / "annotation" / meta["documentTitle"] / f"{person}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(json.loads(line), indent=1), encoding="utf-8")
    imported(tmp_path / "annotation")
    assert answers() == {(k, p, v) for k, v in (("a.txt", "good"), ("b.txt", "bad")) for p in ("ann", "bea")}


def test_items_without_enough_answers_wait_for_people(imported):
    imported("label_studio.json")
    assert dict(Task.objects.get().units.values_list("item__key", "stage")) == {"11": "ADJUDICATION", "12": "QUEUED"}


@pytest.mark.parametrize("export", ["argilla_2.json", "argilla_2_flat.jsonl", "argilla_1_feedback.jsonl"])
def test_suggestions_of_a_model_become_predictions(imported, export):
    imported(export)
    assert predicted_labels("kettle", find_predictor("kettle", "bert@1"), ["r1", "r2"]) == {"r1": "good", "r2": "bad"}


def test_the_language_of_each_item_is_taken_from_its_data(imported):
    imported("label_studio.json", language="")
    assert set(Item.objects.values_list("language", flat=True)) == {"en"}


def test_the_configuration_adds_names_labels_and_the_question(imported):
    imported("label_studio.json", config=EXPORTS / "label_config.xml")
    kind = Task.objects.get().kind
    assert kind.title == "Which sentiment does the review express?"
    assert [*kind.answers] == ["Very-positive", "Neutral", "Negative"]


def test_settings_of_argilla_add_guidelines(imported):
    imported("argilla_2.json", config=EXPORTS / "argilla_settings.json")
    kind = Task.objects.get().kind
    assert {code: answer.names["en"] for code, answer in kind.answers.items()} == {
        "good": "Good", "neutral": "Neutral", "bad": "Bad",
    }  # fmt: skip
    assert Task.objects.get().guidelines.get(language="en").text.strip() == "Read the whole review."


def test_a_zip_file_of_doccano_has_a_file_for_each_person(imported, tmp_path):
    path = tmp_path / "doccano.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for person, label in (("ann", "food"), ("bea", "sport")):
            packed.writestr(f"{person}.jsonl", f'{{"id": 1, "text": "Bake it for an hour", "label": ["{label}"]}}\n')
    imported(path)
    assert answers() == {("1", "ann", "food"), ("1", "bea", "sport")}


@pytest.mark.parametrize(
    ("export", "options", "refusal"),
    [
        ("label_studio_1.0.json", {"language": ""}, "does not state the language of item 1. Add --language"),
        ("label_studio.json", {"question": "topic"}, "has no question 'topic'. Its questions are: sentiment."),
        ("argilla_settings.json", {}, "is not recognized as an export of"),
        ("potato.jsonl", {"config": EXPORTS / "potato.jsonl"}, "is neither XML nor JSON"),
    ],
)
def test_what_cannot_be_imported_is_refused_and_leaves_nothing(imported, export, options, refusal):
    with pytest.raises(CommandError, match=re.escape(refusal)):
        imported(export, **options)
    assert not Task.objects.exists()
    assert not Corpus.objects.exists()
    assert read_manifest("kettle") is None


def test_a_failure_after_the_corpus_was_written_removes_it(imported, tmp_path):
    path = tmp_path / "one.jsonl"
    path.write_text('{"id": 1, "text": "Bake it for an hour", "label": [[0, 99, "X"]]}\n')
    with pytest.raises(CommandError, match="outside the text"):
        imported(path)
    assert read_manifest("kettle") is None
    assert not Task.objects.exists()


# --- Written for another tool, and imported again.

CONFIGURATIONS = ("label_config.xml", "label_config.json", "settings.json")


@pytest.mark.parametrize(
    ("export", "tool", "files"),
    [
        pytest.param(export, tool, files, marks=quick_if(export == "prodigy_choice.jsonl"))
        for export in ("mechanical_turk_boxes.csv", "prodigy_choice.jsonl", "label_studio_spans.json")
        for tool, files in {
            "label-studio": "tasks.json",
            "": "gold*.jsonl",
            "doccano": "annotator-*.jsonl",
            "prodigy": "annotations.jsonl",
            "argilla": "records.json",
        }.items()
    ],
)
def test_a_set_written_for_another_tool_is_imported_again_without_loss(imported, tmp_path, export, tool, files):
    imported(export, redundancy=1)
    task = Task.objects.get()
    call_command("export_gold", "kettle", out=tmp_path / "set", **{"as": [tool] if tool else []})
    [set_file] = (tmp_path / "set").glob("gold*.jsonl")
    rows = list(map(json.loads, set_file.read_text(encoding="utf-8").splitlines()))
    [folder] = (tmp_path / "set").glob(f"{tool}*") if tool else [tmp_path / "set"]
    config = next((file for name in CONFIGURATIONS if (file := folder / name).exists()), None)
    call_command("import", "again", *folder.glob(files), licence="CC0-1.0", language="en", config=config)
    again = Task.objects.get(name="again")
    assert again.kind.form.slug == task.kind.form.slug
    actual = Judgment.objects.filter(unit__task=again).values_list("unit__item__fields__body", "label", "answered_at")
    expected = [
        (row["body"], judgment["label"], datetime.fromisoformat(judgment["answered_at"]))
        for row in rows
        for judgment in row["judgments"]
    ]
    length = 2 if tool == "argilla" else 3  # its responses have no time
    assert Counter(answer[:length] for answer in actual) == Counter(answer[:length] for answer in expected)


@pytest.mark.parametrize("pattern", ["gold*.jsonl", "gold*.parquet"])
def test_a_set_of_assay_is_imported_again_with_the_same_labels_and_judgments(imported, tmp_path, pattern):
    imported("mechanical_turk_boxes.csv", redundancy=1)
    rows = exported_rows("kettle", tmp_path / "first")
    files = (tmp_path / "first").glob(pattern)
    call_command("import", "again", *files, licence="CC0-1.0", redundancy=1)
    assert rows == exported_rows("again", tmp_path / "second")


def test_tables_for_spreadsheets_run_no_formula_and_their_answers_are_imported_again(imported, tmp_path):
    rows = [{"text": "=1+1", "label": ["good"]}, {"text": "It leaks, still", "label": ["bad"]}]
    imported(jsonl(tmp_path / "ann.jsonl", *rows), redundancy=1)
    call_command("export_gold", "kettle", out=tmp_path / "set", **{"as": ["csv"]})
    [folder] = (tmp_path / "set").glob("csv*")
    with (folder / "items.csv").open(encoding="utf-8-sig", newline="") as file:
        assert [row["body"] for row in csv.DictReader(file)] == ["'=1+1", "It leaks, still"]
    call_command("import_judgments", "tabled", folder / "answers.csv")
    again, first = (
        Counter(Judgment.objects.filter(unit__task__name=name).values_list("unit__item__key", "label", "answered_at"))
        for name in ("tabled", "kettle")
    )
    assert again == first


def exported_rows(task, folder):
    """Export a set, and return the id, the label and the judgments of each of its rows."""
    call_command("export_gold", task, out=folder)
    [path] = folder.glob("gold*.jsonl")
    rows = list(map(json.loads, path.read_text(encoding="utf-8").splitlines()))
    return sorted(
        (
            row["id"],
            row["language"],
            row["body"],
            row["label"],
            [(one["label"], one["answered_at"]) for one in row["judgments"]],
        )
        for row in rows
    )


def test_a_column_id_in_the_data_of_label_studio_is_no_question(imported, tmp_path):
    rows = [
        {"id": n, "language": "en", "body": f"Review {n}", "mood": mood, "annotator": by, "annotation_id": n}
        for n, by, mood in ((1, 1, "good"), (1, 2, "bad"), (2, 1, "bad"))
    ]
    imported(jsonl(tmp_path / "a.jsonl", *rows))
    assert answers() == {("1", "1", "good"), ("1", "2", "bad"), ("2", "1", "bad")}


def rows_of_one_annotator(*columns):
    """Return a JSON_MIN export of Label Studio in which nobody differs and the order shows nothing."""
    rows = [
        {"id": n, "body": f"Review number {n}, which is long", "lang": "en", "mood": ("good", "bad")[n % 2]}
        | {"shop": ("north", "south")[n // 2 % 2], "annotator": 1, "annotation_id": n}
        for n in range(1, 9)
    ]
    return [{name: row[name] for name in (*columns, "annotator", "annotation_id")} for row in rows]


def test_the_only_column_that_could_contain_labels_is_the_question(imported, tmp_path):
    imported(jsonl(tmp_path / "a.jsonl", *rows_of_one_annotator("id", "body", "lang", "mood")), language="")
    assert answers() == {(str(n), "1", ("good", "bad")[n % 2]) for n in range(1, 9)}


@pytest.mark.parametrize(
    "options", [{"question": "mood"}, {"config": '<View><Choices name="mood" toName="body"/></View>'}]
)
def test_of_several_columns_that_could_be_the_question_the_user_states_one(imported, tmp_path, options):
    file = jsonl(tmp_path / "a.jsonl", *rows_of_one_annotator("id", "body", "lang", "mood", "shop"))
    with pytest.raises(CommandError, match=r"contains the answers: mood, shop. Add --question .* or --config"):
        imported(file)
    if "config" in options:
        (tmp_path / "c.xml").write_text(options["config"])
        options = {"config": tmp_path / "c.xml"}
    imported(file, **options)
    assert answers() == {(str(n), "1", ("good", "bad")[n % 2]) for n in range(1, 9)}
    assert Item.objects.first().fields["shop"] in ("north", "south")


def test_a_question_that_the_first_annotator_left_out_is_found(imported, tmp_path):
    rows = [
        {"body": f"Review number {n}", "id": n, **({"mood": mood} if mood else {}), "annotator": 1, "annotation_id": n}
        for n, mood in ((1, ""), (2, "good"), (3, "bad"))
    ]
    imported(jsonl(tmp_path / "a.jsonl", *rows))
    assert answers() == {("2", "1", "good"), ("3", "1", "bad")}
