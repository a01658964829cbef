"""Baselines of gold sets: from a set to predictions, figures and a table on its card."""

import json
from collections import Counter

import pytest

from annotate.actions.commands import call_command
from annotate.goldsets.set_folder import differing, manifest_of
from tests.annotate.classified_sets import classified_set
from tests.annotate.evaluation.figures import figures

pytestmark = pytest.mark.django_db

WORDS = {"a": "goal match player team", "b": "vote party minister law"}


def text_of(label, number):
    words = WORDS[label].split()
    return f"{words[number % 4]} and {words[number // 4 % 4]} of day {number}"


def rows_in(languages, train=20, test=10):
    """Return rows whose words show the label; two of three have the label a."""
    return [
        (f"{code}{number}", code, "train" if number < train else "test", label, text_of(label, number))
        for code in languages
        for number in range(train + test)
        for label in ["aab"[number % 3]]
    ]


@pytest.fixture
def gold(tmp_path):
    return classified_set(tmp_path / "texts", rows_in(["en"]))


def measure(*arguments):
    call_command("baseline", *map(str, arguments))


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def head(folder):
    """Return the value of the first headline figure of each baseline."""
    systems = json.loads((folder / "baselines/baselines.json").read_text())["systems"]
    return {system["name"]: system["head"][0]["value"] for system in systems if system["head"]}


def test_a_set_gets_predictions_that_evaluate_measures_and_a_table_on_its_card(gold, run, capsys):
    measure(gold)
    told = capsys.readouterr().out
    truth = Counter(row[3] for row in rows_in(["en"]) if row[2] == "test")
    assert head(gold)["majority"] == pytest.approx(truth["a"] / 10)
    assert head(gold)["tfidf"] == 1
    report = run("--gold", gold, gold / "baselines/majority.csv", "--split", "test")
    accuracy = figures(report, "accuracy")
    assert accuracy["value"] == truth["a"] / 10
    card = (gold / "README.md").read_text()
    assert f"| most frequent label | {100 * truth['a'] / 10:.1f}% [" in card
    assert card.index("## Files") < card.index("## Baselines") < card.index("## Origin")
    assert "Learnt from 20 items of the split train; measured on 10 of test." in told
    # The set is still whole, and its manifest has the figures of the card.
    manifest = manifest_of(gold)
    assert differing(gold, manifest["files"]) == ([], [])
    assert [system["name"] for system in manifest["baselines"]["systems"]] == ["majority", "frequency", "tfidf"]


def test_the_same_set_gets_the_same_bytes_again(gold, tmp_path):
    before = manifest_of(gold)["digest"]
    measure(gold, "--out", tmp_path / "copy")
    assert "baselines" not in manifest_of(gold)
    measure(gold)
    once = contents(gold)
    assert once == contents(tmp_path / "copy")
    measure(gold)
    assert contents(gold) == once
    assert manifest_of(gold)["baselines"]["measured_on"] == before


def test_a_set_without_a_train_split_is_predicted_part_by_part_and_equal_texts_are_in_one_part(tmp_path):
    rows = [(key, code, "test", label, text) for key, code, _, label, text in rows_in(["en"])]
    rows += [(f"again-{row[0]}", *row[1:]) for row in rows]
    gold = classified_set(tmp_path / "texts", rows)
    measure(gold)
    assert "Each of 5 parts of the set (60 items)" in (gold / "README.md").read_text()
    lines = (gold / "baselines/tfidf.csv").read_text().splitlines()
    assert lines[0] == "id,label,a,b"
    cells = {line.split(",")[0]: line.split(",")[1:] for line in lines[1:]}
    assert len(cells) == 60
    assert all(cells[key] == cells[f"again-{key}"] for key in cells if not key.startswith("again"))


def test_languages_with_train_splits_give_the_table_of_train_and_test_languages(tmp_path, run):
    gold = classified_set(tmp_path / "texts", rows_in(["de", "en"]))
    measure(gold)
    names = {path.name for path in (gold / "baselines/tfidf").iterdir()}
    assert names == {f"{train}-{test}.prediction" for train in ("de", "en", "joint") for test in ("de", "en")}
    report = run("--gold", gold, gold / "baselines/tfidf")
    assert figures(report, "accuracy", train="de", test="en")["value"] == 1
    assert "| de → en |" in (gold / "README.md").read_text()


def test_without_scikit_learn_the_line_that_installs_it_is_said(gold, monkeypatch):
    monkeypatch.setattr("annotate.evaluation.text_classifiers.find_spec", lambda name: None)
    with pytest.raises(
        Exception, match="Measuring baselines requires Assay's extra baselines: pip install scikit-learn"
    ):
        measure(gold)
    assert "baselines" not in manifest_of(gold)
