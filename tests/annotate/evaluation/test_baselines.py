"""Baselines of gold sets: from a set to predictions, figures and a table on its card."""

import json
from collections import Counter

import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.goldsets.formats import xglue
from annotate.goldsets.set_folder import find_changes, manifest_of, write_manifest
from corpora.storage.layout import digest_of
from tests.annotate.classified_sets import CARD, classified_set
from tests.annotate.evaluation.figures import figures
from tests.annotate.labelled_sets import labelled_set
from tests.annotate.reply_sets import reply_set, responses_file

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


def sign(folder, **sections):
    """Write the manifest of a set again, after its files or sections were changed."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "manifest.json"]
    digests = {path.relative_to(folder).as_posix(): digest_of(path) for path in files}
    write_manifest(folder, {**manifest_of(folder), "files": digests, **sections})


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def head(folder):
    """Return the value of the first headline figure of each baseline."""
    systems = json.loads((folder / "baselines/baselines.json").read_text())["systems"]
    return {system["name"]: system["head"][0]["value"] for system in systems if system["head"]}


def test_a_set_gets_predictions_that_evaluate_measures_and_a_table_on_its_card(gold, run, capsys):
    measure(gold)
    output = capsys.readouterr().out
    truth = Counter(row[3] for row in rows_in(["en"]) if row[2] == "test")
    assert head(gold)["majority"] == pytest.approx(truth["a"] / 10)
    assert head(gold)["tfidf"] == 1
    report = run("--gold", gold, gold / "baselines/majority.csv", "--split", "test")
    accuracy = figures(report, "accuracy")
    assert accuracy["value"] == truth["a"] / 10
    card = (gold / "README.md").read_text()
    assert f"| most frequent label | {100 * truth['a'] / 10:.1f}% [" in card
    assert card.index("## Files") < card.index("## Baselines") < card.index("## Origin")
    assert "Learnt from 20 items of the split train; measured on 10 of test." in output
    # The set is still whole, and its manifest has the figures of the card.
    manifest = manifest_of(gold)
    assert find_changes(gold, manifest["files"]) == ([], [])
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


def test_without_scikit_learn_the_line_that_installs_it_is_shown(gold, monkeypatch):
    monkeypatch.setattr("annotate.evaluation.text_classifiers.find_spec", lambda name: None)
    with pytest.raises(
        Exception, match="Measuring baselines requires Assay's extra baselines: pip install scikit-learn"
    ):
        measure(gold)
    assert "baselines" not in manifest_of(gold)


def test_documents_with_several_labels_get_ranked_labels(tmp_path, run):
    labels = {"x": ["a"], "y": ["a", "b"], "z": ["b"]}
    splits = {split: {f"{split}{n}": labels["xyz"[n % 3]] for n in range(12)} for split in ("train", "test")}
    gold = labelled_set(tmp_path / "acts", splits, {"a": [], "b": [], "never": []})
    words = {("a",): "goal match", ("a", "b"): "goal vote", ("b",): "vote law"}
    rows = [json.loads(line) for line in (gold / "gold.jsonl").read_text().splitlines()]
    lines = [json.dumps({**row, "body": words[tuple(row["concepts"])]}) + "\n" for row in rows]
    (gold / "gold.jsonl").write_text("".join(lines))
    (gold / "README.md").write_text(CARD)
    sign(gold)
    measure(gold)
    # A document of the training split has the label a as often as b, so a, the first in the alphabet, is ranked first.
    majority, tfidf = (gold / f"baselines/{name}.csv" for name in ("majority", "tfidf"))
    assert majority.read_text().splitlines()[1:3] == ["test0,a,0.666667", "test0,b,0.666667"]
    report = run("--gold", gold, tfidf)
    assert figures(report, "RP", labels="all", k="1")["value"] == 1
    assert "RP@K (K 5)" in (gold / "README.md").read_text()


def test_replies_are_the_most_frequent_and_those_to_the_nearest_message(tmp_path, run):
    learnt = [("how are you", "fine"), ("are you well", "fine"), ("where is it", "here"), ("what time is it", "noon")]
    pairs = [("how are you today", "fine"), ("where is it now", "here")]
    gold = reply_set(tmp_path / "talk", {"en": pairs}, {"en": ["fine", "here", "noon"]})
    (gold / "train/en").mkdir(parents=True)
    (gold / "train/en/pairs.tsv").write_text("".join(f"{message}\t{reply}\ten\t0.99\n" for message, reply in learnt))
    (gold / "README.md").write_text(CARD)
    sign(gold, pairs={"name": "talk"})
    measure(gold)
    lines = (gold / "baselines/nearest/en_model_responses.txt").read_text().splitlines()
    assert [line.split("\t")[2] for line in lines] == ["fine", "here"]
    lines = (gold / "baselines/majority/en_model_responses.txt").read_text().splitlines()
    assert [line.split("\t")[2:] for line in lines] == [["fine", "here", "noon"]] * 2
    assert figures(run("--gold", gold, gold / "baselines/nearest"), "p1")["value"] == 1
    # The split that other sets call dev is called valid here.
    (gold / "valid/en").mkdir(parents=True)
    (gold / "valid/en/pairs.tsv").write_text("is it\tnoon\ten\t0.99\n")
    sign(gold)
    responses = responses_file(tmp_path / "mine", "en", [("is it", "noon", "here", "noon")])
    assert figures(run("--gold", gold, responses, "--split", "dev"), "mrr")["value"] == 0.5


def test_tasks_of_xglue_get_files_of_labels_and_of_texts(tmp_path, run):
    rows = [
        {
            **{"id": f"{code}{number}", "language": code, "split": split, "label": label},
            **{"question": text_of("ab"[label == "0"], number), "passage": text_of("ab"[label == "0"], number)},
        }
        for code, split, size in (("en", "train", 20), ("en", "test", 10), ("de", "test", 10))
        for number in range(size)
        for label in ["110"[number % 3]]
    ]
    cells = [(row["id"], row["language"], row["split"], row["label"], row["passage"]) for row in rows]
    published = {"format": "XGLUE", "tasks": ["qam", "qg"], "refused": ""}
    gold = classified_set(tmp_path / "pairs", cells, labels=("1", "0"))
    published["files"] = xglue.write_files(gold, "qam", rows)
    (gold / "gold.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    sign(gold, published=published)
    measure(gold)
    assert {path.name for path in (gold / "baselines/tfidf").iterdir()} == {"QAM"}
    assert {path.name for path in (gold / "baselines/nearest").iterdir()} == {"QG"}
    assert figures(run("--gold", gold, gold / "baselines/tfidf"), "accuracy", task="QAM")["value"] == 1
    # The nearest passage is the same passage, so its question is the question that was asked.
    assert figures(run("--gold", gold, gold / "baselines/nearest"), "bleu4", task="QG")["value"] == 1
    assert "| QAM → de |" in (gold / "README.md").read_text()


def test_titles_that_people_wrote_are_compared_with_those_of_the_nearest_text_and_spans_have_no_baselines(
    tmp_path, run
):
    rows = [
        {
            "id": f"{split}{n}",
            "language": "en",
            "split": split,
            "label": f"News of day {n} in the town",
            "body": f"on {n}",
        }
        for split in ("train", "test")
        for n in range(8)
    ]
    cells = [tuple(row.values()) for row in rows]
    gold = classified_set(tmp_path / "titles", cells, labels=(), form="text")
    files = xglue.write_files(gold, "ntg", rows)
    sign(gold, published={"format": "XGLUE", "tasks": ["ntg"], "files": files, "refused": ""})
    measure(gold)
    assert figures(run("--gold", gold, gold / "baselines/nearest"), "bleu4", task="NTG")["value"] == 1
    # Without files of XGLUE, the texts are a table.
    sign(gold, published=None)
    measure(gold)
    assert (gold / "baselines/nearest.csv").read_text().splitlines()[:2] == [
        "id,text",
        "test0,News of day 0 in the town",
    ]
    assert figures(run("--gold", gold, gold / "baselines/nearest.csv"), "bleu4")["value"] == 1
    marked = classified_set(tmp_path / "names", cells, labels=("PER",), form="spans")
    with pytest.raises(CommandError, match="There are no baselines for answers of the form spans"):
        measure(marked)


def test_posts_are_predicted_by_their_characters_and_a_detector_without_labels_is_named(stream, run):
    measure(stream)
    assert set(head(stream)) == {"majority", "frequency", "tfidf"}
    report = run("--gold", stream, stream / "baselines/tfidf.csv")
    assert figures(report, "accuracy", posts="with und")["units"] == 60
    assert "fastText. Not measured: " in (stream / "README.md").read_text()


def test_a_task_is_exported_first(crowd, tmp_path, run):
    with pytest.raises(CommandError, match="Set --out to the folder to which the set of the task is exported"):
        measure("zc")
    with pytest.raises(CommandError, match="There is no folder and no task named zcc"):
        measure("zcc")
