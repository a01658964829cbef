"""What sets lack, which of them do not go together, labels that stand for several, and where a report is written."""

import json
import shutil
from fractions import Fraction

import pytest

from annotate.core.estimation.proportions import jeffreys
from annotate.evaluation.measurement import write_report
from annotate.evaluation.subjects import EvaluationError, read_sets
from annotate.goldsets.set_folder import write_manifest
from annotate.models import Unit
from annotate.reports.report_renderer import as_text
from corpora.core import CorpusError
from corpora.storage.layout import digest_of
from corpora.system import VERSION
from tests.annotate.evaluation.figures import (
    VOTER,
    accuracy,
    by_label,
    close,
    interval,
    means,
    measures_of,
    refusal,
    rows_of,
    run,
    values,
    written,
)


def test_a_set_whose_posts_have_all_vanished_measures_nothing_and_gets_no_warning(world):
    folder, keys = world.uniform(VOTER)
    report = run(world.subject("cld2", built_in=True), folder, vanished=set(keys))
    assert "listed as vanished: 100 posts." in report["told"][-1]
    assert accuracy(report)["value"] is None
    assert measures_of(report) == {"accuracy", "naive_accuracy", "vanished", "erased"}
    assert report["warnings"] == []


def test_vanished_posts_are_left_out_and_counted_by_label(world, stream):
    folder, _ = world.verify("recall", "de", [(4, "de", "de")], shared=[("stream-80", "de")])
    vanished = {"stream-0", "stream-80", "stream-99", "recall-de-0", "unheard-of"}
    report = run(world.subject(), stream, folder, vanished=vanished)
    assert values(report, "vanished") == {"de": 3, "und": 1}
    assert "listed as vanished: 4 posts. Erased from the gold sets: 0 posts." in report["told"][-1]
    assert [gold["rows"] for gold in report["gold"]] == [97, 3]
    # 26 of 29 audited German stand for 59.
    assert accuracy(report)["value"] == close(Fraction(59 * 26, 29) / 97 + Fraction(20 + 13, 97))


def test_rows_that_were_erased_are_counted_where_they_are_allowed(world, stream):
    lines = (stream / "gold.jsonl").read_bytes().splitlines(keepends=True)
    (stream / "gold.jsonl").write_bytes(b"".join(lines[2:]))
    for other in ("uniformly_sampled.tsv", "gold.parquet"):
        (stream / other).unlink()
    report = run(world.subject(), stream, allow_erased=True)
    assert values(report, "erased") == {"de": 2}
    assert report["gold"][0]["rows"] == 98


def test_sets_that_do_not_go_together_are_refused(world, stream, tmp_path):
    second, _ = world.uniform([(1, "", "disputed", "de", "de")], "second")
    with pytest.raises(EvaluationError, match="are both uniform sets, but an evaluation can use only one"):
        read_sets([stream, second], allow_erased=False, unfinished=False)
    shutil.copytree(stream, tmp_path / "copy")
    for twin in (stream, tmp_path / "copy"):
        with pytest.raises(EvaluationError, match=r"are the same gold set\. Specify it only once"):
            read_sets([stream, twin], allow_erased=False, unfinished=False)
    folder, _ = world.verify("recall", "de", [(4, "de", "de")])
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["corpus"]["name"] = "another"
    write_manifest(folder, manifest)
    with pytest.raises(EvaluationError, match=r"is from corpus corpus, but .* is from corpus another"):
        read_sets([stream, folder], allow_erased=False, unfinished=False)


def test_an_unfinished_set_is_refused_without_leave_and_warned_of_with_it(world):
    world.uniform([(2, "", "disputed", "de", "de")])
    waiting = Unit.objects.last()
    Unit.objects.filter(pk=waiting.pk).update(stage="QUEUED", label="", language="de", round=1)
    shutil.rmtree(world.folder / waiting.task.name)
    folder = world.export(waiting.task)
    with pytest.raises(EvaluationError, match=r"The gold set stream in .* is unfinished: .* or use --unfinished"):
        run(world.subject(), folder)
    report = run(world.subject(), folder, unfinished=True)
    assert (report["gold"][0]["finished"], accuracy(report)["units"]) == (False, 1)
    assert "is unfinished" in report["warnings"][0]
    # A measure that is asked for comes alone.
    report = run(world.subject(), folder, unfinished=True, measures=["recall"])
    assert measures_of(report) == {"recall", "mean_recall"}


@pytest.mark.parametrize(
    ("designs", "options", "message"),
    [
        (["recall"], {"measures": ["accuracy"]}, "Accuracy requires a uniform set, but none was specified"),
        (["precision"], {"measures": ["recall"]}, "Recall requires a recall-oriented or a uniform set, but none"),
        (["precision"], {"balanced": True}, "--balanced-precision requires a recall-oriented set, but none"),
        (
            ["precision", "recall"],
            {"measures": ["recall"]},
            "precision-de is precision-oriented, and none of the selected measures",
        ),
        (["precision"], {"against": True}, "--against requires a uniform or recall-oriented set"),
    ],
)
def test_measures_without_a_set_and_sets_without_a_selected_measure_are_refused(world, designs, options, message):
    folders = [world.verify(design, "de", [(4, "de", "de")])[0] for design in designs]
    if "against" in options:
        options = {"against": world.subject("other")}
    with pytest.raises(EvaluationError, match=message):
        run(world.subject(), *folders, **options)


def test_a_report_replaces_an_earlier_one_of_the_predictor_and_nothing_else(world, stream, tmp_path):
    out = tmp_path / "report"
    report = run(world.subject(), stream)
    for _ in range(2):
        write_report(report, out)
        written = {f"report.{suffix}" for suffix in ("json", "md", "html", "tex")}
        assert {path.name for path in out.iterdir()} == {"manifest.json", "errors.jsonl", *written}
    assert json.loads((out / "report.json").read_text()) == {key: report[key] for key in report if key != "errors"}
    assert json.loads((out / "manifest.json").read_text())["versions"] == {"assay": VERSION}
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(EvaluationError, match="is not empty and does not contain the evaluation of mine@2"):
        write_report(run(world.subject(version="2"), stream), out)
    with pytest.raises(EvaluationError, match="is not empty and does not contain the evaluation of mine@1"):
        write_report(report, stream)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_predictor_that_says_zh_is_right_on_both_scripts(world):
    folder, _ = world.uniform(
        [(3, "", "disputed", "zh-CN", "zh"), (1, "", "disputed", "zh-TW", "zh"), (1, "", "disputed", "zh-TW", "ja")]
    )
    report = run(world.subject(mapping={"zh": ("zh-CN", "zh-TW")}), folder)
    assert values(report, "recall") == {"zh": close("4/5")}
    assert values(report, "precision") == {"ja": 0, "zh": 1}
    assert by_label(report, "recall")["zh"]["note"] == "includes zh-CN, zh-TW"


def test_a_predictor_that_tells_the_scripts_apart_is_right_where_chinese_was_asked(world):
    folder, _ = world.verify("precision", "zh", [(3, "zh", "zh-CN"), (2, "zh", "zh-TW"), (1, "not-zh", "zh-TW")])
    report = run(world.subject("cld2", built_in=True), folder)
    assert interval(by_label(report, "precision")["zh"]) == jeffreys(5, 6)


def test_what_was_asked_about_one_script_says_nothing_of_the_precision_of_both(world):
    folder, _ = world.verify("precision", "zh-CN", [(3, "zh-CN", "zh"), (2, "not-zh-CN", "zh")], predictor="mine@1")
    report = run(world.subject(mapping={"zh": ("zh-CN", "zh-TW")}), folder)
    assert "precision" not in measures_of(report)
    assert "left out of precision: zh (asked about zh-CN)" in report["warnings"][0]


UNSEEN = ("never_shown", "posts_never_shown", "outside")


@pytest.fixture
def southern(world):
    """A stream whose Croatian and Serbian are told apart, and a set that asked about both together."""
    table = [(6, "", "disputed", "hr", "hr"), (2, "", "disputed", "hr", "sr"), (4, "", "disputed", "sr", "sr")]
    stream, _ = world.uniform([*table, (1, "", "disputed", "de", "hr")])
    verified = [(3, "sh", "hr"), (2, "sh", "sr"), (1, "not-sh", "bs"), (4, "not-sh", "sl")]
    drawn, _ = world.verify("precision", "sh", verified, predictor="fasttext")
    return stream, drawn


def test_a_set_that_asked_about_a_coarse_code_changes_no_figure_of_posts_that_others_read(world, southern):
    stream, drawn = southern
    alone, both = run(world.subject(), stream), run(world.subject(), stream, drawn)
    coarse = [row for row in both["rows"] if row["of"].get("label") == "sh"]
    assert [row for row in both["rows"] if row not in coarse] == alone["rows"]
    assert both["confusion"] == alone["confusion"]
    rows = by_label(both, "precision")
    assert {row["measure"] for row in coarse} == {"precision", "precision_without_und", *UNSEEN}
    assert interval(rows["sh"]) == jeffreys(5, 6)
    assert "includes bs, hr, sr, but only on posts where people used sh" in rows["sh"]["note"]
    assert not [warning for warning in both["warnings"] if "merges labels" in warning]
    [(label, row)] = by_label(both, "posts_never_shown").items()
    assert (label, row["units"], row["value"]) == ("sh", 13, 0)  # counted by all of its labels


def test_a_recall_set_labelled_with_a_coarse_code_has_a_row_of_its_own(world, southern):
    stream, _ = southern
    folder, _ = world.verify("recall", "sh", [(3, "sh", "hr"), (2, "sh", "bs"), (1, "sh", "sl")])
    alone, both = run(world.subject(), stream), run(world.subject(), stream, folder)
    rows = by_label(both, "recall")
    assert interval(rows.pop("sh")) == jeffreys(5, 6)
    assert rows == by_label(alone, "recall")
    assert means(both, "recall") == means(alone, "recall")


def test_a_coarse_code_in_a_balanced_stream_is_taken_for_any_of_its_labels(world):
    south, _ = world.verify("recall", "sh", [(9, "sh", "hr"), (1, "sh", "sl")])
    croatian, _ = world.verify("recall", "hr", [(10, "hr", "sr")])
    german, _ = world.verify("recall", "de", [(9, "de", "de"), (1, "de", "sr")])
    precisions = values(run(world.subject(), south, croatian, german, balanced=True), "balanced_precision")
    # All ten Croatian posts are found as such: 19 of 20, against one of ten German ones.
    assert precisions["sh"] == close("19/21")
    assert precisions["de"] == 1


def test_a_comparison_takes_labels_together_for_itself_alone_and_says_so(world, southern):
    stream, _ = southern
    coarse = world.subject("coarse", changes=dict.fromkeys(world.predictions, "sh"), mapping={"sh": ("bs", "hr", "sr")})
    alone, both = run(world.subject(), stream), run(world.subject(), stream, against=coarse)
    assert both["rows"] == alone["rows"]
    assert both["comparison"]["together"] == {"sh": ["bs", "hr", "sr"]}
    assert "are merged: bs, hr, sr as sh." in " ".join(as_text(both).split())


def test_a_class_with_only_some_labels_of_a_code_that_was_asked_is_refused(world, southern):
    with pytest.raises(EvaluationError, match="The predictor's class south contains sl in addition to labels of sh"):
        run(world.subject(mapping={"south": ("hr", "sl")}), *southern)


def test_a_label_of_two_classes_is_refused(world, stream):
    one, two = {"one": ("de", "nl")}, {"two": ("de", "af")}
    with pytest.raises(CorpusError, match=r"The label de is in two classes, one and two. Declare it in only one"):
        run(world.subject(mapping=one), stream, against=world.subject("other", mapping=two))


# --- predictions and sets that do not fit


def record_set(folder, labels, chances=(1.0,), *, finished=True, names=("yes", "no")):
    """A set of records. labels: the label of each; chances: their chances, repeated in turn."""
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
    "some of the units": (lambda rows: rows[2:], "has no prediction for 2 of the 30 items of the set: u0"),
    "a unit twice": (lambda rows: [*rows, rows[0]], "repeats 1 id: "),
    "a near miss": (lambda rows: [("u0", "yess"), *rows[1:]], "'yess' (line 1, similar to 'yes')"),
    "NaN": (lambda rows: scored(rows, "yes", "no", shares=("nan", 1)), "the score of yes is 'nan'"),
    "no sum of one": (lambda rows: scored(rows, "yes", "no", shares=(0.5, 0.6)), "add up to 1.1, not 1"),
    "no scores of a label": (lambda rows: scored(rows, "yes", shares=(1,)), "but no column 'no'. Add"),
    "words for a refusal": (lambda rows: [("u0", "I cannot tell"), *rows[1:]], "or an empty label if the system"),
    "no label at all": (lambda rows: [(key, "") for key, _ in rows], "has an empty label for all 30 items"),
    "other columns": (lambda rows: [("id", "lable"), *rows], "check the spelling of 'lable'."),
}


@pytest.mark.parametrize("fault", UNFIT)
def test_predictions_that_do_not_fit_are_refused_in_one_sentence(records, tmp_path, fault):
    gold, rows = records
    made, sentence = UNFIT[fault]
    path = written(tmp_path / "judge.tsv", made(rows))
    message = refusal(path, "--gold", gold, "--out", tmp_path / "out")
    assert sentence in message
    assert str(path) in message
    assert len(message.split(". ")) <= 2
    assert not (tmp_path / "out").exists()


def test_a_set_on_which_nothing_can_be_measured_is_refused(tmp_path):
    right = written(tmp_path / "right.tsv", [(f"u{n}", "yes") for n in range(4)])
    for folder, sentence in (
        (
            record_set(tmp_path / "half", ["yes", "no"] * 2, finished=False),
            "is unfinished: some records have no label yet",
        ),
        (record_set(tmp_path / "one", ["yes"] * 4), "All 4 items of the gold set one in"),
        (record_set(tmp_path / "none", []), "has no labelled items"),
        (record_set(tmp_path / "two", ["yes", "no"] * 2, chances=(1.0, 2.0)), "a chance of 0 or less"),
    ):
        assert sentence in refusal(right, "--gold", folder)


def test_a_set_of_its_whole_corpus_says_what_its_intervals_apply_to(tmp_path, run):
    predictions = written(tmp_path / "mine.tsv", [(f"u{n}", "yes") for n in range(30)])
    whole, part = (
        run(predictions, "--gold", record_set(tmp_path / f"set{chance}", ["yes", "no"] * 15, chances=(chance,)))["told"]
        for chance in (1.0, 0.5)
    )
    assert whole == ["The set contains every item of the corpus; intervals apply to other items like these."]
    assert part == []


def test_predictions_for_another_version_of_the_set_are_refused_on_either_side(records, tmp_path):
    gold, rows = records
    mine, older = (written(tmp_path / f"{name}.tsv", part) for name, part in (("mine", rows), ("older", rows[3:])))
    for message in (
        refusal(mine, "--gold", gold, "--against", older),
        refusal(older, "--gold", gold, "--against", mine),
    ):
        assert message.startswith(f"{older} has no prediction for 3 of the 30 items of the set")
        assert message.endswith("or predict this version of the set.")


def test_labels_may_be_called_like_the_columns_of_a_table(tmp_path, run):
    gold = record_set(tmp_path / "gold", ["id", "label"] * 15, names=("id", "label"))
    keys = [row["id"] for row in rows_of(gold)]
    plain = written(tmp_path / "plain.tsv", [("id", "label"), *((key, "id") for key in keys)])
    assert run(plain, "--gold", gold)["rows"][0]["value"] == 0.5
    table = [("id", "id", "label"), *((key, 0.8, 0.2) for key in keys)]
    message = refusal(written(tmp_path / "scored.tsv", table), "--gold", gold)
    assert "contains the ids, but the set has a label with the same name. Rename the column" in message
    unit = written(tmp_path / "unit.tsv", [("unit", "id", "label"), *table[1:]])
    assert run(unit, "--gold", gold, "--column", "id=unit")["rows"][0]["value"] == 0.5
    other = record_set(tmp_path / "other", ["label", "other"] * 15, names=("label", "other"))
    scores = written(tmp_path / "scores.tsv", [("id", "label", "other"), *((key, 0.8, 0.2) for key in keys)])
    report = run(scores, "--gold", other)
    assert report["rows"][0]["value"] == 0.5
    assert any(row["measure"] == "log_loss" for row in report["rows"])
