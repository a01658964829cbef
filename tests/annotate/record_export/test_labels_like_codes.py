"""Record labels that are also language codes, such as `all` (Allar), are never treated as languages."""

import json
from io import StringIO

import pytest
from django.urls import reverse

from annotate.actions.registry import call_command
from annotate.evaluation.baseline_predictions import make_plan
from annotate.evaluation.measurement import evaluate
from annotate.evaluation.text_classifiers import majority
from annotate.models import Task
from corpora.core.languages import LANGUAGES
from tests.annotate.acts import work_through
from tests.annotate.classified_sets import classified_set
from tests.annotate.evaluation.figures import figures
from tests.annotate.programs import Program

LABELS = ("all", "bad", "dev", "good", "not", "not-bad")
NAMES = {LANGUAGES[label].name for label in LABELS if label in LANGUAGES}
KIND = """\
title = "How good is it?"
form = "choice"

[[layout]]
style = "passage"
fields = ["body"]
""" + "".join(f'\n[[answers]]\ncode = "{label}"\nname = "{label}"\n' for label in LABELS)


@pytest.fixture
def task(db, tmp_path, person):
    """A task in two languages that two people have answered. The label of a record is in its id."""
    kind, rows = tmp_path / "goodness.toml", tmp_path / "bodies.jsonl"
    kind.write_text(KIND)
    records = [
        {"id": f"{code}:{label}:{number}", "language": code, "body": f"Text {number} {label} in {code}"}
        for code in ("en", "de")
        for label in LABELS
        for number in range(5)
    ]
    rows.write_text("".join(json.dumps(row) + "\n" for row in records))
    call_command("import_corpus", "bodies", rows, fields="body", licence="CC0-1.0", source="made", verbosity=0)
    how = {"kind": str(kind), "corpus": "bodies", "languages": "en de", "seed": "1"}
    how |= {"redundancy": 2, "on_conflict": "ADJUDICATION"}
    call_command("open_task", "goodness", **how, test_items=0, gold_share=0, verbosity=0)
    task = Task.objects.get()
    for annotator in (person("ann", "en de"), person("ben", "en de")):

        def answer(lease, is_ben=annotator.user.username == "ben"):
            _, truth, number = lease.unit.item.key.split(":")
            # They differ on a few records, so that there is something to measure and decide.
            return LABELS[LABELS.index(truth) - (is_ben and number == "0")]

        work_through(annotator, task, answer)
    return task


def names_in(text):
    return sorted(name for name in NAMES if name in text)


def test_labels_that_are_also_codes_of_languages_keep_their_names(task, tmp_path):
    assert {"Allar"} <= NAMES
    out, predictions = tmp_path / "gold", tmp_path / "predicted.csv"
    call_command("export_gold", "goodness", out=out, splits="train=0,dev=0,test=1", seed="1", verbosity=0)
    card = (out / "README.md").read_text()
    assert "| all | |" in card.replace("|  |", "| |")
    assert names_in(card) == []
    rows = [json.loads(line) for line in (out / "gold.unfinished.jsonl").read_text().splitlines()]
    assert {row["label"] for row in rows} == {*LABELS}
    lines = (f"{row['id']},{LABELS[number % len(LABELS)]}\n" for number, row in enumerate(rows))
    predictions.write_text("id,label\n" + "".join(lines))
    for options in ({"out": str(tmp_path / "report")}, {"json": True}):
        printed = StringIO()
        call_command("evaluate", str(predictions), gold=[str(out)], unfinished=True, stdout=printed, **options)
        assert names_in(printed.getvalue()) == []
    for report in (tmp_path / "report").glob("report.*"):
        assert names_in(report.read_text()) == [], report
    printed = StringIO()
    call_command("agreement", "goodness", stdout=printed)
    assert names_in(printed.getvalue()) == []


def test_pages_and_programs_show_such_labels_as_they_are(task, client, manager, ada, person):
    client.force_login(manager)
    pages = [f"/manage/tasks/goodness/{page}" for page in ("", "items/", "people/", "quality/", "agreement/")]
    for address in pages:
        response = client.get(address)
        assert (address, response.status_code, names_in(response.text)) == (address, 200, [])
    client.force_login(ada.user)
    unit = task.units.filter(stage="ADJUDICATION")[0]
    for address in (reverse("adjudication", args=["goodness"]), reverse("adjudicate", args=["goodness", unit.pk])):
        response = client.get(address)
        assert (address, response.status_code, names_in(response.text)) == (address, 200, [])
    offered = Program(client, person("cem", "en")).get("tasks/goodness/").json()["answers"]
    assert [(row["label"], row["name"], row["autonym"]) for row in offered] == [(code, code, "") for code in LABELS]


def test_judgments_with_such_labels_are_imported_as_they_are(db, tmp_path):
    file, out = tmp_path / "crowd.csv", StringIO()
    file.write_text("task,worker,label\n" + "".join(f"i{n},w,{label}\n" for n, label in enumerate(LABELS)))
    call_command("import_judgments", "crowd", str(file), stdout=out)
    crowd = Task.objects.get(name="crowd")
    assert sorted(crowd.labels) == sorted(LABELS)
    assert names_in(out.getvalue()) == []


def test_baselines_learn_labels_that_look_like_negatives_of_languages(tmp_path):
    rows = [(f"i{n}", "en", "train" if n < 20 else "test", "not-bad", f"Text {n}") for n in range(30)]
    plan = make_plan(classified_set(tmp_path / "texts", rows, ("bad", "not-bad")), (), "1")
    predictions = plan.write(majority, tmp_path / "majority").read_text()
    assert predictions.count("not-bad") >= 10


@pytest.mark.slow
def test_an_imported_predictor_keeps_such_labels(task, tmp_path):
    out, predicted = tmp_path / "gold", tmp_path / "predicted.csv"
    call_command("export_gold", "goodness", out=out, splits="train=0,dev=0,test=1", seed="1", verbosity=0)
    keys = list(task.units.values_list("item__key", flat=True))
    predicted.write_text("id,label\n" + "".join(f"{key},{key.split(':')[1]}\n" for key in keys))
    call_command("import_predictions", "bodies", predicted, name="mine", version="1", verbosity=0)
    report = evaluate("mine", [out], unfinished=True)
    assert figures(report, "accuracy")["value"] == 1.0
    assert {cell[1] for cell in report["confusion"]["cells"]} == {*LABELS}
