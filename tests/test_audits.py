"""The audit of agreement against known truth, small: the benchmark `audits` does this over many seeds and posts."""

import pytest
from django.conf import settings as django_settings

from annotate.core import stages
from benchmarks import audits_work
from benchmarks.audits_work import Crew, Frame, measured, work
from tests.annotate.acts import open_task
from tests.annotate.corpus import demo_corpus, prelabelled  # noqa: F401 - fixtures

pytestmark = pytest.mark.slow


@pytest.fixture
def truth():
    with open(django_settings.BASE_DIR / "fixtures" / "demo_truth.tsv", encoding="utf-8") as file:
        return dict(line.rstrip("\n").split("\t") for line in file)


@pytest.fixture
def found(demo_corpus, truth, monkeypatch):  # noqa: F811
    """What is measured on a draw of the demo's posts, done by readers who slip and by an adjudicator."""
    monkeypatch.setattr(audits_work, "NAME", demo_corpus.name)
    task = open_task("audited", demo_corpus, 400, "1", audit_least=5, audit_limit=1.0).task
    work(task, Crew(truth, slip=0.015, adjudicator_slip=0.0, seed="1"))
    assert not task.units.exclude(stage__in=stages.FINISHED).exists()
    return measured(task, Frame(task, truth))


def covered(row, way):
    return row[way]["low"] <= row["truth"] <= row[way]["high"]


def test_the_audit_covers_the_error_of_agreement_and_the_naive_accuracy_flatters(found):
    cells = found["languages"]
    assert len(cells) > 30
    assert sum(covered(row, "blind") for row in cells) / len(cells) >= 0.93
    # readers slip: their word alone finds errors where there are none
    assert sum(covered(row, "not adjudicated") for row in cells) <= sum(covered(row, "blind") for row in cells)
    assert covered(found["overall"], "blind")
    for row in found["accuracy"].values():
        assert covered(row, "by stratum")
        # against its own labels a detector looks better than it is
        assert row["naive"]["value"] > row["by stratum"]["value"]
