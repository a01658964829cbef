"""What sets lack, which of them do not go together, and where a report is written."""

import json
import shutil
from fractions import Fraction

import pytest

from annotate.evaluation.measurement import write_report
from annotate.evaluation.subjects import EvaluationError, read_sets
from annotate.goldsets.set_folder import write_manifest
from annotate.models import Unit
from corpora.system import VERSION
from tests.annotate.evaluation.figures import VOTER, accuracy, close, measures_of, run, values


def test_a_set_whose_posts_have_all_vanished_measures_nothing_and_is_said_to_be_nothing_else(world):
    folder, keys = world.uniform(VOTER)
    report = run(world.subject("cld2", built_in=True), folder, vanished=set(keys))
    assert "listed as vanished: 100." in report["told"][-1]
    assert accuracy(report)["value"] is None
    assert measures_of(report) == {"accuracy", "naive_accuracy", "vanished", "erased"}
    assert report["warnings"] == []


def test_vanished_posts_are_left_out_and_counted_by_label(world, stream):
    folder, _ = world.verify("recall", "de", [(4, "de", "de")], shared=[("stream-80", "de")])
    vanished = {"stream-0", "stream-80", "stream-99", "recall-de-0", "unheard-of"}
    report = run(world.subject(), stream, folder, vanished=vanished)
    assert values(report, "vanished") == {"de": 3, "und": 1}
    assert "listed as vanished: 4. Posts erased from the gold sets: 0." in report["told"][-1]
    assert [gold["rows"] for gold in report["gold"]] == [97, 3]
    # 26 of 29 audited German stand for 59.
    assert accuracy(report)["value"] == close(Fraction(59 * 26, 29) / 97 + Fraction(20 + 13, 97))


def test_rows_that_were_erased_are_counted_where_they_are_allowed(world, stream):
    lines = (stream / "gold.jsonl").read_bytes().splitlines(keepends=True)
    gone = {json.loads(line)["id"] for line in lines[:2]}
    (stream / "gold.jsonl").write_bytes(b"".join(lines[2:]))
    tsv = stream / "uniformly_sampled.tsv"
    kept = [line for line in tsv.read_text().splitlines(keepends=True) if line.split("\t")[1].strip() not in gone]
    tsv.write_text("".join(kept))
    (stream / "gold.parquet").unlink()
    report = run(world.subject(), stream, allow_erased=True)
    assert values(report, "erased") == {"de": 2}
    assert report["gold"][0]["rows"] == 98


def test_sets_that_do_not_go_together_are_refused(world, stream, tmp_path):
    second, _ = world.uniform([(1, "", "disputed", "de", "de")], "second")
    with pytest.raises(EvaluationError, match="are both uniform sets, and an evaluation takes one; extend the task"):
        read_sets([stream, second], allow_erased=False, unfinished=False)
    shutil.copytree(stream, tmp_path / "copy")
    for twin in (stream, tmp_path / "copy"):
        with pytest.raises(EvaluationError, match="are the same gold set; name it once"):
            read_sets([stream, twin], allow_erased=False, unfinished=False)
    folder, _ = world.verify("recall", "de", [(4, "de", "de")])
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["corpus"]["name"] = "another"
    write_manifest(folder, manifest)
    with pytest.raises(EvaluationError, match=r"is from corpus corpus and .* from corpus another; evaluate on each"):
        read_sets([stream, folder], allow_erased=False, unfinished=False)


def test_an_unfinished_set_is_refused_without_leave_and_warned_of_with_it(world):
    world.uniform([(2, "", "disputed", "de", "de")])
    waiting = Unit.objects.last()
    Unit.objects.filter(pk=waiting.pk).update(stage="QUEUED", label="", language="de", round=1)
    shutil.rmtree(world.folder / waiting.task.name)
    folder = world.export(waiting.task)
    with pytest.raises(EvaluationError, match=r"The gold set stream in .* is unfinished: .* or pass --unfinished"):
        run(world.subject(), folder)
    report = run(world.subject(), folder, unfinished=True)
    assert (report["gold"][0]["finished"], accuracy(report)["units"]) == (False, 1)
    assert "is unfinished" in report["warnings"][0]
    # A measure that is asked for comes alone.
    report = run(world.subject(), folder, unfinished=True, measures=["recall"])
    assert measures_of(report) == {"recall", "mean_recall"}


@pytest.mark.parametrize(
    ("designs", "options", "told"),
    [
        (["recall"], {"measures": ["accuracy"]}, "Accuracy takes a uniform set, and none is given"),
        (["precision"], {"measures": ["recall"]}, "Recall takes a recall-oriented or a uniform set, and none"),
        (["precision"], {"balanced": True}, "--balanced-precision takes a recall-oriented set, and none"),
        (["precision", "recall"], {"measures": ["recall"]}, "precision-de is precision-oriented, and no measure that"),
        (["precision"], {"against": True}, "compared on uniform and recall-oriented sets, and none is given"),
    ],
)
def test_what_the_sets_cannot_tell_and_sets_that_tell_nothing_asked_for_are_refused(world, designs, options, told):
    folders = [world.verify(design, "de", [(4, "de", "de")])[0] for design in designs]
    if "against" in options:
        options = {"against": world.subject("other")}
    with pytest.raises(EvaluationError, match=told):
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
    with pytest.raises(EvaluationError, match="holds something other than an evaluation of mine@2"):
        write_report(run(world.subject(version="2"), stream), out)
    with pytest.raises(EvaluationError, match="holds something other than an evaluation of mine@1"):
        write_report(report, stream)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
