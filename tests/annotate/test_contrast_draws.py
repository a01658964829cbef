"""Records drawn to tell two systems apart: mostly those on which the two differ, with known chances."""

import json

import pytest
from django.core.management import CommandError

from annotate.actions.commands import call_command
from annotate.kinds import Answer
from annotate.models import Task
from annotate.work.judgments import judge
from annotate.work.queue import take
from corpora.predictions.predictor_labels import find_predictor, predicted_labels
from tests.annotate.evaluation.figures import KIND, rows_of, written

pytestmark = pytest.mark.django_db

NUMBER = 300


def truth(number):
    return "123"[number % 3]


def label_of(system, number):
    """The first errs on 15 records and the second on 30, five of them the same with the same label."""
    errs = number < 15 if system == "first" else 10 <= number < 40
    return "123"[(number + errs) % 3]


@pytest.fixture
def reviews(tmp_path):
    """The corpus with the predictions of two systems."""
    rows = [(f"r{n}", "en" if n % 2 else "de", f"Review {n} of it.") for n in range(NUMBER)]
    made = written(tmp_path / "reviews.csv", [("id", "language", "review"), *rows])
    call_command("import_corpus", "reviews", made, fields="review", licence="CC0-1.0", source="made", verbosity=0)
    for system in ("first", "second", "same"):
        said = [("id", "label"), *((f"r{n}", label_of(system.replace("same", "first"), n)) for n in range(NUMBER))]
        path = written(tmp_path / f"{system}.csv", said)
        call_command("import_predictions", "reviews", path, name=system, version="1", verbosity=0)
    (tmp_path / "mood.toml").write_text(KIND)
    return str(tmp_path / "mood.toml")


def open_compared(kind, *systems, name="mood", **options):
    how = {"kind": kind, "corpus": "reviews", "seed": "1", "design": "compare", "test_items": "0", "gold_share": "0"}
    call_command("open_task", name, **how | options, systems=list(systems), verbosity=0)
    return Task.objects.get(name=name)


def test_most_of_what_is_drawn_is_where_the_two_differ(reviews):
    task = open_compared(reviews, "first@1", "second@1", size="50")
    numbers = [int(unit.item.key[1:]) for unit in task.units.select_related("item")]
    differ = {n for n in range(NUMBER) if label_of("first", n) != label_of("second", n)}
    assert len(differ) == 35
    assert len(numbers) == 50
    assert set(numbers) >= differ  # all of them, since they are fewer than four in five of what was asked for
    assert {unit.item.language for unit in task.units.select_related("item")} == {"en", "de"}
    with pytest.raises(CommandError, match="say the same of all 300 records"):
        open_compared(reviews, "first@1", "same@1", size="20", name="twins")
    assert Task.objects.count() == 1


def test_the_difference_that_is_measured_is_that_of_the_whole_corpus(reviews, person, tmp_path, capsys):
    task = open_compared(reviews, "first@1", "second@1", size="50")
    ann = person("ann", "en:5 de:5")
    while lease := take(ann, task):
        judge(ann, lease.pk, Answer(truth(int(lease.unit.item.key[1:]))))
    gold = tmp_path / "gold"
    call_command("export_gold", "mood", out=gold, verbosity=0)
    assert {row["chance"] for row in rows_of(gold)} == {1.0, 15 / 265}
    assert "part_ids" not in (gold / "manifest.json").read_text()
    capsys.readouterr()
    call_command("evaluate", "first@1", gold=[gold], against="second@1", json=True)
    whole = json.loads(capsys.readouterr().out)["comparison"]["rows"][0]
    assert (whole["measure"], whole["of"]) == ("accuracy", {})
    assert whole["value"] == pytest.approx(285 / 300 - 270 / 300)
    assert whole["low"] <= whole["value"] <= whole["high"]


@pytest.mark.parametrize(("label", "meant"), [("22", r" \(near '2'\)"), ("great", "")])
def test_a_system_whose_labels_are_no_answers_of_the_task_is_refused(reviews, tmp_path, label, meant):
    said = [("id", "label"), *((f"r{n}", label if n == 7 else truth(n)) for n in range(NUMBER))]
    path = written(tmp_path / "third.csv", said)
    call_command("import_predictions", "reviews", path, name="third", version="1", verbosity=0)
    refusal = f"third@1 has labels that the task does not have: '{label}'{meant}. Its labels are 3, 2, 1; import"
    with pytest.raises(CommandError, match=refusal):
        open_compared(reviews, "first@1", "third@1", size="20")
    assert not Task.objects.exists()


def test_a_file_of_scores_is_not_imported_but_measured(reviews, tmp_path):
    path = written(tmp_path / "scores.csv", [("id", "1", "2", "3"), ("r0", 0.1, 0.2, 0.7)])
    with pytest.raises(CommandError, match="if these are scores by label, measure the file with `assay evaluate`"):
        call_command("import_predictions", "reviews", path, name="third", version="1", verbosity=0)


def test_an_empty_label_of_a_record_is_imported_as_a_refusal(reviews, tmp_path):
    said = [("id", "label"), *((f"r{n}", "" if n < 10 else truth(n)) for n in range(NUMBER))]
    path = written(tmp_path / "third.csv", said)
    call_command("import_predictions", "reviews", path, name="third", version="1", verbosity=0)
    found = predicted_labels("reviews", find_predictor("reviews", "third@1"), [f"r{n}" for n in range(NUMBER)])
    assert [key for key, label in found.items() if label == "und"] == [f"r{n}" for n in range(10)]
    assert open_compared(reviews, "first@1", "third@1", size="20").units.count() == 20
