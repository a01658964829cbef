"""What is said of the widths that a uniform draw will have, and of what more or fewer audits would change."""

import io
import json
import re

import pytest
from django.core.management import CommandError

from annotate.actions.commands import call_command
from annotate.figures import plan_report
from annotate.figures.draw_plan import draw_of, needed, widths
from annotate.figures.interval_width import AUDITS, CHECKS, POSTS, SECONDS, Expected, Stream, reading
from annotate.kinds.options import OPTIONS
from annotate.models import Task
from tests.annotate.corpus import NAME

pytestmark = pytest.mark.slow


ZIPF = {f"l{rank:02d}": rank**-1.1 for rank in range(1, 51)}
STREAM = Stream(
    {label: round(170_000 * part) for label, part in ZIPF.items()},
    {label: round(56_000 * part) for label, part in ZIPF.items()},
)
CHECKED = {"audit_recheck": 0.2, "check_share": 0.1}


def task(**options):
    return Task(options={"audit_share": 0.2, "audit_least": 5, **CHECKED, **options})


def test_as_many_audits_as_before_make_most_recalls_half_as_wide():
    """Before, 2% and at least 30 of each label were 1,498 audits, and the recall of the labels shown was this wide."""
    found = widths(task(), STREAM, 10_000, Expected(voted=True), 12)
    of = {row["language"]: row["recall"] for row in found["languages"]}
    assert next(row for row in found["curve"] if row["share"] == 0.2)["audits"] == pytest.approx(1_505, abs=3)
    for label, before in {"l05": 0.161, "l10": 0.275, "l20": 0.437, "l40": 1.0}.items():
        assert of[label] < before / 2
    assert found["accuracy"] < 0.85 * 0.0266
    assert found["error"] < 0.0363 / 2


def test_a_check_of_confirmations_narrows_more_than_as_many_further_audits():
    """By default 30% of confirmed audits are checked, not 20%: as many posts are read if fewer are audited."""
    draws = ((0.2, 0.2), (0.185, OPTIONS["audit_recheck"].default))
    further, checked = (
        widths(task(audit_share=share, audit_recheck=recheck), STREAM, 10_000, Expected(voted=True), 12)
        for share, recheck in draws
    )
    first, second = (
        (1 + recheck) * next(row for row in found["curve"] if row["share"] == share)["audits"]
        for found, (share, recheck) in zip((further, checked), draws, strict=True)
    )
    assert second == pytest.approx(first, rel=0.01)
    assert checked["error"] < 0.95 * further["error"]
    assert checked["accuracy"] < further["accuracy"]
    for row, before in zip(checked["languages"], further["languages"], strict=True):
        if before["recall"] is not None:
            assert row["recall"] < 1.05 * before["recall"]


def test_the_curve_falls_and_has_the_tasks_own_share():
    found = widths(task(audit_share=0.12), STREAM, 10_000, Expected(), 12)
    curve = found["curve"]
    assert [row["share"] for row in curve] == [0.02, 0.05, 0.1, 0.12, 0.15, 0.2, 0.3, 0.5]
    for measure in ("accuracy", "error", "recall", "precision"):
        stated = [row[measure] for row in curve if row[measure] is not None]
        assert stated == sorted(stated, reverse=True)
    own = curve[3]
    assert (own["accuracy"], own["error"]) == (found["accuracy"], found["error"])
    with_checks = reading(STREAM, draw_of(task(audit_share=0.12), 10_000)).work
    assert with_checks > own["read"]
    assert own["hours"] == pytest.approx(with_checks * 12 / 3600)
    [row] = [row for row in found["languages"] if row["language"] == found["typical"]]
    assert (own["recall"], own["precision"]) == (row["recall"], row["precision"])
    plot = plan_report.curve_plot(found)
    figures = ("accuracy", "error", "recall", "precision")
    assert plot.count("<circle") == sum(row[figure] is not None for row in curve for figure in figures)
    assert f"{own['audits']:,.0f} audits, {100 * own['accuracy']:.1f} points" in plot


def test_further_work_narrows_accuracy_and_the_kind_that_does_most_comes_first():
    """Where few are audited, audits do most; where all are, what people decide alone is what is not known."""
    few, all_read = (widths(task(audit_share=share), STREAM, 10_000, Expected(), 12) for share in (0.05, 1.0))
    assert few["next"][0]["work"] == AUDITS
    assert {row["work"] for row in few["next"]} == {AUDITS, CHECKS, SECONDS, POSTS}
    assert AUDITS not in {row["work"] for row in all_read["next"]}
    assert all_read["next"][0]["work"] in (CHECKS, SECONDS)
    for found in (few, all_read):
        assert all(row["accuracy"] <= found["accuracy"] + 1e-4 for row in found["next"])
    more = [row["more"] for row in few["next"]]
    assert max(more) < 1.2 * min(more)
    assert (
        plan_report.next_words(few)
        == "With the same amount of further reading, audits would narrow the interval of accuracy most:"
    )


def test_the_share_for_a_wished_width_gives_it_and_a_smaller_one_does_not():
    rows = {row["measure"]: row for row in needed(task(), STREAM, 10_000, 0.2, Expected(), 12)}
    assert list(rows) == ["accuracy", "error in all", "recall", "precision", "error"]

    def narrow(share):
        languages = widths(task(audit_share=share), STREAM, 10_000, Expected(), 12)["languages"]
        return sum(row["recall"] is not None and row["recall"] <= 0.2 for row in languages) > len(languages) / 2

    share = rows["recall"]["share"]
    assert narrow(share)
    assert not narrow(share - 0.001)
    assert rows["accuracy"]["share"] < share
    assert draw_of(task(), 10_000).share == 0.2
    # For some widths too few posts are drawn.
    rows = {row["measure"]: row for row in needed(task(), STREAM, 400, 0.01, Expected(), 12)}
    assert rows["recall"] == {"measure": "recall", "share": None, "audits": None, "read": None, "hours": None}


def test_plan_and_a_dry_run_say_the_same_widths_of_a_draw(demo_corpus):
    out = io.StringIO()
    call_command("plan", NAME, size=600, json=True, stdout=out)
    planned = json.loads(out.getvalue())
    out = io.StringIO()
    call_command("open_task", "t", corpus=NAME, size=600, seed="7", dry_run=True, json=True, stdout=out)
    foretold = json.loads(out.getvalue())["widths"]
    assert foretold == {name: planned[name] for name in foretold}
    out = io.StringIO()
    call_command("plan", NAME, size=600, width="20", stdout=out)
    assert re.search(r"^language +name +posts +audits +recall +precision +error$", out.getvalue(), re.M)
    assert re.search(r"^→ 15\.0% ", out.getvalue(), re.M)
    assert "\nFor 20 points:\nmeasure " in out.getvalue()


def test_a_plan_of_a_size_that_no_draw_can_have_or_that_gives_no_interval_says_so(demo_corpus):
    with pytest.raises(
        CommandError, match=r"^A draw of 1 post is too small to estimate accuracy\. Set --size to a larger number\.$"
    ):
        call_command("plan", NAME, size=1)
    err = io.StringIO()
    call_command("plan", NAME, size=1_000_000, stdout=io.StringIO(), stderr=err)
    assert "posts, so the plan is for all of them." in err.getvalue()
