"""Any system on a set of one label a unit: imported judgments, a kind of one's own, records, grades."""

import hashlib
import json
import math
import random
import re

import numpy as np
import pandas as pd
import pytest

import assay
from annotate.actions.registry import call_command
from annotate.core.estimation.proportions import jeffreys
from annotate.core.measures.classification import Paired
from annotate.core.measures.figure_rows import share_at_every_look
from annotate.goldsets.set_folder import manifest_of
from annotate.kinds.forms.choice import GradeMeasures as Measures
from tests.annotate.evaluation.figures import figures, interval, refusal, rows_of, written


def judged(gold, wrong=0.2, seed=1):
    """(id, label) of a judge that errs at random."""
    chance = random.Random(seed)
    return [
        (row["id"], row["label"] if chance.random() > wrong else str(1 - int(row["label"]))) for row in rows_of(gold)
    ]


@pytest.fixture
def truth(crowd):
    return {row["id"]: row for row in rows_of(crowd)}


def test_a_judge_on_imported_judgments_has_the_figures_that_are_counted_by_hand(crowd, truth, tmp_path, run):
    predicted = dict(judged(crowd))
    report = run(written(tmp_path / "judge.tsv", predicted.items()), "--gold", crowd)
    right = sum(truth[key]["label"] == label for key, label in predicted.items())
    figure = figures(report, "accuracy")
    assert (figure["value"], *interval(figure)) == (right / len(predicted), *jeffreys(right, len(predicted)))
    assert (figure["units"], figure["note"]) == (len(predicted), "")
    assert report["warnings"] == [
        "5 of 390 items of zc have no label (no majority 5). These items are harder than the others, and no "
        "figure in this report covers them."
    ]
    ones = [key for key, row in truth.items() if row["label"] == "1"]
    called = [key for key in truth if predicted[key] == "1"]
    hits = sum(predicted[key] == "1" for key in ones)
    assert figures(report, "recall", label="1")["value"] == hits / len(ones)
    assert figures(report, "precision", label="1")["value"] == hits / len(called)
    assert figures(report, "f1", label="1")["value"] == pytest.approx(2 * hits / (len(ones) + len(called)))
    assert {tuple(cell[:2]): cell[2] for cell in report["confusion"]["cells"]}["1", "1"] == hits
    # Where all people agree is a slice, and an error has the answers of people.
    alike = [key for key, row in truth.items() if max(answer["votes"] for answer in row["soft_labels"]) == 1]
    figure = figures(report, "accuracy", people="all agree")
    assert figure["units"] == len(alike)
    assert figure["value"] == sum(predicted[key] == truth[key]["label"] for key in alike) / len(alike)
    assert len(report["errors"]) == len(predicted) - right
    for error in report["errors"]:
        votes = {answer["label"]: answer["votes"] for answer in truth[error["id"]]["soft_labels"] if answer["votes"]}
        assert error["people"] == votes


def test_scores_are_measured_where_they_are_given(crowd, tmp_path, run):
    chance = random.Random(4)
    sure = {key: chance.betavariate(5, 2) for key, _ in judged(crowd)}
    scored = [
        (key, *((p, 1 - p) if label == "0" else (1 - p, p)))
        for (key, label), p in zip(judged(crowd), sure.values(), strict=True)
    ]
    report = run(written(tmp_path / "judge.csv", [("id", "0", "1"), *scored]), "--gold", crowd)
    truth = {row["id"]: int(row["label"]) for row in rows_of(crowd)}
    by_hand = -sum(math.log(row[1 + truth[row[0]]]) for row in scored) / len(scored)
    assert figures(report, "log_loss")["value"] == pytest.approx(by_hand)
    assert sum(row["units"] for row in report["reliability"]) == len(scored)
    assert figures(report, "accuracy_there", coverage="100%")["value"] == pytest.approx(
        figures(report, "accuracy")["value"]
    )
    assert figures(report, "manhattan")["units"] == len(scored)
    for row in report["rows"]:
        if row["measure"] == "threshold" and row["value"] is None:
            assert row["note"]


def test_a_notebook_has_the_errors_and_confusions_of_a_report_and_refuses_what_the_command_refuses(
    crowd, tmp_path, run
):
    predicted = dict(judged(crowd))
    by_command = run(written(tmp_path / "judge.tsv", predicted.items()), "--gold", crowd)
    report = assay.report(predicted, [assay.gold(crowd)])
    assert [*report.to_pandas("errors").id] == [error["id"] for error in by_command["errors"]]
    assert report.to_pandas("confusion").units.sum() == len(predicted)
    with pytest.raises(
        assay.AssayError, match=r"The report has no table 'comparison'. Its tables are: rows, errors, confusion"
    ):
        report.to_pandas("comparison")
    with pytest.raises(assay.AssayError, match="The argument 'gold' is empty"):
        assay.evaluate(predicted)
    # A judge has labels for the units alone, and is refused for that.
    with pytest.raises(assay.AssayError, match="To measure only these items, specify the file without judge"):
        assay.evaluate(judge=predicted, gold=crowd)
    with pytest.raises(assay.AssayError, match=r"has the column 'label' twice. Remove one of them"):
        assay.evaluate(pd.DataFrame([["1", "0", "1"]], columns=["id", "label", "label"]), crowd)


def test_errors_are_shown_pair_by_pair_without_a_script(crowd, tmp_path, new_page):
    out = tmp_path / "report"
    call_command("evaluate", str(written(tmp_path / "judge.tsv", judged(crowd))), gold=[crowd], out=out, verbosity=0)
    page = new_page()
    page.goto((out / "report.html").as_uri())
    rows = page.locator("#errors tbody tr:visible")
    all_rows = rows.count()
    page.click("#errors label:has-text('1 predicted as 0')")
    assert 0 < rows.count() < all_rows
    assert set(page.locator("#errors tbody tr:visible td:nth-child(2)").all_inner_texts()) == {"1"}


def refusing(gold, every):
    """(id, label) of a system that is right, and gives no label to one unit in `every`."""
    return [(row["id"], "" if place % every == 0 else row["label"]) for place, row in enumerate(rows_of(gold))]


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_an_empty_label_is_a_refusal_and_counts_as_a_wrong_answer(crowd, tmp_path, run, suffix):
    predictions = refusing(crowd, 10)
    number, refused = len(predictions), sum(not label for _, label in predictions)
    path = tmp_path / f"mine.{suffix}"
    if suffix == "jsonl":
        path.write_text("".join(json.dumps({"id": key, "label": label or None}) + "\n" for key, label in predictions))
    else:
        written(path, [("id", "label"), *predictions])
    report = run(path, "--gold", crowd)
    assert figures(report, "accuracy")["value"] == pytest.approx(1 - refused / number)
    figure = figures(report, "refused")
    assert (figure["value"], figure["note"]) == (pytest.approx(refused / number), f"{refused} of {number}")
    message = f"mine.{suffix}: {refused} of {number} items have no label (a refusal), which counts as a wrong answer."
    assert message in report["told"]
    ones = [row for row in rows_of(crowd) if row["label"] == "1"]
    answered = sum(dict(predictions)[row["id"]] == "1" for row in ones)
    assert figures(report, "recall", label="1")["value"] == pytest.approx(answered / len(ones))
    assert figures(report, "precision", label="1")["value"] == 1
    # Nor is a refusal a label of which a macro mean is taken.
    by_label = [figures(report, "f1", label=label)["value"] for label in "01"]
    assert figures(report, "macro_f1")["value"] == pytest.approx(sum(by_label) / 2)
    assert not [row for row in report["rows"] if "refused" in str(row["of"])]
    assert report["confusion"]["labels"][-1] == "(refused)"
    cells = {tuple(cell[:2]): cell[2] for cell in report["confusion"]["cells"]}
    assert cells["1", "(refused)"] == len(ones) - answered
    assert {error["predicted"] for error in report["errors"]} == {"(refused)"}
    assert len(report["errors"]) == report["error_count"] == refused


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_row_without_any_score_is_a_refusal(crowd, tmp_path, run, suffix):
    rows = [(key, *(scores(label, 0.8) if label else ("", ""))) for key, label in refusing(crowd, 10)]
    path = tmp_path / f"mine.{suffix}"
    if suffix == "jsonl":
        path.write_text("".join(f'{{"id": "{key}", "0": {a or "NaN"}, "1": {b or "null"}}}\n' for key, a, b in rows))
    else:
        written(path, [("id", "0", "1"), *rows])
    report = run(path, "--gold", crowd)
    labels = run(written(tmp_path / "labels.csv", [("id", "label"), *refusing(crowd, 10)]), "--gold", crowd)
    assert [row for row in report["rows"] if row["measure"] == "accuracy"] == [
        row for row in labels["rows"] if row["measure"] == "accuracy"
    ]
    refused = sum(not label for _, label in refusing(crowd, 10))
    lost = refused * math.log(2) - (len(rows) - refused) * math.log(0.8)
    assert figures(report, "log_loss")["value"] == pytest.approx(lost / len(rows))
    assert not [note for note in report["told"] if "several labels" in note]


def test_a_refused_grade_counts_as_the_farthest_one(reviews, tmp_path, run):
    gold = reviews(60, lambda name, key: "321"[int(key[1:]) % 3])
    rows = {row["id"]: row["label"] for row in rows_of(gold)}
    refused = {key: label for place, (key, label) in enumerate(sorted(rows.items())) if place % 4 == 0}
    blank = written(tmp_path / "mine.tsv", [(key, "" if key in refused else label) for key, label in rows.items()])
    farthest = {"3": "1", "2": "1", "1": "3"}
    far = written(
        tmp_path / "far.tsv", [(key, farthest[label] if key in refused else label) for key, label in rows.items()]
    )
    report, other = (run(path, "--gold", gold) for path in (blank, far))
    off = sum(abs(int(label) - int(farthest[label])) for label in refused.values())
    assert figures(report, "mae")["value"] == pytest.approx(off / len(rows))
    for measure in ("mae", "weighted_kappa"):
        mine, theirs = (figures(evaluation, measure)["value"] for evaluation in (report, other))
        assert mine == pytest.approx(theirs)
    assert figures(report, "kappa")["value"] > figures(other, "kappa")["value"]
    compared = run(blank, "--gold", gold, "--against", far)["comparison"]["rows"]
    apart = {row["measure"]: row["value"] for row in compared if not row["of"]}
    assert (apart["accuracy"], apart["weighted_kappa"]) == (0, 0)
    near = run(written(tmp_path / "near.tsv", rows.items()), "--gold", gold, "--against", far)["comparison"]
    row = figures(near, "mae")
    assert (row["value"], row["better"]) == (pytest.approx(-figures(other, "mae")["value"]), "first")
    # A predictor that names no class refuses too.
    path = written(tmp_path / "und.tsv", [(key, "und" if key in refused else label) for key, label in rows.items()])
    call_command("import_predictions", "reviews", path, name="mine", version="1", verbosity=0)
    imported = run("mine@1", "--gold", gold)
    assert (imported["rows"], figures(imported, "refused")["note"]) == (report["rows"], f"{len(refused)} of 60")
    assert any(note.startswith(f"mine@1: {len(refused)} of 60 items have no label") for note in imported["told"])


def test_two_systems_are_compared_by_label_and_in_their_scores(crowd, tmp_path, run):
    good, poor = judged(crowd, 0.1), judged(crowd, 0.3)
    sides = [
        written(tmp_path / f"{name}.csv", [("id", "0", "1"), *((key, *scores(label, sure)) for key, label in labels)])
        for name, labels, sure in (("a", good, 0.9), ("b", poor, 0.7))
    ]
    report = run(sides[0], "--gold", crowd, "--against", sides[1])
    comparison, other = report["comparison"], run(sides[1], "--gold", crowd)
    for measure in ("precision", "recall", "f1"):
        for label in "01":
            row = figures(comparison, measure, label=label)
            values = [figures(evaluation, measure, label=label)["value"] for evaluation in (report, other)]
            assert row["value"] == pytest.approx(values[0] - values[1])
            assert row["low"] < row["value"] < row["high"]
            assert (row["p"] is None) == (measure != "f1")
    for measure in ("log_loss", "brier"):
        row = figures(comparison, measure)
        values = [figures(evaluation, measure)["value"] for evaluation in (report, other)]
        assert row["value"] == pytest.approx(values[0] - values[1])
        [beside] = [row for row in comparison["other_rows"] if row["measure"] == measure]
        assert beside["value"] == values[1]
        # The smaller loss is the better one.
        assert (row["better"], row["value"] < 0) == ("first", True)
    assert {row["of"].get("people") for row in comparison["rows"]} >= {"all agree", "most agree"}


def scores(label, sure):
    return (sure, 1 - sure) if label == "0" else (1 - sure, sure)


def test_differences_of_coefficients_and_losses_have_a_sign_and_no_percent(crowd, tmp_path, capsys):
    good, poor = (written(tmp_path / f"{name}.tsv", judged(crowd, wrong)) for name, wrong in (("a", 0.1), ("b", 0.3)))
    call_command("evaluate", str(poor), gold=[crowd], against=str(good))
    line = next(line for line in capsys.readouterr().out.split("compared\n")[1].splitlines() if line.startswith("MCC"))
    assert re.search(r"−0\.\d{3} \[−0\.\d{3}, −0\.\d{3}\]", line)


def test_every_figure_that_is_withheld_has_its_reason(crowd, tmp_path, run):
    predictions = judged(crowd)
    always = written(tmp_path / "always.csv", [("id", "0", "1"), *((key, 0.9, 0.1) for key, _ in predictions)])
    scored = [(key, *scores(label, 0.8)) for key, label in predictions]
    report = run(written(tmp_path / "judge.csv", [("id", "0", "1"), *scored]), "--gold", crowd, "--against", always)
    alone = run(always, "--gold", crowd)
    exact = {"recall_there", "coverage_there", "least_score", "accuracy_there", "threshold"}
    for row in [*report["rows"], *report["comparison"]["rows"], *alone["rows"]]:
        if row["value"] is None or (row["low"] is None and row["measure"] not in exact):
            assert row["note"], row
    assert figures(report["comparison"], "precision", label="1")["note"] == "never predicted by one of the two"


def test_where_too_few_groups_were_drawn_that_is_the_reason():
    random_labels = np.random.default_rng(1)
    gold, first, second = random_labels.integers(0, 3, (3, 60))
    groups = np.arange(60) // 5
    sides = [Measures(Paired(gold, predicted, 4, np.ones(60), groups), "321") for predicted in (first, second)]
    compared = [row for row in sides[0].compared(sides[1], ()) if row["note"] != "fewer than 20 items"]
    withheld = [row for row in sides[0].rows() if row["low"] is None and row["measure"] != "ndcg"]
    assert {row["measure"] for row in withheld} == {"kappa", "mcc", "mae", "weighted_kappa"}
    assert {row["note"] for row in [*compared, *withheld]} == {"fewer than 20 groups of items"}


def test_an_effective_count_stands_beside_accuracy_and_is_at_most_the_units():
    gold = np.tile([0, 1], 40)
    wrong = np.arange(80) % 4 == 0
    wrong[0] = False  # all groups but one have one error, so they vary less than units
    pairs = Paired(gold, np.where(wrong, 1 - gold, gold), 3, np.ones(80), np.arange(80) // 4)
    assert pairs.share(pairs.right, pairs.gold >= 0).count > 80
    rows = Measures(pairs, "10").sliced({}, pairs.gold >= 0)
    assert [row["count"] for row in rows] == [80, None]


def test_a_report_is_written_with_its_errors_digests_and_dots_in_the_order_of_the_tables(crowd, tmp_path, capsys):
    out, wrong = tmp_path / "report", [(row["id"], str(1 - int(row["label"]))) for row in rows_of(crowd)]
    predicted = [(row["id"], "1" if place < 30 else "0") for place, row in enumerate(rows_of(crowd))]
    one, two = (written(tmp_path / f"{name}.tsv", rows) for name, rows in (("a", predicted), ("b", wrong)))
    call_command("evaluate", str(one), gold=[crowd], against=str(two))
    assert "errors.jsonl" not in capsys.readouterr().out
    call_command("evaluate", str(one), gold=[crowd], against=str(two), out=out, verbosity=0)
    assert "The file errors.jsonl lists all errors." in (out / "report.md").read_text()
    errors = [json.loads(line) for line in (out / "errors.jsonl").read_text().splitlines()]
    assert errors
    assert all(error["gold"] != error["predicted"] for error in errors)
    assert json.loads((out / "report.json").read_text())["rows"]
    assert r"accuracy & " in (out / "report.tex").read_text()
    assert json.loads((out / "manifest.json").read_text())["evaluated"] == {
        "name": "a.tsv",
        "predictions": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (one, two)},
        "gold": [{"name": "zc", "folder_name": "goldzc", "digest": manifest_of(crowd)["digest"]}],
    }
    page = (out / "report.html").read_text()
    assert "Confusion matrix" in page

    def dots(title, names):
        plot = next(plot for plot in page.split('role="img"') if f"<title>{title}" in plot).split("</section>")[0]
        return re.findall(rf"<text[^>]*>({names})</text>", plot)

    whole = ["accuracy", "macro precision", "macro recall", "macro F1"]
    # Measures of the headline are not plotted twice.
    assert [*map(str.lower, dots("Main figures", "Accuracy|Macro F1"))] == ["accuracy", "macro f1"]
    assert dots("Main measures", "|".join(whole)) == ["macro precision", "macro recall"]
    assert dots("Precision by label", "[01]") == ["0", "1"]
    assert dots("Accuracy by agreement", "all agree|most agree") == ["all agree", "most agree"]


def test_intervals_that_hold_at_every_look_are_wider_and_name_winners_themselves(crowd, tmp_path, run):
    good, poor = (written(tmp_path / f"{name}.tsv", judged(crowd, wrong)) for name, wrong in (("a", 0.003), ("b", 0.3)))
    once, always = (run(good, "--gold", crowd, "--against", poor, *how) for how in ((), ("--sequential",)))
    for one, other in zip(once["rows"], always["rows"], strict=True):
        assert (one["measure"], one["value"], one["units"]) == (other["measure"], other["value"], other["units"])
        if one["low"] is not None:
            assert other["low"] <= one["low"] <= one["high"] <= other["high"]
    figure = figures(always, "accuracy")
    hits = round(figure["value"] * figure["units"])
    assert interval(figure) == pytest.approx(share_at_every_look(hits, figure["units"]))
    # They end where the measure does.
    assert figures(always, "kappa")["high"] == figures(always, "mcc")["high"] == 1
    whole = always["comparison"]["rows"][0]
    assert (whole["better"], whole["p"]) == ("first", None)
    assert "are valid at every look" in always["reading"][-1]
    assert "for one look" in once["reading"][-1]


@pytest.fixture
def half_read(reviews, tmp_path):
    """half_read(en=30, de=6): 60 records, half of them in German, and labels that are right in English alone."""

    def make(**read):
        gold = reviews(120, lambda name, key: "123"[int(key[1:]) % 3], size=30, read=read)
        labels = [(f"r{n}", "123"[(n + (n % 2 == 0)) % 3]) for n in range(120)]
        return gold, written(tmp_path / "mine.tsv", labels)

    return make


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("how", [(), ("--sequential",)])
def test_a_language_that_is_read_faster_does_not_count_for_more(half_read, run, how):
    gold, predictions = half_read(en=30, de=6)
    report = run(predictions, "--gold", gold, "--unfinished", *how)
    assert figures(report, "accuracy")["value"] == pytest.approx(0.5)
    assert figures(report, "accuracy", language="de")["value"] == 0
    assert any(warning.startswith("In each language, and each part") for warning in report["warnings"])
    assert not any("These items are harder than the others" in warning for warning in report["warnings"])


@pytest.mark.django_db(transaction=True)
def test_no_interval_holds_at_every_look_before_each_language_is_begun(half_read, run):
    gold, predictions = half_read(en=30, de=4)
    message = refusal(predictions, "--gold", gold, "--unfinished", "--sequential")
    assert "at least 5 labelled items in each language" in message
    report = run(predictions, "--gold", gold, "--unfinished")
    assert any("Fewer than 5 items in de" in warning for warning in report["warnings"])


IGNORED = {
    "corpus of a file": (("--corpus", "nosuch"), "--corpus applies only to an imported predictor or a machine judge"),
    **{
        f"{name} that is not there": (("--column", f"{name}=nope"), "has no column 'nope', which is named in --column")
        for name in ("label", "id", "score")
    },
    "first of ranked labels": (("--first", "3"), "only with ranked labels of documents"),
    "epsilon without a judge": (("--epsilon", "0.1"), "--epsilon applies only to a machine judge"),
    "a map of posts' labels": (("--map", "a=b"), "only with sets of posts"),
    "posts that vanished": (("--vanished", "x"), "only with sets of posts"),
}


@pytest.mark.parametrize("option", IGNORED)
def test_an_option_that_would_have_no_effect_is_refused(crowd, tmp_path, option):
    options, sentence = IGNORED[option]
    assert sentence in refusal(written(tmp_path / "judge.tsv", judged(crowd)), "--gold", crowd, *options)


def test_options_that_do_not_go_together_are_refused(crowd, stream, tmp_path):
    for option in (("--column", "label=x"), ("--file-format", "csv")):
        assert "can be used only with a file of predictions" in refusal("judge@1", "--gold", crowd, *option)
    judge = written(tmp_path / "judge.tsv", judged(crowd))
    looks = refusal("--judge", judge, "--gold", crowd, "--sequential")
    assert looks.startswith("--sequential cannot be used with --judge")
    looks = refusal("cld2", "--gold", stream, "--unfinished", "--sequential")
    assert "--sequential requires a finished set of posts" in looks
