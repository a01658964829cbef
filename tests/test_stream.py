"""Uniform sets against a known truth: small runs of the benchmarks `stream` and `audits`."""

import json

import pytest
from django.conf import settings as django_settings

from annotate.core import stages
from annotate.models import Annotator, Judgment, Task
from benchmarks import audits_work, stream_work
from benchmarks.audits_work import Crew, Frame, measured, work
from benchmarks.stream import Figure, held
from tests.annotate.acts import open_task
from tests.annotate.corpus import demo_corpus, prelabelled  # noqa: F401 - fixtures

pytestmark = pytest.mark.slow


ABOUT = {
    "accuracy with und",
    "accuracy without und",
    "recall",
    "precision with und",
    "precision without und",
}


@pytest.fixture
def truth():
    lines = (django_settings.BASE_DIR / "fixtures" / "demo_truth.tsv").read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t") for line in lines)


@pytest.fixture
def done(demo_corpus, truth, tmp_path, monkeypatch, capsys):  # noqa: F811
    """Run the benchmark's program on the demo's posts, and return its output."""
    monkeypatch.setattr(audits_work, "NAME", demo_corpus.name)
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    return lambda *arguments: _printed(tmp_path / "truth.json", arguments, capsys)


def _printed(truth, arguments, capsys):
    stream_work.main([str(truth), *arguments])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_the_intervals_of_two_reports_and_of_the_audit_cover_the_truth_and_nothing_of_a_seed_is_left(done):
    [report] = done("300", "0.015", "0.02", "", "confirmed", "1")
    figures = [Figure(*row) for row in report["figures"]]
    assert {figure.kind for figure in figures} == {
        "error of agreement, in all",
        "error of agreement, by language",
        *(f"{who}, {figure}" for who in ("voted", "did not vote") for figure in ABOUT),
    }
    assert report["judgments"] > report["seconded"] > 0
    assert not any(model.objects.exists() for model in (Task, Annotator, Judgment))
    intervals = held(figures)
    assert len(intervals) > 100
    assert sum(figure.covers for figure in intervals) / len(intervals) >= 0.93
    # An interval can fail: if the truth differed, fewer would cover it.
    others = [figure._replace(truth=figure.truth - 0.5) for figure in intervals]
    assert sum(figure.covers for figure in others) / len(others) < 0.75


def test_the_audit_covers_the_error_of_agreement_and_the_naive_accuracy_flatters(demo_corpus, truth, monkeypatch):  # noqa: F811
    monkeypatch.setattr(audits_work, "NAME", demo_corpus.name)
    task = open_task("audited", demo_corpus, 400, "1", audit_least=5, audit_limit=1.0).task
    work(task, Crew(truth, slip=0.015, adjudicator_slip=0.0, seed="1"))
    assert not task.units.exclude(stage__in=stages.FINISHED).exists()
    report = measured(task, Frame(task, truth))

    def covered(row, way):
        return row[way]["low"] <= row["truth"] <= row[way]["high"]

    cells = report["languages"]
    assert len(cells) > 30
    assert sum(covered(row, "blind") for row in cells) / len(cells) >= 0.93
    # Readers make mistakes: on their own, they find errors where there are none.
    assert sum(covered(row, "not adjudicated") for row in cells) <= sum(covered(row, "blind") for row in cells)
    assert covered(report["overall"], "blind")
    for row in report["accuracy"].values():
        assert covered(row, "by stratum")
        # Measured on its own labels, a detector looks better than it is.
        assert row["naive"]["value"] > row["by stratum"]["value"]
