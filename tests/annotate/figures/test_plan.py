"""`assay plan`: how much must be drawn and read for intervals of a wished width, before anything is opened."""

import io
import json
import re
import shlex
from collections import Counter

import pytest
from django.core.management import CommandError

from annotate.actions.commands import call_command
from annotate.figures import plan_report
from annotate.figures.draw_plan import Pace, languages_of, plan, stream_of, usual_task
from annotate.figures.interval_width import Checks, Draw, Expected, Stream, planned, width
from annotate.models import LanguageRoute, Task
from corpora.models import Corpus
from tests.annotate.actions.test_dry_run import contents
from tests.annotate.corpus import NAME, import_posts

pytestmark = pytest.mark.slow


CHECKS = Checks(share=0.02, least=5, recheck=0.2, second=0.1)  # of a task without any option
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
    found, stream = as_json(NAME, **WIDE), stream_of(NAME, usual_task())
    rows = [row for row in found["rows"] if row["needs"]]
    assert {row["measure"] for row in rows} == {"precision", "recall"}
    for row in rows:
        needs = row["needs"]
        draw = Draw(needs["size"], needs["audit_share"], needs["audit_least"], CHECKS)
        assert width(planned(row["measure"], row["language"], stream, draw, Expected())) <= 0.4
        assert needs["posts"] == pytest.approx(stream.share(row["language"]) * needs["size"])
        assert needs["disputed"] + needs["audits"] <= needs["reading"] + 1e-9
        assert needs["hours"] == pytest.approx((needs["disputed"] + needs["audits"] + needs["checks"]) * 12 / 3600)
    assert {row["language"] for row in found["rows"]} == {"de", "en", "nl"} < set(languages_of(stream))


def test_a_plan_keeps_nothing_and_the_command_of_its_last_line_opens_that_draw(demo_corpus, data_dir):
    before = contents(data_dir)
    told = planned_for(NAME, **WIDE)
    assert contents(data_dir) == before
    (command,) = re.findall(r"`assay (open_task TASK [^`]+ --dry-run)`", told.splitlines()[-1])
    found = as_json(NAME, **WIDE)
    draw, out = found["draw"], io.StringIO()
    call_command(*shlex.split(command), "--json", stdout=out, stderr=io.StringIO())
    work = json.loads(out.getvalue())
    assert sum(work["stages"].values()) == draw["size"]
    assert work["audit"]["chosen"] == pytest.approx(draw["audits"], rel=0.2)
    assert draw["suits"] > sum(bool(row["needs"]) for row in found["rows"]) / 2
    # Languages that no draw suits are named with what helps.
    told = planned_for(NAME, languages="de cy", measure=["error"], width="0.5")
    assert re.search(
        r"^No uniform draw is sufficient for de cy: the corpus has too few posts .* Use a larger corpus", told, re.M
    )
    assert told.endswith("or use a larger corpus.\n")


def test_what_hides_in_common_languages_bounds_the_recall_of_a_rare_one():
    stream = Stream({"en": 600_000, "es": 250_000, "sv": 400}, {"en": 79_000, "es": 70_400, "sv": 200})
    given = {"measures": ["recall"], "languages": ["en", "es", "sv"], "wished": 0.05, "pace": Pace(12, 10)}
    found = plan(stream, usual_task_of_nobody(), expected=Expected(), **given)
    english, _, swedish = found["rows"]
    assert english["needs"]["size"] < 2_000
    # A fifth of the common languages must be read, for what a set of its own tells.
    assert swedish["needs"]["audit_share"] >= 0.2
    assert 296 < 0.6 * swedish["alone"] < 400
    assert swedish["alone"] > swedish["decoys"] > 100
    assert swedish["needs"]["reading"] > 30 * (swedish["alone"] + swedish["decoys"])
    assert "For sv, a recall-oriented set requires at most a tenth of this reading." in plan_report.missing(
        found, "recall"
    )
    [sentence] = plan_report.without_decoys(found)
    two, five = swedish["without_decoys"]
    assert [two["false_yes"], five["false_yes"]] == [0.02, 0.05]
    assert f"recall {100 * two['width']:.1f} points (2%) or {100 * five['width']:.1f} points (5%)" in sentence
    (reach,) = found["recall"]
    assert (reach["language"], reach["width"]) == ("sv", 1.0)
    assert reach["stated"] is None or reach["elsewhere"] < reach["stated"]


def usual_task_of_nobody():
    return Task(options={"audit_limit": 0.1, "audit_recheck": 0.2})


def test_what_is_read_where_the_audit_fails_by_chance_is_told(demo_corpus):
    stream = Stream(dict.fromkeys(("de", "en", "fr"), 50_000), {"de": 10_000})
    given = {"measures": ["precision"], "languages": ["de"], "wished": 0.05, "pace": Pace(12, 10)}
    of = [
        plan(stream, usual_task_of_nobody(), expected=Expected(wrong=wrong), **given)["draw"]["contested"]
        for wrong in (0.0, 0.08)
    ]
    assert of[0] == 0 < of[1]


@pytest.mark.django_db
def test_what_cannot_be_planned_is_one_sentence(demo_corpus):
    for options, sentence in (
        ({"languages": "de xx"}, "The detectors label no post of corpus demo as xx. Remove it; available languages: "),
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
