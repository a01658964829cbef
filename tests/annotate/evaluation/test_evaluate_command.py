"""The command from end to end: a real corpus with real votes, labelled by its known truth, exported, evaluated."""

from collections import Counter
from pathlib import Path

import pytest
from django.conf import settings

from annotate.actions.registry import call_command
from annotate.core import stages
from annotate.core.estimation.proportions import jeffreys
from annotate.goldsets.exporter import export
from corpora.core.languages import ARTICLE_LABELS
from corpora.predictions.predictor_labels import count_differing, find_predictor, predicted_labels, triggers
from tests.annotate.acts import open_task, open_verification
from tests.annotate.corpus import NAME
from tests.annotate.evaluation.figures import accuracy, by_label, interval, measures_of, refusal, values
from tests.annotate.goldsets.set_contents import json_lines

PUBLISHED = Path(settings.BASE_DIR) / "fixtures" / "twitter_langid"


@pytest.fixture
def truth():
    """The labels by the guidelines: a language that is not on the list is undefined."""
    lines = (settings.BASE_DIR / "fixtures" / "demo_truth.tsv").read_text().splitlines()
    labels = dict(line.split("\t")[:2] for line in lines)
    return {key: label if label in ARTICLE_LABELS else "und" for key, label in labels.items()}


def finish(task, truth):
    """Give each unit its true label."""
    for unit in task.units.exclude(stage__in=(stages.AGREED, stages.COPIED)).select_related("item"):
        label = truth[unit.item.key]
        unit.label = label if not unit.asked or label in (unit.asked, "und") else f"not-{unit.asked}"
        unit.stage = stages.LABELLED
        unit.save()


@pytest.fixture
def stream(demo_corpus, truth, tmp_path):
    """A uniform set whose posts were all read."""
    task = open_task("stream", demo_corpus, 200, "3", audit_share=1).task
    finish(task, truth)
    export(task, tmp_path / "stream")
    return tmp_path / "stream"


@pytest.fixture
def mine(demo_corpus, truth, tmp_path):
    """Predictor mine@1 knows the truth, but takes every tenth post for German."""
    path = tmp_path / "mine.tsv"
    labels = {key: "de" if n % 10 == 0 else truth[key] for n, key in enumerate(sorted(truth))}
    path.write_text("".join(f"{key}\t{label}\n" for key, label in labels.items()))
    call_command("import_predictions", NAME, str(path), name="mine", version="1")
    return path


def test_detectors_and_imported_predictors_are_measured_on_a_stream_of_which_all_was_read(stream, mine, truth, run):
    rows = json_lines(stream / "gold.jsonl")
    assert len(rows) == 200
    for spelled in ("cld2", "langid", "fasttext", "majority", "mine@1", "mine"):
        predictor = find_predictor(NAME, spelled)
        predicted = predicted_labels(NAME, predictor, [row["id"] for row in rows])
        fold = {fine: coarse for coarse, labels in predictor.mapping.items() for fine in labels}
        pairs = [(predicted[row["id"]], row["label"]) for row in rows]
        right = sum(fold.get(label, label) == fold.get(gold, gold) for label, gold in pairs)
        report = run(spelled, "--gold", stream)
        assert report["predictor"]["spelled"] == str(predictor)
        assert report["predictor"]["voted"] is predictor.voted
        assert accuracy(report)["value"] == pytest.approx(right / 200)
        assert accuracy(report, measure="naive_accuracy")["value"] == right / 200
        assert report["warnings"] == []


def test_a_report_on_a_second_predictor_counts_its_triggers_that_nobody_has_read(
    demo_corpus, stream, mine, truth, run, tmp_path
):
    mine, cld2 = (find_predictor(NAME, spelled) for spelled in ("mine@1", "cld2"))
    task = open_verification("german", demo_corpus, "precision", ["de"], size=20, seed="4", options={"predictor": cld2})
    finish(task.task, truth)
    export(task.task, tmp_path / "german")
    report = run("mine@1", "--gold", tmp_path / "german")
    rows = json_lines(tmp_path / "german" / "gold.jsonl")
    shown = Counter(predicted_labels(NAME, mine, [row["id"] for row in rows]).values())["de"]
    total = triggers(NAME, mine)["de"]
    [unseen] = by_label(report, "posts_never_shown").values()
    assert (unseen["units"], unseen["value"]) == (total, total - shown)
    assert values(report, "outside") == {"de": count_differing(NAME, mine, cld2)["de"]}
    assert values(report, "outside")["de"] > 0


@pytest.mark.slow
def test_a_file_is_measured_without_any_corpus_and_a_predictor_after_its_corpus_has_grown(stream, mine, run, tmp_path):
    before = {spelled: run(spelled, "--gold", stream) for spelled in ("mine@1", "cld2")}
    more = tmp_path / "more.jsonl"
    more.write_text('{"id": "later", "text": "Noch ein Satz, der dazugekommen ist."}\n')
    call_command("import_corpus", NAME, str(more), licence="CC-BY-4.0", text_may_leave=True)
    assert {spelled: run(spelled, "--gold", stream) for spelled in before} == before
    report = run(mine, "--gold", stream)
    assert report["predictor"]["spelled"] == "mine.tsv"
    assert report["rows"] == before["mine@1"]["rows"]
    twin = run("mine@1", "--gold", stream, "--against", mine)["comparison"]
    apart = accuracy(twin)
    assert twin["other"]["spelled"] == "mine.tsv"
    assert apart["low"] <= 0 == apart["value"] <= apart["high"]
    assert apart["better"] is None
    for one, other in (("mine@1", "mine"), ("cld2", "cld2"), (mine, mine)):
        itself = "cannot be compared with itself. Specify other predictions with --against"
        assert itself in refusal(one, "--gold", stream, "--against", other)
    # A file whose name does not show the format is read in the specified format.
    nameless = mine.rename(tmp_path / "mine")
    assert "does not show the format. Add --format jsonl|csv|tsv" in refusal(nameless, "--gold", stream)
    assert run(nameless, "--file-format", "tsv", "--gold", stream)["rows"] == report["rows"]
    other = "The gold sets are from corpus demo, not other. Remove or correct --corpus"
    assert other in refusal("cld2", "--gold", stream, "--corpus", "other")


@pytest.fixture
def published(tmp_path, capsys):
    folders = {}
    for design, name in (("uniform", "uniformly_sampled"), ("precision", "precision_oriented")):
        folders[design] = tmp_path / "published" / design
        call_command("import_gold", str(PUBLISHED / f"{name}.tsv"), out=folders[design], design=design, name=design)
    return folders


def predictions(path, folders, label_of):
    rows = {row["id"]: row for folder in folders for row in json_lines(folder / "gold.jsonl")}
    path.write_text("".join(f"{key}\t{label_of(row)}\n" for key, row in rows.items()))
    return path


@pytest.mark.slow
def test_a_file_of_predictions_is_measured_on_published_sets(published, run, tmp_path):
    path = predictions(tmp_path / "english.tsv", published.values(), lambda row: "en")
    report = run(path, "--gold", published["uniform"], "--gold", published["precision"])
    rows = json_lines(published["uniform"] / "gold.jsonl")
    english = sum(row["label"] == "en" for row in rows)
    assert interval(accuracy(report)) == jeffreys(english, len(rows))
    precise = json_lines(published["precision"] / "gold.jsonl")
    estimate = by_label(report, "precision")["en"]
    drawn = [row for row in precise if row["label"] in ("en", "not-en", "und")]
    ids = {row["id"] for row in drawn}
    also = [row for row in rows if row["id"] not in ids]
    hits = sum(row["label"] == "en" for row in drawn + also)
    assert estimate["count"] == len(drawn) + len(also)
    assert estimate["value"] == pytest.approx(hits / estimate["count"])
    assert "never_shown" not in measures_of(report)  # who read what of a published stream is not known
    warnings = " ".join(report["warnings"])
    assert "does not show which labels are from detectors" in warnings
    assert "drawn by a predictor that the set does not name, not by english.tsv" in warnings
    # und and not-und of a precision set measure those who say und.
    path = predictions(tmp_path / "und.tsv", published.values(), lambda row: "und")
    row = by_label(run(path, "--gold", published["precision"]), "precision")["und"]
    labels = Counter(row["label"] for row in precise)
    assert labels["not-und"] > 0
    assert (row["count"], row["value"]) == (labels["und"] + labels["not-und"], labels["und"] / row["count"])


def as_published(label):
    language, _, script = label.partition("-")
    return f"{language}_{script.upper()}" if script else label


def test_a_file_may_have_labels_of_the_gold_sets_that_are_no_known_languages(published, run, tmp_path):
    strange = {"ar-Latn", "dv-Latn"}
    assert strange <= {row["label"] for row in json_lines(published["uniform"] / "gold.jsonl")}
    for spelled in (str, as_published):
        path = predictions(
            tmp_path / "all.tsv",
            [published["uniform"]],
            lambda row, spelled=spelled: spelled(row["label"]) if row["label"] in strange else row["label"],
        )
        assert accuracy(run(path, "--gold", published["uniform"]))["value"] == 1
    path.write_text(path.read_text().replace("\ten\n", "\tqq-Latn\n"))
    unknown = refusal(path, "--gold", published["uniform"])
    assert "The label 'qq-Latn' is not a known language code" in unknown
