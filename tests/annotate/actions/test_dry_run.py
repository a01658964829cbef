"""`open_task --dry-run`: a task's work and the people available for it, without opening the task."""

import io
import json
import re

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError
from django.db import connection
from scipy.stats import binom

from annotate.actions import opening_summary as telling
from annotate.actions.registry import call_command
from annotate.core import stages
from annotate.models import Task
from tests.annotate.corpus import NAME

UNIFORM = {"corpus": NAME, "size": 200, "seed": "7", "audit_least": 3, "audit_limit": 1.0}
PRECISION = {"corpus": NAME, "size": 10, "seed": "7", "design": "precision", "predictor": "cld2", "languages": "de nl"}


def contents(folder):
    """Return all database rows and the contents of all files in the data folder."""
    with connection.cursor() as cursor:
        rows = {}
        for name in sorted(connection.introspection.table_names()):
            cursor.execute(f'SELECT * FROM "{name}"')
            rows[name] = sorted(map(repr, cursor.fetchall()))
    return rows, {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def opened(command="open_task", **options):
    out, err = io.StringIO(), io.StringIO()
    call_command(command, "t", json=True, stdout=out, stderr=err, **options)
    return json.loads(out.getvalue()), err.getvalue()


def printed(**options):
    """Return what the command prints in a dry run."""
    out = io.StringIO()
    call_command("open_task", "t", dry_run=True, stdout=out, stderr=io.StringIO(), **options)
    return out.getvalue()


def test_a_task_is_opened_to_its_members_only(demo_corpus):
    opened(**PRECISION, open_to="members", dry_run=True)
    assert not Task.objects.exists()
    opened(**PRECISION, open_to="members")
    assert Task.objects.get().members_only


def check_recheck(audit):
    """Nobody foresees which posts are checked, a dry run neither: it draws by another secret. Takes the number out."""
    if audit:
        low, high = binom.interval(0.999, audit["chosen"], 0.2)
        assert low <= audit.pop("recheck") <= high


@pytest.mark.parametrize("options", [UNIFORM, PRECISION], ids=["uniform", "precision"])
def test_a_dry_run_tells_the_figures_of_the_real_one_and_keeps_nothing(demo_corpus, data_dir, person, options):
    person("ann", "de:5 en:4 nl:3")
    person("ben", "en")
    person("ada", adjudicates=True)
    before = contents(data_dir)
    foretold, warned = opened(dry_run=True, **options)
    assert contents(data_dir) == before
    real, warned_then = opened(**options)
    audited = Task.objects.get().units.filter(audited=True)
    if options == UNIFORM:
        assert foretold["audit"]["chosen"] == audited.count() > 0
        for label, of in foretold["audit"]["languages"].items():
            assert of["chosen"] == audited.filter(agreed_label=label).count() == min(3, of["posts"])
    assert (foretold.pop("dry_run"), real.pop("dry_run")) == (True, False)
    assert foretold.pop("forecast")["assumed"]
    assert bool(foretold.pop("widths")) == (options == UNIFORM)
    for summary in (foretold, real):
        check_recheck(summary["audit"])
    assert foretold == real
    # The dry run's table shows who is missing in a queue.
    others = [line for line in warned_then.splitlines() if not line.startswith("Warning: items in these queues lack")]
    assert warned.splitlines() == others != warned_then.splitlines()
    task = Task.objects.get()
    for row in real["queues"]:
        assert row["units"] == task.units.filter(stage=stages.QUEUED, language=row["queue"]).count() > 0
    assert sum(row["units"] for row in real["queues"]) == real["stages"]["QUEUED"] == real["units"]
    readers = {row["queue"]: row["readers"] for row in real["queues"]}
    assert readers["de"] == 1
    assert set(real["unread"]) == {queue for queue, number in readers.items() if not number}
    assert real["adjudicators"] == 1


@pytest.mark.slow
def test_a_dry_run_says_what_the_audit_costs(demo_corpus):
    options = UNIFORM | {"size": 1_200}
    audit, output = opened(dry_run=True, **options)[0]["audit"], " ".join(printed(**options).split())
    assert audit["hours"] == pytest.approx(audit["chosen"] * 12 / 3600)
    assert f"This takes {audit['hours']:.1f} hours at the assumed pace." in output
    mostly = [label for label, of in audit["languages"].items() if of["chosen"] >= of["posts"] / 3]
    assert 0 < len(mostly) < len(audit["languages"])
    assert f"The audit includes a third or more of the items in: {', '.join(mostly)}." in output


@pytest.mark.slow
def test_a_dry_run_says_how_likely_the_audit_fails_by_chance_and_what_that_costs(demo_corpus):
    """One wrong of three leaves up to 81.0% possible, two up to 95.8%: that is over a limit of 85%."""
    options = UNIFORM | {"audit_share": 0.0, "audit_limit": 0.85}
    audit, output = opened(dry_run=True, **options)[0]["audit"], " ".join(printed(**options).split())
    some_left = {label: of for label, of in audit["languages"].items() if of["posts"] > of["chosen"]}
    assert some_left
    for label, of in audit["languages"].items():
        chance = 3 * 0.01**2 * 0.99 + 0.01**3 if label in some_left and of["chosen"] == 3 else of["chance"]
        assert of["chance"] == pytest.approx(chance)
        assert of["contested"] == pytest.approx(of["chance"] * (of["posts"] - of["chosen"]))
    able = sum(of["chosen"] >= 3 for of in audit["languages"].values())
    assert f"In {able} of {len(audit['languages'])} languages, the audit is large enough to show" in output
    assert "fails the audit by chance in <0.1% of cases" in output
    without, _ = opened(dry_run=True, **UNIFORM)
    assert without["audit"]["contested"] == 0


def test_a_dry_run_of_a_larger_draw_tells_what_it_adds_and_both_are_summed_up_outside_of_the_transaction(
    demo_corpus, data_dir, monkeypatch
):
    """Other transactions can then write in between."""
    outside, inside, summarize = len(connection.savepoint_ids), [], telling.summary

    def summary(*arguments, **options):
        inside.append(len(connection.savepoint_ids) - outside)
        return summarize(*arguments, **options)

    monkeypatch.setattr(telling, "summary", summary)
    opened(**UNIFORM)
    assert inside == [0]
    before = contents(data_dir)
    foretold, _ = opened("extend_task", dry_run=True, size=300)
    assert contents(data_dir) == before
    inside.clear()
    real, _ = opened("extend_task", size=300)
    assert inside == [0]
    assert foretold.pop("forecast")["queues"]
    assert foretold.pop("widths")["accuracy"]
    assert foretold | {"dry_run": False} == real
    assert sum(real["stages"].values()) == 100
    # A dry run is refused like the real one.
    before = contents(data_dir)
    with pytest.raises(CommandError, match="The task 't' already exists"):
        opened(dry_run=True, **UNIFORM)
    with pytest.raises(CommandError, match="Set --size to a larger number"):
        opened("extend_task", dry_run=True, size=100)
    assert contents(data_dir) == before
    assert not User.objects.exists()


def test_a_dry_run_says_how_many_units_ask_for_several_people(demo_corpus, data_dir, person, monkeypatch):
    monkeypatch.setattr("annotate.models.tasks.secrets.token_hex", lambda size: "a" * 2 * size)  # it draws the units
    person("ann", "en:5")
    output = printed(redundancy=1.2, **UNIFORM)
    units = int(re.search(r"^en +English +(\d+) ", output, re.MULTILINE)[1])
    several = rf"^\* en: (\d+) of {units} items need 2 people, but the queue has fewer readers$"
    assert 0 < int(re.search(several, output, re.MULTILINE)[1]) < units / 2


def test_a_dry_run_of_records_tells_who_reads_a_language_and_who_has_passed_its_test(data_dir, person, settings):
    person("ann", "de:5 en:5")
    person("ben", "en")
    files = sorted((settings.BASE_DIR / "fixtures/records").glob("qa_match.*.jsonl"))
    how = {"fields": "question passage", "licence": "CC0-1.0", "stdout": io.StringIO()}
    call_command("import_corpus", "qa", *map(str, files), **how)
    options = {"corpus": "qa", "kind": "qa_match", "seed": "7", "test_items": 5, "gold": files}
    options |= {"gold_column": ["label=truth", "explanation=why"], "redundancy": 3}
    before = contents(data_dir)
    foretold, _ = opened(dry_run=True, **options)
    assert contents(data_dir) == before
    rows = {row["queue"]: row for row in foretold["queues"]}
    people = {code: (row["readers"], row["qualified"], row["needs"]) for code, row in rows.items()}
    assert people == {"de": (1, 0, 3), "en": (2, 0, 3), "fr": (0, 0, 3)}
    assert all(row["answers"] == 3 * row["units"] for row in rows.values())
    assert foretold["unread"] == ["fr"]
    assert foretold["forecast"]["assumed"]["seconds"] == 30  # the pace of the kind
    text = printed(**options)
    assert re.search(r"^language +name +items +answers +readers +passed the test +may work now$", text, re.MULTILINE)
    assert "* de, en: each item needs 3 people, but the queue has fewer readers\n" in text
    assert "No active annotator reads 1 queue with 30 items: fr.\n" in text
    assert "There is no adjudicator for items on which readers disagree.\n" in text
    assert text.endswith("This was a dry run: nothing was stored. Run the command without --dry-run to do the same.\n")


@pytest.mark.slow
def test_a_dry_run_tells_when_each_language_is_expected_to_be_done(demo_corpus, person):
    for name in ("ann", "ben", "cem", "dan"):
        person(name, "en:5 nl:4")
    person("ada", adjudicates=True)
    options = UNIFORM | {"size": 400}
    summary = opened(dry_run=True, **options)[0]
    rows = {row["queue"]: row for row in summary["forecast"]["queues"]}
    assert rows.keys() == {row["queue"] for row in summary["queues"]}
    assert [rows[queue]["readers"] for queue in ("en", "nl")] == [4, 4]
    assert 0 < rows["en"]["days"]["low"] <= rows["en"]["days"]["middle"] <= rows["en"]["days"]["high"]
    unread = [rows[queue] for queue in summary["unread"]]
    assert all(row["days"]["middle"] is None for row in unread)
    two_more = [row["more"] for row in unread if row["more"]]  # readers
    assert {more["sooner"] for more in two_more} == {None}
    assert all(more["days"]["middle"] > 0 for more in two_more)
    assert summary["forecast"]["adjudication"]["adjudicators"] == 1
    output = " ".join(printed(**options).split())
    assert "All work with readers finishes about" in output
    assert "The dates assume 12 seconds per answer and 10 hours per week for each reader" in output
