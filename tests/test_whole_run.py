"""The whole way of the data in a small run: from a file of posts to a gold set, with people at a real server."""

import io
import json
import random
import secrets
from collections import Counter

import pytest
from django.contrib.auth.models import User
from knox.models import AuthToken

from annotate.actions.registry import call_command
from annotate.core import stages
from annotate.models import Annotator, Judgment, Unit
from annotate.work.accounts import add_annotators
from annotate.work.people_file import read_table
from benchmarks import tally
from benchmarks.clients import Browser, Log, adjudicate, let_read
from benchmarks.material import Post, write_jsonl
from benchmarks.whole_run import acknowledged
from benchmarks.world import Reader, World
from corpora.core.languages import COVERAGE
from corpora.core.masking import clean_for_detectors, count_letters

pytestmark = [pytest.mark.both_databases, pytest.mark.slow]


SEED = "2015"
SLIP = 0.015
IN_CORPUS, DRAWN = 260, 150
NAME = "small"
# One wrong post among a few proves, with 95% confidence, that the error in its language exceeds this.
AUDIT = {"audit_share": 0.5, "audit_least": 2, "audit_limit": 0.01}


@pytest.fixture
def posts(settings):
    """A sample of the demo posts, each with its true language."""
    fixtures = settings.BASE_DIR / "fixtures"
    with open(fixtures / "demo_truth.tsv", encoding="utf-8") as file:
        truth = dict(line.rstrip("\n").split("\t") for line in file)
    with open(fixtures / "demo_posts.jsonl", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    everything = [Post(row["id"], row["text"], truth[row["id"]]) for row in rows]
    return random.Random(SEED).sample(everything, IN_CORPUS)


@pytest.fixture
def readers(settings, transactional_db):
    """The demo's invented people, each with a token."""
    rows = read_table(settings.BASE_DIR / "fixtures" / "annotators.csv")
    add_annotators(rows)
    ada = User.objects.create_user("ada", password="ada has a long password")
    Annotator.objects.create(user=ada, adjudicates=True)
    return {
        Reader(row.username, tuple(code for code, level in row.levels.items() if level >= 4)): AuthToken.objects.create(
            User.objects.get(username=row.username)
        )[1]
        for row in rows
    }


def agreed_by_votes(row, policy):
    """Return the label on which the exported votes agree by the task's policy, or None, computed without routing."""
    first = {vote["detector"]: vote["language"] for vote in row["votes"] if vote["rank"] == 1}
    code = first.get("cld2")
    if first != dict.fromkeys(COVERAGE, code) or not all(code in codes for codes in COVERAGE.values()):
        return None
    counts = code in policy["labels"] and code not in policy["never_agree"]
    (letters,) = count_letters([clean_for_detectors(row["text"])])
    return code if counts and letters >= policy["least_letters"] else None


def history(unit):
    """Return the history of an unfinished unit, and who still has it."""
    moves = unit.transitions.values_list("event", "to_stage", "language", "round", "by__username")
    judgments = unit.judgments.values_list("annotator__user__username", "kind", "label", "voided_at")
    held = unit.leases.values_list("annotator__user__username", "outcome", "opened_at", "expires_at", "closed_at")
    return unit.item.key, unit.language, unit.visited, list(moves), list(judgments), list(held)


def test_a_whole_run_ends_in_a_gold_set_that_is_right_and_holds_every_answer(
    live_server, posts, readers, tmp_path, monkeypatch
):
    world = World(posts, slip=SLIP, seed=SEED)
    write_jsonl(posts, tmp_path / "posts.jsonl")
    call_command("import_corpus", NAME, str(tmp_path / "posts.jsonl"), licence="CC-BY-4.0", stdout=io.StringIO())
    call_command("prelabel", NAME, processes=1, stdout=io.StringIO(), stderr=io.StringIO())
    # With this draw, one of the audits finds an error.
    with monkeypatch.context() as patch:
        patch.setattr(secrets, "token_hex", lambda size: f"{1:0{2 * size}x}")
        call_command("open_task", NAME, corpus=NAME, size=DRAWN, seed=SEED, **AUDIT, stdout=io.StringIO())
    reading, deciding = Log(), Log()
    # A language that fails its audit goes to readers after the adjudicator has decided.
    while Unit.objects.filter(stage__in=[stages.QUEUED, stages.ADJUDICATION]).exists():
        let_read(live_server.url, NAME, readers, world.answer, reading, pause=0.2)
        assert [history(unit) for unit in Unit.objects.filter(stage=stages.QUEUED)] == []
        browser = Browser(live_server.url, deciding)
        adjudicate(browser, NAME, "ada", world.decided)
        browser.close()
    call_command("export_gold", NAME, out=tmp_path / "gold", stdout=io.StringIO())

    # everything is finished, in every possible way
    rows = tally.read_gold(tmp_path / "gold")
    outcomes = tally.outcomes(rows, world)
    assert len(outcomes) == DRAWN
    ways = Counter(outcome.way for outcome in outcomes)
    assert ways["unfinished"] == 0
    assert set(ways) >= {"agreed", "round 1", "adjudication"}
    print(ways)
    manifest = json.loads((tmp_path / "gold" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["finished"]
    # the files contain every answer that the server acknowledged, and no others
    assert set(reading.statuses) == {200}
    assert set(deciding.statuses) == {200, 302}
    assert len(reading.acknowledged) + len(deciding.acknowledged) == Judgment.objects.count() > 0
    assert acknowledged(reading, deciding) == tally.exported_judgments(rows)
    # units that people answered are right, except for their mistakes
    for strata in ({"disputed"}, {"audited", "contested"}):
        wrong, labelled = tally.errors(outcomes, lambda outcome, strata=strata: outcome.stratum in strata)
        assert labelled > 20
        assert wrong / labelled <= 0.1
    # units that people did not answer are as right as the votes
    by_votes = {row["id"]: label for row in rows if (label := agreed_by_votes(row, manifest["task"])) is not None}
    assert {row["id"]: row["agreed"] for row in rows if row["agreed"]} == by_votes
    assert {row["id"] for row in rows if row["stratum"] != "disputed"} == set(by_votes)
    assert all(row["label"] == row["agreed"] for row in rows if row["stratum"] == "agreed" and not row["judged_as"])
    assert 0 < sum(label != world.truth[key] for key, label in by_votes.items()) < len(by_votes)
    # some units in each language were audited, and where the audit failed, all were read
    counts = Counter((row["agreed"], row["stratum"]) for row in rows if row["agreed"])
    for row in manifest["audit"]["languages"]:
        language = row["language"]
        assert counts[language, "audited"] >= min(AUDIT["audit_least"], row["posts"])
        assert not (counts[language, "agreed"] and counts[language, "contested"])
        assert row["contested"] == (counts[language, "contested"] > 0)
        assert not row["waiting"]
        assert not row["over_limit"]
    assert {stratum for _, stratum in counts} == {"agreed", "audited", "contested"}
