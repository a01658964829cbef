"""`assay plan` and interval widths: how much to draw and read, and the effect of more or fewer audits."""

import io
import json
import re
import shlex
from collections import Counter

import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.figures import plan_report
from annotate.figures.draw_plan import Pace, draw_of, languages_of, plan, required_shares, stream_of, usual_task, widths
from annotate.figures.interval_width import (
    AUDITS,
    CHECKS,
    POSTS,
    SECONDS,
    Checks,
    Draw,
    Expected,
    Stream,
    planned,
    reading,
    width,
)
from annotate.kinds.options import OPTIONS
from annotate.models import LanguageRoute, Task
from corpora.models import Corpus
from tests.annotate.actions.test_dry_run import contents
from tests.annotate.corpus import NAME, import_posts

pytestmark = pytest.mark.slow

USUAL_CHECKS = Checks(share=0.02, least=5, recheck=0.2, second=0.1)  # of a task without any option
WIDE = {"width": "40", "languages": "de en nl"}  # points: the demo's corpus is small


def planned_for(*arguments, **options):
    out = io.StringIO()
    call_command("plan", *arguments, stdout=out, **options)
    return out.getvalue()


def as_json(*arguments, **options):
    return json.loads(planned_for(*arguments, json=True, **options))


def opened(**options):
    size = {"corpus": NAME, "seed": "7", "audit_limit": 1.0, "stdout": io.StringIO(), "stderr": io.StringIO()}
    call_command("open_task", "t", **size, **options)
    return Task.objects.get()


@pytest.mark.parametrize("never", [[], ["de"]], ids=["all may agree", "German never agrees"])
def test_the_plan_counts_as_agreed_what_a_task_of_all_posts_takes_as_agreed(demo_corpus, never):
    for code in never:
        LanguageRoute.objects.update_or_create(language=code, defaults={"queue": code, "never_agree": True})
    stream = stream_of(NAME, usual_task())
    task = opened(size=100_000)
    labels = Counter(task.units.exclude(agreed_label="").values_list("agreed_label", flat=True))
    assert stream.agreed == labels
    assert "de" in labels or never
    assert stream.all_disputed == task.units.filter(agreed_label="").count() > 0
    assert stream.posts == task.units.count()


def test_each_language_has_the_draw_that_gives_it_the_wished_width(demo_corpus):
    figures, stream = as_json(NAME, **WIDE), stream_of(NAME, usual_task())
    rows = [row for row in figures["rows"] if row["needs"]]
    assert {row["measure"] for row in rows} == {"precision", "recall"}
    for row in rows:
        needs = row["needs"]
        draw = Draw(needs["size"], needs["audit_share"], needs["audit_least"], USUAL_CHECKS)
        assert width(planned(row["measure"], row["language"], stream, draw, Expected())) <= 0.4
        assert needs["posts"] == pytest.approx(stream.share(row["language"]) * needs["size"])
        assert needs["disputed"] + needs["audits"] <= needs["reading"] + 1e-9
        assert needs["hours"] == pytest.approx((needs["disputed"] + needs["audits"] + needs["checks"]) * 12 / 3600)
    assert {row["language"] for row in figures["rows"]} == {"de", "en", "nl"} < set(languages_of(stream))


def test_a_plan_keeps_nothing_and_the_command_of_its_last_line_opens_that_draw(demo_corpus, data_dir):
    before = contents(data_dir)
    output = planned_for(NAME, **WIDE)
    assert contents(data_dir) == before
    (command,) = re.findall(r"`assay (open_task TASK [^`]+ --dry-run)`", output.splitlines()[-1])
    figures = as_json(NAME, **WIDE)
    draw, out = figures["draw"], io.StringIO()
    call_command(*shlex.split(command), "--json", stdout=out, stderr=io.StringIO())
    work = json.loads(out.getvalue())
    assert sum(work["stages"].values()) == draw["size"]
    assert work["audit"]["chosen"] == pytest.approx(draw["audits"], rel=0.2)
    assert draw["suits"] > sum(bool(row["needs"]) for row in figures["rows"]) / 2
    # Languages that no draw suits are named with what helps.
    output = planned_for(NAME, languages="de cy", measure=["error"], width="0.5")
    output = " ".join(output.split())
    assert re.search(
        r"No uniform draw is sufficient for de cy: the corpus has too few posts .* Use a larger corpus", output
    )
    assert output.endswith("or use a larger corpus.")


def test_what_hides_in_common_languages_bounds_the_recall_of_a_rare_one():
    stream = Stream({"en": 600_000, "es": 250_000, "sv": 400}, {"en": 79_000, "es": 70_400, "sv": 200})
    options = {"measures": ["recall"], "languages": ["en", "es", "sv"], "wished": 0.05, "pace": Pace(12, 10)}
    figures = plan(stream, usual_task_of_nobody(), expected=Expected(), **options)
    english, _, swedish = figures["rows"]
    assert english["needs"]["size"] < 2_000
    # At least a fifth of the common languages must be audited.
    assert swedish["needs"]["audit_share"] >= 0.2
    assert 296 < 0.6 * swedish["alone"] < 400
    assert swedish["alone"] > swedish["decoys"] > 100
    assert swedish["needs"]["reading"] > 30 * (swedish["alone"] + swedish["decoys"])
    assert "For sv, a recall-oriented set requires at most a tenth of this reading." in plan_report.missing(
        figures, "recall"
    )
    [sentence] = plan_report.without_decoys(figures)
    two, five = swedish["without_decoys"]
    assert [two["false_yes"], five["false_yes"]] == [0.02, 0.05]
    assert f"recall {100 * two['width']:.1f} points (2%) or {100 * five['width']:.1f} points (5%)" in sentence
    (reach,) = figures["recall"]
    assert (reach["language"], reach["width"]) == ("sv", 1.0)
    assert reach["stated"] is None or reach["elsewhere"] < reach["stated"]


def usual_task_of_nobody():
    return Task(options={"audit_limit": 0.1, "audit_recheck": 0.2})


def test_a_plan_includes_the_reading_after_audits_that_fail_by_chance(demo_corpus):
    stream = Stream(dict.fromkeys(("de", "en", "fr"), 50_000), {"de": 10_000})
    options = {"measures": ["precision"], "languages": ["de"], "wished": 0.05, "pace": Pace(12, 10)}
    of = [
        plan(stream, usual_task_of_nobody(), expected=Expected(wrong=wrong), **options)["draw"]["contested"]
        for wrong in (0.0, 0.08)
    ]
    assert of[0] == 0 < of[1]


@pytest.mark.django_db
def test_what_cannot_be_planned_is_one_sentence(demo_corpus):
    for options, sentence in (
        ({"languages": "de xx"}, "The detectors label no post of corpus demo as xx. Available languages: "),
        ({"width": "5%"}, "--width: '5%' is not a number of points. Write it as 5 or 2.5."),
        ({"width": "0"}, "--width is 0. It must be 0.1 to 100."),
    ):
        with pytest.raises(CommandError) as refused:
            planned_for(NAME, **options)
        assert str(refused.value).startswith(sentence)


@pytest.mark.django_db
def test_a_corpus_without_votes_or_posts_cannot_be_planned_for(data_dir):
    with pytest.raises(CommandError, match="The corpus 'demo' does not exist"):
        planned_for(NAME)
    import_posts()
    with pytest.raises(CommandError, match=r"posts in corpus demo have no votes. Run `assay prelabel demo`"):
        planned_for(NAME)
    assert Corpus.objects.count() == 1


ZIPF = {f"l{rank:02d}": rank**-1.1 for rank in range(1, 51)}
STREAM = Stream(
    {label: round(170_000 * part) for label, part in ZIPF.items()},
    {label: round(56_000 * part) for label, part in ZIPF.items()},
)
CHECKED = {"audit_recheck": 0.2, "check_share": 0.1}


def task(**options):
    return Task(options={"audit_share": 0.2, "audit_least": 5, **CHECKED, **options})


def test_as_many_audits_as_before_make_most_recalls_half_as_wide():
    """The former default, 2% and at least 30 of each label, made 1,498 audits and these widths of recall."""
    figures = widths(task(), STREAM, 10_000, Expected(voted=True), 12)
    of = {row["language"]: row["recall"] for row in figures["languages"]}
    assert next(row for row in figures["curve"] if row["share"] == 0.2)["audits"] == pytest.approx(1_505, abs=3)
    for label, before in {"l05": 0.161, "l10": 0.275, "l20": 0.437, "l40": 1.0}.items():
        assert of[label] < before / 2
    assert figures["accuracy"] < 0.85 * 0.0266
    assert figures["error"] < 0.0363 / 2


def test_a_check_of_confirmations_narrows_more_than_as_many_further_audits():
    """By default 30% of confirmed audits are checked, not 20%, so fewer audits take the same reading."""
    draws = ((0.2, 0.2), (0.185, OPTIONS["audit_recheck"].default))
    further, checked = (
        widths(task(audit_share=share, audit_recheck=recheck), STREAM, 10_000, Expected(voted=True), 12)
        for share, recheck in draws
    )
    first, second = (
        (1 + recheck) * next(row for row in figures["curve"] if row["share"] == share)["audits"]
        for figures, (share, recheck) in zip((further, checked), draws, strict=True)
    )
    assert second == pytest.approx(first, rel=0.01)
    assert checked["error"] < 0.95 * further["error"]
    assert checked["accuracy"] < further["accuracy"]
    for row, before in zip(checked["languages"], further["languages"], strict=True):
        if before["recall"] is not None:
            assert row["recall"] < 1.05 * before["recall"]


def test_the_curve_falls_and_has_the_tasks_own_share():
    report = widths(task(audit_share=0.12), STREAM, 10_000, Expected(), 12)
    curve = report["curve"]
    assert [row["share"] for row in curve] == [0.02, 0.05, 0.1, 0.12, 0.15, 0.2, 0.3, 0.5]
    for measure in ("accuracy", "error", "recall", "precision"):
        stated = [row[measure] for row in curve if row[measure] is not None]
        assert stated == sorted(stated, reverse=True)
    point = curve[3]
    assert (point["accuracy"], point["error"]) == (report["accuracy"], report["error"])
    with_checks = reading(STREAM, draw_of(task(audit_share=0.12), 10_000)).work
    assert with_checks > point["read"]
    assert point["hours"] == pytest.approx(with_checks * 12 / 3600)
    [row] = [row for row in report["languages"] if row["language"] == report["typical"]]
    assert (point["recall"], point["precision"]) == (row["recall"], row["precision"])
    plot = plan_report.curve_plot(report)
    figures = ("accuracy", "error", "recall", "precision")
    assert plot.count("<circle") == sum(row[figure] is not None for row in curve for figure in figures)
    assert f"{point['audits']:,.0f} audits, {100 * point['accuracy']:.1f} points" in plot


def test_further_work_narrows_accuracy_and_the_kind_that_does_most_comes_first():
    """Where few are audited, audits do most; where all are, what people decide alone is what is not known."""
    few, all_read = (widths(task(audit_share=share), STREAM, 10_000, Expected(), 12) for share in (0.05, 1.0))
    assert few["next"][0]["work"] == AUDITS
    assert {row["work"] for row in few["next"]} == {AUDITS, CHECKS, SECONDS, POSTS}
    assert AUDITS not in {row["work"] for row in all_read["next"]}
    assert all_read["next"][0]["work"] in (CHECKS, SECONDS)
    for figures in (few, all_read):
        assert all(row["accuracy"] <= figures["accuracy"] + 1e-4 for row in figures["next"])
    more = [row["more"] for row in few["next"]]
    assert max(more) < 1.2 * min(more)
    assert (
        plan_report.next_words(few)
        == "With the same amount of further reading, audits would narrow the interval of accuracy most:"
    )


def test_the_share_for_a_wished_width_gives_it_and_a_smaller_one_does_not():
    rows = {row["measure"]: row for row in required_shares(task(), STREAM, 10_000, 0.2, Expected(), 12)}
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
    rows = {row["measure"]: row for row in required_shares(task(), STREAM, 400, 0.01, Expected(), 12)}
    assert rows["recall"] == {"measure": "recall", "share": None, "audits": None, "read": None, "hours": None}


def test_plan_and_a_dry_run_say_the_same_widths_of_a_draw(demo_corpus):
    out = io.StringIO()
    call_command("plan", NAME, size=600, json=True, stdout=out)
    planned = json.loads(out.getvalue())
    out = io.StringIO()
    call_command("open_task", "t", corpus=NAME, size=600, seed="7", dry_run=True, json=True, stdout=out)
    widths = json.loads(out.getvalue())["widths"]
    assert widths == {name: planned[name] for name in widths}
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
