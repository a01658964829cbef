"""The audit of agreement against known truth, small: the benchmark `audits` does this over many seeds and posts."""

import pytest
from django.conf import settings as django_settings
from django.db import transaction

from annotate.core import stages
from annotate.opening import open_task
from tests.annotate.corpus import demo_corpus, prelabelled  # noqa: F401 - fixtures
from tests.benchmarks import audits_work
from tests.benchmarks.audits_work import Crew, Frame, measured, work

SEEDS = ("1", "2")


@pytest.fixture
def truth():
    with open(django_settings.BASE_DIR / "fixtures" / "demo_truth.tsv", encoding="utf-8") as file:
        return dict(line.rstrip("\n").split("\t") for line in file)


@pytest.fixture
def found(demo_corpus, truth, monkeypatch):  # noqa: F811
    """What two draws of the demo's posts measure, each done by readers who slip and by an adjudicator."""
    monkeypatch.setattr(audits_work, "NAME", demo_corpus.name)
    runs = []
    for seed in SEEDS:
        before = transaction.savepoint()
        task = open_task(f"audited-{seed}", demo_corpus, 400, seed, audit_least=5, audit_limit=1.0).task
        work(task, Crew(truth, 0.015, 0.0, seed))
        assert not task.units.exclude(stage__in=stages.FINISHED).exists()
        runs.append(measured(task, Frame(task, truth)))
        transaction.savepoint_rollback(before)
    return runs


def test_the_audit_covers_the_error_of_agreement_and_the_naive_accuracy_does_not(found):
    cells = [row for run in found for row in run["languages"]]
    assert len(cells) > 60
    covered = [row["blind"]["low"] <= row["truth"] <= row["blind"]["high"] for row in cells]
    assert sum(covered) / len(cells) >= 0.93
    # readers slip: their word alone finds errors where there are none
    not_adjudicated = [row["not adjudicated"]["low"] <= row["truth"] <= row["not adjudicated"]["high"] for row in cells]
    assert sum(not_adjudicated) <= sum(covered)
    for run in found:
        overall = run["overall"]
        assert overall["blind"]["low"] <= overall["truth"] <= overall["blind"]["high"]
        for measured_detector in run["accuracy"].values():
            estimate = measured_detector["by stratum"]
            assert estimate["low"] <= measured_detector["truth"] <= estimate["high"]
            # against its own labels a detector looks better than it is
            assert measured_detector["naive"]["value"] > estimate["value"]
