"""Random draws that nobody can foresee and everybody can verify: what exports contain, and what verify_lots finds."""

import io

import pyarrow.parquet as pq
import pytest
from django.conf import settings
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.controls.agreement_audit import contest
from annotate.controls.audited_units import add_audits
from annotate.controls.checks import add_checks
from annotate.core import stages
from annotate.core.draws.committed_draws import fixed_digest, outcome, outcome_digest
from annotate.kinds import Answer
from annotate.models import Annotator, Lease, Lot, Task
from annotate.work.answer_changes import undo
from annotate.work.judgments import judge, skip
from annotate.work.queue import release, take
from tests.annotate import acts
from tests.annotate.conftest import AGREED, DISPUTED, make_person, records_task_maker, task_maker
from tests.annotate.goldsets.set_contents import everything_in, json_lines
from tests.annotate.told_sets import (
    manifest_of,
    of_lots,
    recount,
    retell,
    rewrite,
    settle_all,
    sha,
    tell,
    verified,
    with_manifest_of,
)

pytestmark = [pytest.mark.django_db, pytest.mark.on_sqlite]

POTS = ["1", "0"] * 4
FRENCH = ("fr", "fr", "fr")


def worked_on_posts():
    """A task of posts in which people did all that lots decide: audits that were added to and contested, rechecks,
    checks, units for two, and second opinions.
    """
    lots = {"audit_share": 0.2, "audit_least": 3, "audit_recheck": 0.4, "audit_limit": 1.0}
    checks = {"check_share": 0.3, "redundancy": 1.3}
    task = task_maker()([AGREED] * 14 + [DISPUTED] * 12 + [FRENCH] * 6, **lots, **checks)
    with_manifest_of("corpus")
    add_audits(task, 4)
    add_checks(task, 2)
    contest(task, "fr")
    for name in ("ann", "ben"):
        acts.work_through(make_person(name, "de:5 en:5 fr:5"), task)
    settle_all([make_person(name, adjudicates=True) for name in ("ada", "eve")], task)
    assert not task.units.exclude(stage__in=stages.FINISHED).exists()
    return task


def worked_on_records():
    """A task of records with a test and gold answers, in two languages, in which people took answers back, and
    released and skipped some units.
    """
    gold = {"queue": POTS, "test": ["1", "0"] * 4}
    how = {"gold_share": 0.25, "pause_below": 0, "test_items": 3, "pass_mark": 0.1}
    task = records_task_maker()("qa_match", 16, languages=("en", "de"), gold=gold, **how)
    with_manifest_of("records")
    for name in ("fay", "gus"):
        annotator = make_person(name, "en de")
        for language in ("en", "de"):
            passed(annotator, task, language)
        number = 0
        while lease := take(annotator, task):
            number += 1
            if number % 7 == 0:
                release(annotator, lease.pk)
                lease = take(annotator, task)
            if number % 11 == 0:
                skip(annotator, lease.pk)
                continue
            judge(annotator, lease.pk, Answer("1"))
            if number % 5 == 0:
                judge(annotator, undo(annotator, task).pk, Answer("0"))
    return task


def passed(annotator, task, language):
    """Take the practice and the test as the annotator."""
    acts.begin(annotator, task, language, "practice")
    trial = acts.begin(annotator, task, language, "test")
    for question in trial.answers.order_by("position"):
        acts.answer(annotator, question.pk, "1")


def make_sets():
    """Both tasks, exported while they are open, and with their secret once they are closed."""
    for task in (worked_on_posts(), worked_on_records()):
        call_command("export_gold", task.name, out=settings.DATA_DIR / f"open-{task.name}", stdout=io.StringIO())
        tell(task, settings.DATA_DIR / task.name)


@pytest.fixture(scope="module")
def begin(make_world):
    return make_world(make_sets)


@pytest.fixture
def sets(begin, data_dir, db):
    begin(data_dir)
    return data_dir


@pytest.fixture
def posts(sets):
    """The folder of a set of posts, with its secret."""
    return sets / "task"


@pytest.fixture
def records(sets):
    """The folder of a set of records, with its secret."""
    return sets / "crowd"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "gold"


# --- honest sets


def test_every_lot_of_posts_is_drawn_again_from_the_folder_alone(posts):
    Lot.objects.all().delete()
    status, report = verified(posts)
    assert (status, report["secret_fits"], report["differ"]) == (0, True, 0)
    counts = of_lots(report)
    assert list(counts) == ["audit", "recheck", "check", "second", "overlap", "outcome"]
    assert counts["overlap"] == (14 + 12 + 6, 0)
    assert counts["audit"][0] > 14 + 6  # what was added was drawn from what nobody had read
    assert all(checked and not differ for checked, differ in counts.values())


def test_every_place_of_a_gold_answer_and_every_test_is_drawn_again(records):
    status, report = verified(records)
    assert (status, report["differ"]) == (0, 0)
    counts = of_lots(report)
    assert list(counts) == ["test", "gold place", "outcome"]
    # No unit of this task was drawn, so its digest covers only tests and gold answers.
    assert counts["outcome"] == (1, 0)
    assert counts["test"] == (2 * 2 * 3, 0)
    # All units leased in random order count, work and gold answers.
    by_lot = Lease.objects.filter(turn__isnull=False)
    assert counts["gold place"] == (by_lot.count(), 0)
    assert by_lot.filter(unit__honeypot=True).count() >= 2 * 2 * 4


def test_the_command_prints_a_table_and_a_verdict(posts):
    output = io.StringIO()
    call_command("verify_lots", posts, stdout=output)
    table, secret, outcomes, verdict = output.getvalue().rstrip("\n").rsplit("\n", 3)
    digests = manifest_of(posts)["lots"]
    assert digests["secret_sha256"] in secret
    assert digests["outcomes"][0]["digest"] in outcomes
    assert verdict.startswith("Yes: all of ")
    assert "which machine labels are audited" in table
    change_line(posts, "audit", lambda line: line["drawn"].pop())
    with pytest.raises(CommandError):
        call_command("verify_lots", posts, stdout=output)
    assert "No: " in output.getvalue()
    assert "First difference: " in output.getvalue()


# --- one thing changed


def change_line(folder, lot, change):
    """Change the first line of a random draw that is not empty."""
    rewrite(folder, "lots.jsonl", lambda lines: change(next(x for x in lines if x["lot"] == lot and x["drawn"])))


def test_the_verdict_is_no_if_a_row_contradicts_its_random_draw_about_the_audit(posts):
    def change(rows):
        row = next(row for row in rows if row["stratum"] == "audited")
        row["stratum"] = "agreed"

    rewrite(posts, "gold.jsonl", change)
    with pytest.raises(CommandError, match=r"The counts in .*manifest\.json do not match the rows of gold\.jsonl"):
        call_command("verify_lots", posts)
    recount(posts)
    status, report = verified(posts)
    assert (status, report["differ"]) == (1, 1)


# --- rows that were removed or changed by a publisher who writes counts, copies and digests anew


def _without(count, is_one):
    """Remove the first rows of this selection."""

    def change(rows):
        gone = [row for row in rows if is_one(row)][:count]
        assert len(gone) == count
        rows[:] = [row for row in rows if row not in gone]

    return change


def _set_back(rows):
    """Give a checked row its reader's label, as if the adjudicator had confirmed it."""
    row = next(row for row in rows if row["checked"])
    row["label"] = "fr"
    for judgment in row["judgments"]:
        if judgment["kind"] == "settle":
            judgment["label"] = "fr"


def _relabelled(rows):
    """Give an audited row another label, but keep its judgments."""
    next(row for row in rows if row["stratum"] == "audited" and row["decided_by"] == "adjudicator")["label"] = "fr"


@pytest.mark.parametrize(
    ("change", "first", "number"),
    [
        (_without(3, lambda row: row["stratum"] == "audited"), "which is missing", 3),
        (_without(1, lambda row: row["stratum"] == "agreed"), "which is missing", 1),
        (_without(1, lambda row: row["checked"]), "which is missing", 1),
        (lambda rows: rows.append(rows[0]), "a second row of ", None),
        (_set_back, "", None),
        (_relabelled, "", None),
        (lambda rows: next(row for row in rows if row["checked"])["judgments"].pop(), "", None),
    ],
)
def test_the_verdict_is_no_if_a_row_of_a_drawn_unit_was_removed_or_changed(posts, change, first, number):
    rewrite(posts, "gold.jsonl", change)
    recount(posts)
    status, report = verified(posts)
    assert (status, report["secret_fits"]) == (1, True)
    differing = [row for row in report["lots"] if row["differ"]]
    assert any(first in (row["first"] or "") for row in differing)
    assert number in (None, sum(row["differ"] for row in differing))


def test_a_parquet_file_of_other_rows_is_refused(posts, sets):
    (posts / "gold.parquet").write_bytes((sets / "open-task" / "gold.parquet").read_bytes())
    table = pq.read_table(posts / "gold.parquet")
    pq.write_table(table.slice(1), posts / "gold.parquet")
    retell(posts)
    with pytest.raises(CommandError, match=r"The Parquet files in .* do not contain the rows of gold\.jsonl"):
        call_command("verify_lots", posts)


def test_whoever_knows_the_secret_can_fix_other_outcomes_and_the_digest_published_at_the_close_tells(posts):
    digests = manifest_of(posts)["lots"]
    published = digests["outcomes"][0]["digest"]
    call_command("verify_lots", posts, published=[digests["secret_sha256"], published], stdout=(out := io.StringIO()))
    assert "Yes: " in out.getvalue()
    task = Task.objects.get(name="task")
    rewrite(posts, "gold.jsonl", _set_back)
    recount(posts)

    def fix_anew(lines):
        line = next(line for line in lines if line["lot"] == "outcome")
        rows = {row["id"]: row for row in json_lines(posts / "gold.jsonl") if not row["judged_as"]}
        line["drawn"] = [outcome_digest(task.lots, _outcome_of(rows[key], language)) for key, language in line["frame"]]
        line["how"]["digest"] = fixed_digest(task.lots, line, [other for other in lines if other is not line])
        fixed.append({"at": line["how"]["at"], "digest": line["how"]["digest"]})

    fixed = []
    rewrite(posts, "lots.jsonl", fix_anew)
    retell(posts, outcomes=fixed)
    assert verified(posts)[0] == 0
    with pytest.raises(CommandError):
        call_command("verify_lots", posts, published=[published], stdout=(out := io.StringIO()))
    assert f"No: the set does not contain the published digest {published}" in out.getvalue()


def _outcome_of(row, language):
    names = ("annotator", "kind", "label", "queue", "round")
    judgments = [(*(judgment[name] for name in names), bool(judgment["voided_at"])) for judgment in row["judgments"]]
    return outcome(row["id"], language, row["stage"], row["label"], judgments)


def _swap(entries):
    """Move a gold answer one unit of work later."""
    at = next(
        n for n in range(len(entries) - 1) if isinstance(entries[n][3], str) and not isinstance(entries[n + 1][3], str)
    )
    judged, gold, size, key = entries[at]
    work = entries[at + 1][3]
    entries[at : at + 2] = [
        [judged, gold, size, 1],
        [judged + 1, gold, size, key],
        [judged + 2, gold + 1, size, work - 1],
    ]


def _other_order(entries):
    """Swap two gold answers."""
    first, second = [entry for entry in entries if isinstance(entry[3], str)][:2]
    first[3], second[3] = second[3], first[3]


def _other(line):
    """Return a unit that was not drawn."""
    return next(key for key in line["frame"] if key not in line["drawn"])


def _forgotten(line):
    """Leave out one of a person's gold answers."""
    met = {entry if isinstance(entry, str) else entry[3] for entry in line["drawn"]}
    line["frame"].remove(next(key for key in line["frame"] if key not in met))


@pytest.mark.parametrize(
    ("name", "lot", "change", "first"),
    [
        ("task", "audit", lambda line: line["drawn"].pop(), ""),
        ("task", "audit", lambda line: line["drawn"].append(_other(line)), ""),
        (
            "task",
            "recheck",
            lambda line: line.update(drawn=[] if line["drawn"] == line["frame"][:1] else line["frame"][:1]),
            "",
        ),
        ("task", "check", lambda line: line["drawn"].pop(), ""),
        ("task", "second", lambda line: line["drawn"].pop(), ""),
        ("task", "overlap", lambda line: line["drawn"].pop(), ""),
        ("crowd", "gold place", lambda line: _swap(line["drawn"]), "unit "),
        ("crowd", "gold place", lambda line: _other_order(line["drawn"]), "unit "),
        ("crowd", "gold place", lambda line: line["drawn"].clear(), "the work of "),
        ("crowd", "gold place", _forgotten, ""),
        ("crowd", "test", lambda line: line["drawn"].reverse(), ""),
    ],
)
def test_the_verdict_is_no_if_one_line_was_changed(sets, name, lot, change, first):
    change_line(sets / name, lot, change)
    status, report = verified(sets / name)
    assert status == 1
    [row] = [row for row in report["lots"] if row["lot"] == lot]
    assert row["differ"] >= 1
    assert (row["first"] or "").startswith(first)
    assert row["first"] or name == "crowd"


@pytest.mark.parametrize(
    ("name", "lot"),
    [*(("task", lot) for lot in ("audit", "recheck", "check", "second", "overlap", "outcome")), ("crowd", "test")],
)
def test_the_verdict_is_no_if_a_line_was_removed(sets, name, lot):
    rewrite(sets / name, "lots.jsonl", lambda lines: lines.remove(next(line for line in lines if line["lot"] == lot)))
    status, report = verified(sets / name)
    assert status == 1
    assert lot != "test" or of_lots(report)["outcome"] == (1, 1)


def test_the_verdict_is_no_if_the_secret_was_changed_and_nothing_is_drawn_with_it(records):
    retell(records, secret="0" * 64)
    status, report = verified(records)
    assert (status, report["secret_fits"], report["lots"]) == (1, False, [])
    # If its digest was changed as well, the random draws and the digest published before reveal it.
    retell(records, secret="0" * 64, secret_sha256=sha("0" * 64))
    status, report = verified(records)
    assert (status, report["secret_fits"]) == (1, True)
    assert of_lots(report)["gold place"][1] > 10


def test_a_file_that_was_changed_since_is_refused_in_a_sentence(records):
    with (records / "lots.jsonl").open("a", encoding="utf-8") as file:
        file.write("{}\n")
    with pytest.raises(CommandError, match=r"lots\.jsonl is missing or was changed after the export"):
        call_command("verify_lots", records)


def test_a_line_that_is_not_a_random_draw_is_refused(records):
    shaped = {"of": [], "how": {}, "frame": [], "drawn": []}
    for line in (
        {},
        {"lot": "dice"},
        {"lot": "side"},
        shaped | {"lot": "audit"},
        shaped | {"lot": "gold place", "of": ["a", "en"], "frame": ["x"], "drawn": [[1, 0, 0, 1]]},
        shaped | {"lot": "gold place", "of": ["a", "en"], "frame": [{}], "drawn": 7},
        shaped | {"lot": "test", "how": {"count": 1}, "frame": [["x"]]},
    ):
        rewrite(records, "lots.jsonl", lambda lines, line=line: lines.insert(0, line))
        with pytest.raises(CommandError, match=r"lots\.jsonl, line 1 does not describe a random draw"):
            call_command("verify_lots", records)


# --- what is told, and when


def test_manifest_and_card_have_the_digest_of_the_secret_from_the_start_and_the_secret_only_once_disclosed(sets, out):
    task, before, after = Task.objects.get(name="crowd"), sets / "open-crowd", sets / "crowd"
    digest = sha(task.secret)
    assert manifest_of(before)["lots"] == {"secret_sha256": digest, "secret": None, "file": None, "outcomes": []}
    assert digest in (before / "README.md").read_text(encoding="utf-8")
    everything = everything_in(before)
    assert task.secret not in everything
    gold = task.gold_answers.values_list("item__key", flat=True)
    assert not [key for key in gold if f'"{key}"' in everything]
    with pytest.raises(CommandError, match=r"does not contain the secret of its random draws yet.*--tell-secret"):
        call_command("verify_lots", before)
    # A closed task keeps its secret until somebody discloses it, and is never reopened after that.
    call_command("export_gold", "crowd", out=out, stdout=io.StringIO())
    assert manifest_of(out)["lots"]["secret"] is None
    assert not (out / "lots.jsonl").exists()
    lots = manifest_of(after)["lots"]
    assert [len(entry["digest"]) for entry in lots.pop("outcomes")] == [64]
    assert lots == {"secret_sha256": digest, "secret": task.secret, "file": "lots.jsonl"}
    assert task.secret in (after / "README.md").read_text(encoding="utf-8")
    with pytest.raises(CommandError, match=r"disclosed the secret of crowd.*Open a new task instead"):
        call_command("reopen", "crowd")
    assert not Task.objects.get(name="crowd").is_open
    # The same database gives the same bytes.
    tell(Task.objects.get(name="task"), sets / "again")
    for name in ("lots.jsonl", "manifest.json", "README.md"):
        assert (sets / "task" / name).read_bytes() == (sets / "again" / name).read_bytes()


def test_what_lots_tell_of_people_is_a_pseudonym_and_of_gold_answers_no_right_one(records):
    lines = [line for line in json_lines(records / "lots.jsonl") if line["lot"] != "outcome"]
    people = set(Annotator.objects.filter(user__username__in=("fay", "gus")).values_list("pseudonym", flat=True))
    assert {line["of"][0] for line in lines} == people
    # Ids, numbers and languages; neither labels nor times.
    assert {key for line in lines for key in line} == {"lot", "of", "how", "frame", "drawn"}
    words = {word for word in strings(lines) if not word.startswith(("en-", "de-"))}
    assert words == {*people, "en", "de", "1.1", "test", "gold place"}


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings(part)


def test_a_set_that_was_imported_has_no_lots_to_verify(tmp_path):
    published = tmp_path / "published.tsv"
    published.write_text("".join(f"{label}\t{n}\n" for n, label in enumerate(["de", "en"] * 20)), encoding="utf-8")
    call_command("import_gold", published, out=tmp_path / "gold", design="uniform", name="x", stdout=io.StringIO())
    with pytest.raises(CommandError, match="has no random draws to verify, because the set was imported"):
        call_command("verify_lots", tmp_path / "gold")
    with pytest.raises(CommandError, match=r"The folder .* does not exist"):
        call_command("verify_lots", tmp_path / "nowhere")
