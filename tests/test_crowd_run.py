"""A crowd with a spammer at a real server, small: the benchmark `crowd` does this with more people, units and seeds."""

import io
import json
from collections import Counter
from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from knox.models import AuthToken

from annotate.actions.registry import call_command
from annotate.core import pause_rule
from annotate.core.pause_rule import Rule
from annotate.models import Judgment, Task
from annotate.work.accounts import add_annotators
from annotate.work.people_file import Row
from benchmarks import crowd as benchmark
from benchmarks.clients import Log
from benchmarks.crowd_clients import Replies, let_loose
from benchmarks.crowd_seeds import EntryTest, Guard
from benchmarks.crowd_work import facts, void_paused
from benchmarks.crowd_world import LANGUAGE, PRACTICE, QUEUE, TEST, WORK, Labeler, World, crowd, records

pytestmark = pytest.mark.slow


SEED = "2015"
UNITS = 36
NAME = benchmark.NAME
# Always wrong after the test, so that finding this one does not depend on luck.
SPAMMER = Labeler("spammer", accuracy=0.0, tested=1.0, spams=True)
# This one does not even pass the test.
GUESSER = Labeler("guesser", accuracy=0.0, tested=0.0)
LABELERS = [*(replace(labeler, tested=1.0) for labeler in crowd(7, 0, low=0.88, high=0.96)), SPAMMER, GUESSER]
GUARD = Guard(EntryTest(4, 0.75, 2), Rule(0.5, 0.9, 4), gold_share=0.3, gold_pool=20)


@pytest.fixture
def world(tmp_path, transactional_db, monkeypatch):
    """A task of qa_match with all quality controls, created from files by the commands."""
    # With so few units, there are not enough gold answers for the usual rule.
    monkeypatch.setattr(pause_rule, "CONFIDENCE", GUARD.rule.confidence)
    monkeypatch.setattr(pause_rule, "LEAST", GUARD.rule.least)
    made = World(records({WORK: UNITS, PRACTICE: 2, TEST: 12, QUEUE: GUARD.gold_pool}, SEED), SEED, skipped=0.1)
    corpus, gold = benchmark.write_records(made, tmp_path)
    quiet = {"stdout": io.StringIO(), "stderr": io.StringIO()}
    call_command("import_corpus", NAME, str(corpus), "--fields=question passage", "--licence=CC0-1.0", **quiet)
    options = [f"--{option}={value}" for option, value in benchmark.task_options(GUARD).items()]
    call_command(
        *("open_task", NAME, "--kind=qa_match", f"--corpus={NAME}", f"--gold={gold}", f"--languages={LANGUAGE}"),
        *(f"--seed={SEED}", *options),
        **quiet,
    )
    return made


@pytest.fixture
def tokens(world):
    add_annotators([Row(labeler.name, "", {LANGUAGE: 5}) for labeler in LABELERS])
    return {labeler: AuthToken.objects.create(User.objects.get(username=labeler.name))[1] for labeler in LABELERS}


def test_a_crowd_with_a_spammer_gives_each_unit_its_answers_and_loses_the_spammers(live_server, world, tokens):
    results, log = Replies(), Log()
    task = Task.objects.get(name=NAME)
    let_loose(live_server.url, NAME, tokens, world, results, log, tested=True, pause=0.1)
    first = json.loads(json.dumps(facts(task)))

    # the guesser fails the test; the spammer, honest in the test, is caught by the hidden gold answers
    assert results.passed == {labeler.name: labeler is not GUESSER for labeler in LABELERS}
    assert len(results.tests[GUESSER.name]) == GUARD.test.tries
    assert SPAMMER.name in first["paused"]
    assert SPAMMER.name in results.paused
    # together with the earlier answers, each unit has its three answers
    assert not first["faults"]
    assert first["stages"] == {"LABELLED": UNITS}
    assert first["answers"] == {"3": UNITS}

    while reopened := void_paused(task):
        assert sum(reopened.values()) > 0
        assert Counter(task.units.filter(honeypot=False).values_list("stage", flat=True))["QUEUED"] > 0
        let_loose(live_server.url, NAME, tokens, world, results, log, pause=0.1)

    then = json.loads(json.dumps(facts(task)))
    assert benchmark.wrong(benchmark.Outcome(results, log, then, []), UNITS) == []
    assert then["voided"] > 0
    assert not Judgment.objects.filter(
        annotator__user__username=SPAMMER.name, unit__task=task, voided_at=None, kind="answer"
    ).exists()
    assert benchmark.right_share(then["labels"], world) >= 0.8
    # gold answers do not count as work
    assert not set(then["labels"]) - {record.id for record in world.records.values() if record.purpose == WORK}
    # nothing was refused except a third try of the test
    assert set(log.statuses) == {200, 403}
    assert log.statuses[403] == 1
