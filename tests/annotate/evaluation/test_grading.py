"""Predictions for exported records, from XGLUE's files to a report."""

import json
import shutil

import pytest

import assay
from annotate.core.estimation.differences import holm, mcnemar
from annotate.core.estimation.proportions import jeffreys
from annotate.core.measures.generated_texts import corpus_score
from annotate.core.measures.ranked_labels import ndcg
from annotate.goldsets.formats import xglue
from annotate.goldsets.set_folder import write_manifest
from corpora.storage.layout import digest_of
from tests.annotate.evaluation.figures import figures, in_three_forms, refusal

FORM = {"form": "choice", "together": ""}
LABELS = {"qadsm": ["Good", "Bad"], "qam": ["1", "0"], "wpr": ["4", "3", "2", "1", "0"]}
FIELDS = {name: xglue.FORMS[name].inputs for name in LABELS} | {"qam": ("question", "passage")}


@pytest.fixture
def exported(tmp_path):
    """exported("qadsm", {"en": 40, "de": 30}) writes a set with this many test rows, as export_gold does."""

    def make(kind, counts, *, finished=True, name="", refused="", **changes):
        folder = tmp_path / (name or kind)
        folder.mkdir()
        labels = LABELS[kind]
        rows = [
            {"language": language, "split": split, "label": labels[number % len(labels)]}
            | {field: f"{field} of {language} {number}" for field in FIELDS[kind]}
            | ({"query": f"query {number // 5}"} if kind == "wpr" else {})
            for language, count in counts.items()
            for split, size in (("test", count), ("dev", 2))
            for number in range(size)
        ]
        mark = "" if finished else ".unfinished"
        files = {} if refused else xglue.write_files(folder, kind, rows, mark=mark)
        lines = (json.dumps({"id": f"{number}", **row}) for number, row in enumerate(rows))
        (folder / f"gold{mark}.jsonl").write_text("".join(f"{line}\n" for line in lines))
        manifest = {
            "format": 2,
            "design": "records",
            "finished": finished,
            "task": {"name": name or kind, "type": "a_type", "labels": labels} | FORM,
            "published": {"format": "XGLUE", "tasks": xglue.names_of(kind), "files": files} | {"refused": refused},
            "counts": {"labelled": len(rows)},
            "files": {path.name: digest_of(path) for path in folder.iterdir()},
        } | changes
        write_manifest(folder, manifest)
        return folder

    return make


@pytest.fixture
def predict(tmp_path):
    """predict("QADSM", en=["Good", "Bad"]) writes files into the folder of predictions that it returns."""

    def make(task, **predictions):
        folder = tmp_path / "mine" / task
        folder.mkdir(parents=True, exist_ok=True)
        for language, lines in predictions.items():
            (folder / f"{language}.prediction").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return folder.parent

    return make


def truth_of(folder, published, language):
    return [row[0] for row in xglue.read_xglue(folder / f"xglue.{published}.{language}.test.labels", 1)]


def confirmed_questions(folder):
    """Language -> the questions that people confirmed."""
    files = {code: folder / f"xglue.qg.{code}.tgt.test" for code in ("en", "de")}
    return {code: [row[0] for row in xglue.read_xglue(path, 1)] for code, path in files.items()}


def of_languages(report, task, measure):
    return [
        row
        for row in report["rows"]
        if (row["measure"], row["of"].get("task")) == (measure, task) and "language" in row["of"]
    ]


def test_each_language_has_accuracy_with_its_interval_and_f1_and_their_mean(exported, predict, run):
    gold = exported("qadsm", {"en": 40, "de": 30})
    mine = predict("QADSM", en=["Good"] * 40, de=[*truth_of(gold, "qadsm", "de")[:-3], "Bad", "Bad", "Good"])
    report = run("--gold", gold, mine)
    assert (report["kind"], report["predictor"]["spelled"]) == ("evaluation", "mine")
    german, english = of_languages(report, "QADSM", "accuracy")
    assert (english["value"], english["low"], english["high"]) == (0.5, *jeffreys(20, 40))
    assert (german["value"], german["units"], english["units"]) == (28 / 30, 30, 40)
    average = figures(report, "accuracy", task="QADSM")
    assert average["value"] == (28 / 30 + 0.5) / 2
    widths = [row["high"] - row["low"] for row in (english, german)]
    assert average["high"] - average["low"] == pytest.approx(sum(width**2 for width in widths) ** 0.5 / 2, rel=0.05)
    assert (average["note"], report["warnings"]) == ("mean over 2 languages", [])
    # A system that gives one label alone loses in F1.
    assert figures(report, "macro_f1", task="QADSM", language="en")["value"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("name", ["zh", "zh-CN"])
def test_predictions_for_chinese_have_the_published_name_or_ours(exported, predict, run, name):
    gold = exported("wpr", {"zh-CN": 20, "de": 20})
    report = run("--gold", gold, predict("WPR", de=["1"] * 20, **{name: ["1"] * 20}))
    assert [row["of"]["language"] for row in of_languages(report, "WPR", "ndcg")] == ["de", "zh"]
    assert report["warnings"] == []


def test_ndcg_is_over_the_queries_of_the_test_file_and_ranks_pages_by_any_finite_numbers(exported, predict, run):
    gold = exported("wpr", {"en": 105, "fr": 11, "it": 10})
    numbers = ["-0.5", "1e-3", "2", "3.25", "4", "9.5", "9", "8", "-7", "-8e2"]
    mine = predict("WPR", en=["2"] * 105, fr=["0", "1", "2", "3", "4", *truth_of(gold, "wpr", "fr")[5:]], it=numbers)
    english, french, italian = of_languages(run("--gold", gold, mine), "WPR", "ndcg")
    few = "fewer than 20 items, or all items have the same value"
    assert english["value"] == pytest.approx(ndcg([4, 3, 2, 1, 0], [2] * 5))
    assert (english["units"], english["note"]) == (21, f"105 pages; {few}")
    half_turned = pytest.approx((ndcg([4, 3, 2, 1, 0], [0, 1, 2, 3, 4]) + 1) / 2)
    assert french["value"] == italian["value"] == half_turned
    assert (french["units"], french["note"]) == (2, f"11 pages; queries with one page, left out: 1; {few}")
    assert french["low"] is None


def test_pairs_are_measured_as_labels_and_their_questions_by_bleu(exported, predict, run):
    gold = exported("qam", {"en": 60})
    confirmed = [row[0] for row in xglue.read_xglue(gold / "xglue.qg.en.tgt.test", 1)]
    questions = [question if number % 2 else f"the {question}" for number, question in enumerate(confirmed)]
    mine = predict("QAM", en=truth_of(gold, "qam", "en"))
    only_labels = run("--gold", gold, mine)
    assert figures(only_labels, "accuracy", task="QAM")["value"] == 1
    assert of_languages(only_labels, "QG", "bleu4") == []
    report = run("--gold", gold, predict("QG", en=questions))
    [row] = of_languages(report, "QG", "bleu4")
    assert row["value"] == pytest.approx(corpus_score(questions, [[text] for text in confirmed], seed="").value)
    assert row["low"] < row["value"] < row["high"]
    assert (row["units"], row["note"]) == (30, "")
    assert report["words"]["qg"][1].startswith("BLEU’s signature: nrefs:1|")


def test_dev_is_measured_too_and_several_tasks_have_a_mean_of_those_to_understand_and_one_of_those_to_write(
    exported, predict, run
):
    ads, pairs = exported("qadsm", {"en": 40, "de": 30}), exported("qam", {"en": 40, "de": 30})
    mine = predict("QADSM", en=["Good"] * 2, de=["Good", "Bad"])
    report = run("--gold", ads, mine, "--split", "dev")
    assert [row["value"] for row in of_languages(report, "QADSM", "accuracy")] == [1, 0.5]
    assert figures(report, "accuracy", task="QADSM")["value"] == 0.75
    predict("QADSM", **{code: truth_of(ads, "qadsm", code) for code in ("en", "de")})
    predict("QAM", en=["1"] * 40, de=["1"] * 30)
    report = run("--gold", ads, "--gold", pairs, mine)
    mean = figures(report, "understanding")
    assert (mean["value"], mean["note"]) == ((1 + 0.5) / 2, "mean over 2 tasks")
    assert report["head"][0] == {"measure": "understanding", "of": {}}
    assert "generation" not in {row["measure"] for row in report["rows"]}


def test_runs_have_a_mean_and_the_one_that_is_best_on_dev_is_reported(exported, predict, tmp_path, run, capsys):
    gold = exported("qadsm", {"en": 40})
    truth = truth_of(gold, "qadsm", "en")
    for name, right_on_dev, right in (("one", 2, 20), ("two", 1, 40), ("three", 0, 30)):
        for place, labels, hits in (("", truth, right), ("dev", ["Good", "Bad"], right_on_dev)):
            folder = tmp_path / name / place / "QADSM"
            folder.mkdir(parents=True, exist_ok=True)
            lines = [label if n < hits else "Good" if label == "Bad" else "Bad" for n, label in enumerate(labels)]
            (folder / "en.prediction").write_text("".join(f"{line}\n" for line in lines))
    runs = [tmp_path / name for name in ("one", "two", "three")]
    report = run(*runs, "--gold", gold)
    [mean] = [row for row in report["runs"]["rows"] if row["is_head"]]
    assert (mean["values"], mean["value"]) == ([0.5, 1.0, 0.75], 0.75)
    assert mean["deviation"] == pytest.approx(0.25)
    # Student's quantile for two degrees of freedom is 4.303.
    assert mean["low"] == pytest.approx(0.75 - 4.303 * 0.25 / 3**0.5, abs=1e-4)
    assert mean["high"] == 1
    assert (report["runs"]["chosen"], report["predictor"]["spelled"]) == ("one", "one")
    assert figures(report, "accuracy", task="QADSM")["value"] == 0.5
    assert [row["dev"] for row in report["runs"]["runs"]] == [1, 0.5, 0]
    text, _, _, words = in_three_forms(tmp_path / "report", capsys, *runs, "--gold", gold)
    assert "one (best on dev)" in text
    assert all("75.0% [12.9, 100.0]" in form for form in words)
    shutil.rmtree(tmp_path / "two" / "dev")
    report = run(*runs, "--gold", gold)
    assert report["runs"]["chosen"] == ""
    assert report["warnings"][0].startswith(
        "No run was selected on dev, so the figures of single items are those of one."
    )


def test_two_systems_are_compared_row_by_row_query_by_query_and_text_by_text(exported, predict, tmp_path, run):
    pairs, pages = exported("qam", {"en": 60, "de": 40}), exported("wpr", {"en": 150})
    confirmed = confirmed_questions(pairs)
    truth = {code: truth_of(pairs, "qam", code) for code in ("en", "de")}
    predict("QAM", **truth)
    predict("WPR", en=truth_of(pages, "wpr", "en"))
    good = predict("QG", **confirmed).rename(tmp_path / "good")
    predict("QAM", **{code: [*labels[:-20], *["1"] * 20] for code, labels in truth.items()})
    predict("WPR", en=[*truth_of(pages, "wpr", "en")[:75], *["2"] * 75])
    some = {code: [f"the {text}" if n % 2 else text for n, text in enumerate(of)] for code, of in confirmed.items()}
    poor = predict("QG", **some)
    comparison = run("--gold", pairs, "--gold", pages, good, "--against", poor)["comparison"]
    rows = {(row["measure"], *row["of"].values()): row for row in comparison["rows"]}
    assert list(rows) == [
        *(("accuracy", "QAM", *language) for language in ((), ("de",), ("en",))),
        *(("bleu4", "QG", *language) for language in ((), ("de",), ("en",))),
        *(("ndcg", "WPR", *language) for language in ((), ("en",))),
    ]
    assert rows["accuracy", "QAM", "en"]["value"] == pytest.approx(10 / 60)
    assert rows["accuracy", "QAM", "en"]["p"] == mcnemar(10, 0)
    assert rows["accuracy", "QAM"]["value"] == pytest.approx((10 / 60 + 10 / 40) / 2)
    assert rows["ndcg", "WPR", "en"]["value"] == pytest.approx((1 - ndcg([4, 3, 2, 1, 0], [2] * 5)) / 2)
    tested = [row for row in comparison["rows"] if row["p"] is not None]
    assert [row["p_holm"] for row in tested] == holm([row["p"] for row in tested])
    assert {row["better"] for row in comparison["rows"]} == {"first"}
    for row in comparison["rows"]:
        assert 0 < row["low"] <= row["value"] <= row["high"]
    back = run("--gold", pairs, "--gold", pages, poor, "--against", good)["comparison"]
    assert [row["value"] for row in back["rows"]] == pytest.approx([-row["value"] for row in comparison["rows"]])


def test_an_average_difference_needs_every_language_and_a_comparison_a_task(exported, predict, tmp_path, run):
    gold = exported("qam", {"en": 60, "de": 4})
    good = predict("QAM", **{code: truth_of(gold, "qam", code) for code in ("en", "de")}).rename(tmp_path / "good")
    poor = predict("QAM", en=["1"] * 60, de=["1"] * 4)
    average, german, english = run("--gold", gold, good, "--against", poor)["comparison"]["rows"]
    assert (average["value"], average["note"]) == (None, "not measured in every language")
    assert (german["value"], german["note"], german["p"]) == (None, "fewer than 20 items", mcnemar(2, 0))
    assert english["value"] == 0.5
    shutil.rmtree(poor)
    other = predict("QG", **{code: ["what?"] * size for code, size in (("en", 30), ("de", 2))})
    assert refusal("--gold", gold, good, "--against", other).startswith("good and mine have no task in common")


NO_RANKS = [{"en": ["3", value]} for value in ("nan", "inf", "Perfect", "")]


@pytest.mark.parametrize(
    ("kind", "lines", "sentence"),
    [
        ("qadsm", {"en": ["Good"] * 3}, "/en.prediction has 3 lines, but xglue.qadsm.en.test has 2 rows"),
        ("qadsm", {"en": ["Good", "good"]}, "/en.prediction, line 2: 'good' is not a label of the task"),
        ("qadsm", {"de": ["Good", "Bad"]}, " has no en.prediction, but the set qadsm has 2 test rows in en"),
        *(("wpr", ranks, f"/en.prediction, line 2: {ranks['en'][1]!r} is not a finite number") for ranks in NO_RANKS),
    ],
)
def test_predictions_that_do_not_fit_are_refused_with_file_and_line(exported, predict, kind, lines, sentence):
    gold, mine = exported(kind, {"en": 2}), predict(kind.upper(), **lines)
    assert refusal("--gold", gold, mine).startswith(f"{mine}/{kind.upper()}{sentence}")


def test_a_prediction_file_is_utf_8_with_a_mark_blanks_and_carriage_returns_and_those_without_rows_are_reported(
    exported, predict, run
):
    gold, mine = exported("qam", {"en": 2}), predict("QAM", en=[])
    (mine / "QAM" / "en.prediction").write_bytes(b"\xef\xbb\xbf1\r\n 0 ")
    assert figures(run("--gold", gold, mine), "accuracy", task="QAM")["value"] == 1
    (mine / "QAM" / "en.prediction").write_bytes(b"\xff\n")
    assert refusal("--gold", gold, mine) == f"{mine}/QAM/en.prediction is not UTF-8. Save it as UTF-8."
    gold = exported("qadsm", {"en": 1})
    report = run("--gold", gold, predict("QADSM", en=["Good"], it=["Good"]))
    assert report["warnings"] == [
        "Predictions of QADSM in it are not measured, because the set qadsm has no test rows in these languages."
    ]


def test_folders_and_sets_that_do_not_fit_or_are_empty_say_why(exported, predict, tmp_path):
    gold, mine = exported("qam", {"en": 1}), predict("QADSM", en=["Good"])
    assert refusal("--gold", gold, mine).startswith(f"{mine} does not contain the folder QAM or QG")
    assert refusal("--gold", gold, tmp_path / "none").startswith(f"The folder {tmp_path / 'none'} does not exist")
    other = exported("qam", {"en": 1}, name="twin")
    assert refusal("--gold", gold, "--gold", other, mine).startswith(f"{gold} and {other} are both sets for QAM")
    empty = exported("qadsm", {}, name="empty")
    assert refusal("--gold", empty, mine).startswith(f"The gold set empty in {empty} has no labelled")
    refused = "XGLUE's files contain the texts of the records, which must not be published, so they are not written."
    restricted = exported("qadsm", {"en": 1}, refused=refused)
    assert refusal("--gold", restricted, mine) == f"The set qadsm in {restricted} has no test files. {refused}"
    for name, published in (("none", None), ("other", {"format": "Other", "files": {}})):
        unpublished = exported("qadsm", {"en": 1}, name=name, published=published)
        assert refusal("--gold", unpublished, mine) == f"{mine} is a folder. Specify the files in it instead."
        assert "are sets of different kinds" in refusal("--gold", restricted, "--gold", unpublished, mine)


def test_an_unfinished_set_is_measured_only_with_the_option(exported, predict, run):
    gold, mine = exported("qadsm", {"en": 2}, finished=False), predict("QADSM", en=["Good", "Good"])
    assert "is unfinished: some records have no label yet" in refusal("--gold", gold, mine)
    report = run("--gold", gold, mine, "--unfinished")
    assert figures(report, "accuracy", task="QADSM")["value"] == 0.5
    assert report["warnings"] == ["The gold set qadsm is unfinished: records without a final label are missing."]


def test_what_is_for_other_sets_is_refused_by_name(exported, predict):
    gold, mine = exported("qadsm", {"en": 1}), predict("QADSM", en=["Good"])
    assert refusal("cld2", "--gold", gold).startswith(
        "The file cld2 does not exist, and the gold set does not name a corpus"
    )
    frame = assay.evaluate(mine, gold)
    row = frame[(frame.task == "QADSM") & (frame.language == "")].iloc[0]
    assert (row.measure, row.value, row.note) == ("accuracy", 1.0, "mean over 1 language")
    for options in ({"map": {"nb": "no"}}, {"vanished": ["1"]}, {"balanced_precision": True}):
        with pytest.raises(
            assay.AssayError, match=f"^{next(iter(options))} cannot be used with .* only with sets of posts"
        ):
            assay.evaluate(mine, gold, **options)
