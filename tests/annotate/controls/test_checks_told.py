"""How checks of single readers are reported: in exported sets, by commands and on the manager's page."""

import io
import json
import re

import pytest
from django.db import transaction

from annotate.actions.registry import call_command
from annotate.controls import check_report, checks
from annotate.core.estimation.proportions import jeffreys
from annotate.goldsets.exporter import export
from annotate.goldsets.gold_set import GoldRow, read_gold_set
from annotate.goldsets.set_folder import GoldSetError
from annotate.kinds import Answer
from annotate.models import Task
from annotate.work.adjudication import discard, settle, to_adjudicate
from annotate.work.judgments import skip
from annotate.work.queue import take
from annotate.work.unit_entry import add_units
from tests.annotate.acts import work_through
from tests.annotate.admin.desk import page
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.corpus import NAME
from tests.annotate.goldsets.acts import with_manifest
from tests.annotate.goldsets.set_contents import json_lines
from tests.annotate.goldsets.test_gold_sets import write_set

NO_SECOND = "There is only one adjudicator, so nobody can give a second opinion"


@pytest.fixture
def gold(data_dir, tmp_path):
    """The folder for exported sets."""
    with_manifest()
    return tmp_path


def rows_of(task, folder):
    """Return who decided each exported row, by id, and the manifest."""
    manifest = export(task, folder)
    rows = {row["id"]: row for row in json_lines(folder / "gold.jsonl")}
    columns = ("label", "decided_by", "check_chance", "checked", "first_label")
    return {key: tuple(row[name] for name in columns) for key, row in rows.items()}, manifest


@pytest.fixture
def checked(make_task, ann, ada):
    """Of 8 posts that one reader called German, 2 were checked, and one of these is English."""
    task = make_task([AGREED, *[DISPUTED] * 8], check_share=0.25, rounds=1)
    work_through(ann, task)
    for unit, label in zip(to_adjudicate(task, ada), ("en", "de"), strict=True):
        settle(ada, unit.pk, Answer(label, "I read it"))
    return task


# --- exported sets


def test_rows_and_card_say_who_decided_whether_that_was_checked_and_what_the_reader_had_said(checked, gold):
    rows, manifest = rows_of(checked, gold / "gold")
    assert sorted(rows.values(), key=str) == sorted(
        [
            ("de", "detectors", 1.0, False, None),
            *[("de", "one", 0.25, False, None)] * 6,
            ("de", "adjudicator", 0.25, True, "de"),
            ("en", "adjudicator", 0.25, True, "de"),
        ],
        key=str,
    )
    assert manifest["checks"] == check_report.report(checked)
    assert manifest["checks"]["overall"]["error"]["value"] == 0.5
    assert manifest["checks"]["adjudicators"]["seconded"] == 0
    read = read_gold_set(gold / "gold")
    assert read.slips is None
    assert {row.id: (row.label, row.decided_by, row.checked, row.first_label or None) for row in read.rows} == {
        key: (label, by, was, first) for key, (label, by, _, was, first) in rows.items()
    }
    card = (gold / "gold" / "README.md").read_text(encoding="utf-8")
    low, high = (100 * end for end in jeffreys(1, 2))
    assert "Single readers labelled 6 posts." in card
    assert f"2 done, 1 with a different label (50.0% [{low:.1f}, {high:.1f}])." in card
    assert "so far" not in card
    assert re.search(r"^\| de \| German \| 6 \| 2 \| 50\.0% ", card, re.MULTILINE)
    assert "No second adjudicator decided any of these" in card


def test_what_several_read_and_what_a_reader_skipped_has_the_chance_1(make_task, person, ada, gold):
    ann, ben = person("ann", "de"), person("ben", "de")
    several = make_task([DISPUTED], name="several", redundancy=2)
    for reader in (ann, ben):
        work_through(reader, several)
    assert [*rows_of(several, gold / "several")[0].values()] == [("de", "several", 1.0, False, None)]
    skipped = make_task([DISPUTED], name="skipped", check_share=1.0, rounds=1)
    for reader in (ann, ben):
        while lease := take(reader, skipped):
            skip(reader, lease.pk)
    settle(ada, skipped.units.get().pk, Answer("de", "I read it"))
    assert [*rows_of(skipped, gold / "skipped")[0].values()] == [("de", "adjudicator", 1.0, False, None)]


def test_what_a_reader_confirms_in_an_audit_has_the_chance_of_its_checks(make_task, ann, ada, gold):
    audited = make_task([AGREED] * 2, name="audited", check_share=1.0, audit_least=2, audit_recheck=0.0)
    work_through(ann, audited)
    assert [*rows_of(audited, gold / "audited")[0].values()] == [("de", "one", 0.0, False, None)] * 2
    checked = make_task([AGREED] * 2, name="rechecked", audit_least=2, audit_recheck=1.0)
    work_through(ann, checked)
    first, second = checked.units.order_by("position")
    settle(ada, first.pk, Answer("de", "I read it"))
    settle(ada, second.pk, Answer("en", "I read it"))
    assert [*rows_of(checked, gold / "rechecked")[0].values()] == [
        ("de", "adjudicator", 1.0, True, "de"),
        ("en", "adjudicator", 1.0, True, "de"),
    ]


def test_a_label_of_another_task_says_who_gave_it_there_and_could_not_be_checked_here(
    make_task, ann, ada, gold, monkeypatch
):
    monkeypatch.setattr(checks, "CHECK_LEAST", 0)
    first = make_task([DISPUTED] * 3, name="first", check_share=0.3)
    work_through(ann, first)
    for unit in to_adjudicate(first, ada):
        settle(ada, unit.pk, Answer("de", "I read it"))
    second = make_task([], name="second", asked="de", check_share=1.0)
    labels = {unit.item_id: (unit, "de") for unit in first.units.select_related("item")}
    add_units(second, [unit.item for unit, _ in labels.values()], asked="de", reuse=labels)
    rows, _ = rows_of(second, gold / "gold")
    assert sorted(rows.values()) == sorted(
        [("de", "adjudicator", 1.0, False, None), *[("de", "one", 0.0, False, None)] * 2]
    )


def test_a_set_without_these_columns_reads_as_one_that_nobody_checked(tmp_path):
    write_set(tmp_path / "gold")
    gold_set = read_gold_set(tmp_path / "gold")
    assert gold_set.slips is None
    assert {(row.decided_by, row.checked, row.first_label) for row in gold_set.rows} == {("", False, "")}
    assert GoldRow("1", "de", "", "", "") == GoldRow("1", "de", "", "", "", "", False, "")


def test_a_row_whose_check_does_not_fit_together_is_refused(tmp_path):
    for number, (changed, sentence) in enumerate(
        (
            ({"checked": True}, "line 1 states that it was checked, which is impossible with the first label ''"),
            (
                {"first_label": "de"},
                "line 1 states that it was not checked, which is impossible with the first label 'de'",
            ),
            ({"checked": "yes"}, "line 1: 'checked' is not true or false"),
            ({"decided_by": 3}, "line 1: 'decided_by' is not a string"),
        )
    ):
        row = {"id": "1", "label": "de", "asked": None, "stratum": None, "agreed": None, **changed}
        write_set(tmp_path / str(number), [row])
        with pytest.raises(GoldSetError, match=re.escape(sentence)):
            read_gold_set(tmp_path / str(number))


def test_the_card_says_where_nobody_was_checked(make_task, ann, gold):
    task = make_task([DISPUTED] * 2)
    work_through(ann, task)
    rows_of(task, gold / "gold")
    card = (gold / "gold" / "README.md").read_text(encoding="utf-8")
    assert "Single readers labelled 2 posts. None was checked, so the error rate of single readers" in card
    assert "No adjudicator has decided a post." in card


# --- the command, the manager's page, the status


def test_audit_and_page_tell_what_the_checks_found_and_that_one_adjudicator_is_not_enough(
    checked, person, desk, capsys
):
    call_command("audit", "task")
    output = capsys.readouterr().out
    assert re.search(r"^de +German +6 +2 +50\.0% \[", output, re.MULTILINE)
    assert "Single readers labelled 6 posts." in output
    assert NO_SECOND in output
    shown = page(desk, f"/manage/tasks/{checked.name}/quality/")
    assert shown.forbidden == []
    for words in (
        "Audit of the detectors' agreement",
        "Checks of single readers and adjudicators",
        "de German 6 2 50.0% [",
        NO_SECOND,
    ):
        assert words in shown.text
    person("eve", adjudicates=True)
    call_command("audit", "task", "--json")
    report = json.loads(capsys.readouterr().out)
    assert report["checks"] == check_report.report(checked)
    call_command("audit", "task")
    assert NO_SECOND not in capsys.readouterr().out


def test_audit_of_a_verification_tells_of_its_checks_too(make_task, ann, ada, capsys):
    task = make_task([DISPUTED] * 2, asked="de", check_share=1.0)
    work_through(ann, task)
    first, second = to_adjudicate(task, ada)
    settle(ada, first.pk, Answer("not-de", "I read it"))
    discard(ada, second.pk, "nobody can tell")
    call_command("audit", "task")
    output = capsys.readouterr().out
    assert "No decoys are hidden" in output
    assert "An adjudicator rechecks 2 further posts of single readers" in output
    assert "* de: discarded, so not counted: 1\n" in output


def test_second_opinions_are_reported_with_the_number_that_differed(skipped, ada, eve, capsys):
    task = skipped(4, check_share=1.0)
    first, *others = to_adjudicate(task, ada)
    for unit in (first, *others):
        settle(ada, unit.pk, Answer("de", "I read it"))
    settle(eve, first.pk, Answer("en", "I read it"))
    settle(eve, others[0].pk, Answer("de", "I read it"))
    call_command("audit", "task")
    output = capsys.readouterr().out
    low, high = (100 * end for end in jeffreys(1, 2))
    assert "A second adjudicator also decided 2 of these without seeing the first decision, and " in output
    assert f"1 of them differently (50.0% [{low:.1f}, {high:.1f}])." in output
    assert "2 posts still wait for a second decision." in output


def test_status_names_the_tasks_whose_second_opinions_cannot_be_had(make_task, ada, person, capsys):
    make_task([DISPUTED], name="asks", check_share=0.1)
    make_task([DISPUTED], name="does-not")
    call_command("status")
    output = capsys.readouterr().out
    assert NO_SECOND in output
    assert "Make another person an adjudicator. Tasks that need one: asks.\n" in output
    person("eve", adjudicates=True)
    call_command("status")
    assert NO_SECOND not in capsys.readouterr().out


# --- what is foretold


def opened(**options):
    out = io.StringIO()
    defaults = {"corpus": NAME, "size": 200, "seed": "7", "audit_least": 3, "audit_limit": 1.0}
    call_command("open_task", "t", stdout=out, stderr=io.StringIO(), **defaults, **options)
    return out.getvalue()


@pytest.mark.slow
def test_a_new_task_has_checks_and_a_dry_run_says_how_many(demo_corpus, ada, person):
    for dry in (True, False):
        with transaction.atomic():
            shown = opened(dry_run=dry)
            transaction.set_rollback(True)
        assert re.search(
            r"A single reader decides \d+ items\. An adjudicator decides a random \d+ of these again", shown
        )
        assert NO_SECOND in shown
        assert "second adjudicator decides" not in shown
    person("eve", adjudicates=True)
    foretold, real = (json.loads(opened(json=True, dry_run=dry))["checks"] for dry in (True, False))
    # Nobody can foresee which decisions get a second opinion, not even a dry run.
    assert foretold | {"seconds": real["seconds"]} == real
    task = Task.objects.get()
    assert task.check_share == 0.1
    chosen = task.units.filter(recheck=True).exclude(transitions__event="audited")
    assert real["chosen"] == chosen.count() > 0
    for queue, of in real["languages"].items():
        assert of["chosen"] == chosen.filter(language=queue).count() >= min(2, of["units"])
    again = [checks.is_seconded(task, unit.item.key) for unit in task.units.filter(recheck=True)]
    assert real["seconds"] == sum(again) > 0
