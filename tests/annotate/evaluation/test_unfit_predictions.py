"""Predictions and sets that do not fit: one sentence for each fault, and no report."""

import json

import pytest

from annotate.goldsets.set_folder import write_manifest
from corpora.storage.layout import digest_of
from tests.annotate.evaluation.figures import refusal, rows_of, written


def record_set(folder, labels, chances=(1.0,), *, finished=True, names=("yes", "no")):
    """A set of records: labels: of each in turn; chances: likewise, in a circle."""
    folder.mkdir()
    name = "gold.jsonl" if finished else "gold.unfinished.jsonl"
    rows = [
        {"id": f"u{n}", "label": label, "chance": chances[n % len(chances)], "split": "test"}
        for n, label in enumerate(labels)
    ]
    (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    task = {"name": folder.name, "form": "choice", "together": "", "labels": list(names)}
    manifest = {"format": 2, "design": "records", "finished": finished, "task": task, "published": None}
    write_manifest(folder, manifest | {"counts": {"labelled": len(rows)}, "files": {name: digest_of(folder / name)}})
    return folder


@pytest.fixture
def records(tmp_path):
    gold = record_set(tmp_path / "gold", ["yes", "no"] * 15)
    return gold, [(row["id"], row["label"]) for row in rows_of(gold)]


def scored(rows, *columns, shares):
    """A table with these columns of scores; the first row is u0."""
    return [("id", *columns), *((key, *shares) for key, _ in rows)]


# Fault -> what is made of right rows, and the sentence.
UNFIT = {
    "none of the units": (lambda rows: [("x", "yes")], "its first id is x, but the first id of the set is u0."),
    "some of the units": (lambda rows: rows[2:], "has no prediction for 2 of the 30 units of the set: u0"),
    "a unit twice": (lambda rows: [*rows, rows[0]], "repeats 1 id: "),
    "a near miss": (lambda rows: [("u0", "yess"), *rows[1:]], "'yess' (line 1, similar to 'yes')"),
    "NaN": (lambda rows: scored(rows, "yes", "no", shares=("nan", 1)), "the score of yes is 'nan'"),
    "no sum of one": (lambda rows: scored(rows, "yes", "no", shares=(0.5, 0.6)), "add up to 1.1, not 1"),
    "no scores of a label": (lambda rows: scored(rows, "yes", shares=(1,)), "but no column 'no'. Add"),
    "words for a refusal": (lambda rows: [("u0", "I cannot tell"), *rows[1:]], "or an empty label if the system"),
    "no label at all": (lambda rows: [(key, "") for key, _ in rows], "has an empty label for all 30 units"),
    "other columns": (lambda rows: [("id", "lable"), *rows], "check the spelling of 'lable'."),
}


@pytest.mark.parametrize("fault", UNFIT)
def test_predictions_that_do_not_fit_are_refused_in_one_sentence(records, tmp_path, fault):
    gold, rows = records
    made, sentence = UNFIT[fault]
    path = written(tmp_path / "judge.tsv", made(rows))
    told = refusal(path, "--gold", gold, "--out", tmp_path / "out")
    assert sentence in told
    assert str(path) in told
    assert len(told.split(". ")) <= 2
    assert not (tmp_path / "out").exists()


def test_a_set_on_which_nothing_can_be_measured_is_refused(tmp_path):
    right = written(tmp_path / "right.tsv", [(f"u{n}", "yes") for n in range(4)])
    for folder, sentence in (
        (
            record_set(tmp_path / "half", ["yes", "no"] * 2, finished=False),
            "is unfinished: some records have no label yet",
        ),
        (record_set(tmp_path / "one", ["yes"] * 4), "All 4 units of the gold set one in"),
        (record_set(tmp_path / "none", []), "has no labelled units"),
        (record_set(tmp_path / "two", ["yes", "no"] * 2, chances=(1.0, 2.0)), "a chance of 0 or less"),
    ):
        assert sentence in refusal(right, "--gold", folder)


def test_a_set_that_is_all_of_its_corpus_says_of_what_its_intervals_are(tmp_path, run):
    said = written(tmp_path / "said.tsv", [(f"u{n}", "yes") for n in range(30)])
    whole, part = (
        run(said, "--gold", record_set(tmp_path / f"set{chance}", ["yes", "no"] * 15, chances=(chance,)))["told"]
        for chance in (1.0, 0.5)
    )
    assert whole == ["The set contains every item of the corpus; intervals apply to other items like these."]
    assert part == []


def test_predictions_for_another_version_of_the_set_are_refused_on_either_side(records, tmp_path):
    gold, rows = records
    mine, older = (written(tmp_path / f"{name}.tsv", part) for name, part in (("mine", rows), ("older", rows[3:])))
    for told in (refusal(mine, "--gold", gold, "--against", older), refusal(older, "--gold", gold, "--against", mine)):
        assert told.startswith(f"{older} has no prediction for 3 of the 30 units of the set")
        assert told.endswith("or predict this version of the set.")


def test_labels_may_be_called_like_the_columns_of_a_table(tmp_path, run):
    gold = record_set(tmp_path / "gold", ["id", "label"] * 15, names=("id", "label"))
    keys = [row["id"] for row in rows_of(gold)]
    plain = written(tmp_path / "plain.tsv", [("id", "label"), *((key, "id") for key in keys)])
    assert run(plain, "--gold", gold)["rows"][0]["value"] == 0.5
    table = [("id", "id", "label"), *((key, 0.8, 0.2) for key in keys)]
    told = refusal(written(tmp_path / "scored.tsv", table), "--gold", gold)
    assert "contains the ids, but the set has a label with the same name. Rename the column" in told
    unit = written(tmp_path / "unit.tsv", [("unit", "id", "label"), *table[1:]])
    assert run(unit, "--gold", gold, "--column", "id=unit")["rows"][0]["value"] == 0.5
    other = record_set(tmp_path / "other", ["label", "other"] * 15, names=("label", "other"))
    scores = written(tmp_path / "scores.tsv", [("id", "label", "other"), *((key, 0.8, 0.2) for key in keys)])
    report = run(scores, "--gold", other)
    assert report["rows"][0]["value"] == 0.5
    assert any(row["measure"] == "log_loss" for row in report["rows"])
