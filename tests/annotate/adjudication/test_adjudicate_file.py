"""adjudicate: decisions from a file, and the list of what waits as one."""

import csv
import json

import pytest

from annotate.actions.action import ActionError, Cancelled, Progress
from annotate.actions.commands import call_command
from annotate.actions.decision_files import adjudicate_action
from annotate.core import stages
from annotate.kinds import Answer
from annotate.models import Judgment
from annotate.work.adjudication import unsettle
from annotate.work.interventions import pause
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from annotate.work.unit_entry import add_units
from tests.annotate.conftest import AGREED, DISPUTED


@pytest.fixture
def file(tmp_path):
    """file("id,label,reason\\n1,de,known\\n") is a CSV file of that."""

    def make(text, name="decisions.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return make


def run(**options):
    return adjudicate_action.perform({"task": "task", "as": "ada"} | options)


def labels(task):
    return {key: (stage, label) for key, stage, label in task.units.values_list("item__key", "stage", "label")}


GERMAN, WAITS = (stages.LABELLED, "de"), (stages.ADJUDICATION, "")


def test_decisions_are_taken_as_the_page_takes_them_and_run_again_only_what_is_missing(skipped, ada, file, capsys):
    task = skipped(3)
    path = file('id,label,reason,comment\n1,de,I read it,"Bavarian, surely"\n2,discard,Nothing found,\n3,,,\n')
    call_command("adjudicate", "task", str(path), **{"as": "ada"})
    assert capsys.readouterr().out == (
        "Task task: ada settled 1 and discarded 1; 0 were decided already, 1 has no label yet, 0 were rejected.\n"
    )
    assert labels(task) == {"1": GERMAN, "2": (stages.DISCARDED, ""), "3": WAITS}
    settled = Judgment.objects.get(kind=Judgment.SETTLE)
    assert (settled.annotator, settled.reason, settled.comment) == (ada, "I read it", "Bavarian, surely")
    assert settled.unit.transitions.last().by == ada.user
    unsettle(ada, task.units.get(item__key="2").pk)
    assert run(file=path).data == {"settled": 0, "discarded": 1, "already": 1, "open": 1, "rejects": []}
    assert Judgment.objects.live().decisions().count() == 2


def test_rows_that_cannot_be_taken_are_listed_with_line_and_reason_and_the_others_are_taken(
    skipped, ada, file, data_dir
):
    task = skipped(3)
    path = file("id,label,reason\n1,de,known\n2,ja,known\n3,en,\n4,de,known\n1,fr,known\n2\n,de,known\n1,de,known\n")
    outcome = run(file=path)
    assert [(row["line"], row["reason"]) for row in outcome.data["rejects"]] == [
        (3, "'ja' is not on this task's list of languages."),
        (4, "Enter a short reason, so that others can follow the decision."),
        (5, "The task does not contain a post with the id 4."),
        (6, "Line 2 contains a different decision on 1. Keep only one of the two lines."),
        (7, "The row has 1 field, but the header has 3."),
        (8, "The id is empty."),
    ]
    assert outcome.warned == [f"Line {row['line']}: {row['reason']}" for row in outcome.data["rejects"]]
    assert (outcome.data["settled"], outcome.data["already"], outcome.status) == (1, 0, 3)
    assert labels(task) == {"1": GERMAN, "2": WAITS, "3": WAITS}
    (listed,) = (data_dir / "decisions" / "task").iterdir()
    assert str(listed) in outcome.said[0]
    assert [json.loads(line)["line"] for line in listed.read_text().splitlines()] == [3, 4, 5, 6, 7, 8]


def test_json_lines_other_names_of_columns_and_what_pandas_saved_for_nothing_do_as_well(skipped, ada, file):
    skipped(3)
    rows = [{"post": "1", "label": "und", "why": "mixed"}, {"post": "2", "label": ["de"], "why": "known"}]
    rows += [{"post": "2", "label": None, "why": None}, {"post": "3", "label": float("nan"), "why": "x"}]
    path = file("".join(json.dumps(row) + "\n" for row in rows), "decisions.jsonl")
    outcome = run(file=path, column=["id=post", "reason=why"])
    assert (outcome.data["settled"], outcome.data["open"]) == (1, 2)
    assert outcome.warned == ["Line 2: The label is ['de'], neither a string nor an integer; save it as text."]
    outcome = run(file=file("id,label,reason\n2,nan,nan\n3, de\u00a0,known\n"))
    assert (outcome.data["open"], outcome.data["settled"], outcome.warned) == (1, 1, [])


def test_what_is_wrong_is_said_in_a_sentence_and_nothing_is_decided(skipped, ada, manager, file):
    task, good = skipped(), file("id,label,reason\n1,de,known\n")
    for options, sentence in (
        ({"as": "nobody", "list": True}, "There is no annotator 'nobody', or the account is locked"),
        (
            {"as": "reader", "list": True},
            "reader is not an adjudicator of this task. To make them one, use `assay members",
        ),
        ({"task": "other", "list": True}, "There is no task 'other'; available: task."),
        ({}, "Specify either a FILE of decisions, or --list or --out FILE to list the items to decide"),
        ({"file": "x.csv", "list": True}, "Specify either a FILE of decisions"),
        ({"file": "x.csv"}, "x.csv does not exist"),
        ({"out": "list.xlsx"}, "its name must end in .csv, .tsv, .jsonl"),
        ({"file": file("id,label\n1,de\n", "no_reason.csv")}, "has no column reason"),
        ({"file": good}, "paused"),
    ):
        if sentence == "paused":
            pause(ada, task, by=manager, reason="asleep")
        with pytest.raises(ActionError) as refused:
            run(**options)
        assert sentence in str(refused.value)
    assert labels(task)["1"] == WAITS


def test_cancelled_in_the_middle_what_is_decided_stays(skipped, ada, file):
    class Once(Progress):
        def advance(self, count=0):
            raise Cancelled

    task, path = skipped(2), file("id,label,reason\n1,de,known\n2,de,known\n")
    with pytest.raises(Cancelled):
        adjudicate_action.perform({"task": "task", "as": "ada", "file": path}, Once())
    assert labels(task) == {"1": GERMAN, "2": WAITS}
    assert run(file=path).data["already"] == 1


# --- the list of what waits

TABLES = {"csv": {"delimiter": ","}, "tsv": {"delimiter": "\t", "quoting": csv.QUOTE_NONE, "quotechar": None}}


def read(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return list(csv.DictReader(text.splitlines(keepends=True), **TABLES[path.suffix[1:]]))


def write(path, rows):
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, rows[0], **TABLES[path.suffix[1:]])
        table.writeheader()
        table.writerows(rows)


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
def test_what_waits_is_written_filled_in_and_taken_back_in_and_no_spreadsheet_runs_a_cell(
    make_task, person, ada, tmp_path, ending
):
    keys = ["=1+1", "+49", "-5", "@name", "'quoted", "left"]
    task = make_task([{"key": key, "text": f"={key} read", "votes": DISPUTED} for key in keys], rounds=1)
    item = task.units.get(item__key="left").item
    item.text = 'a "text"\tin\ntwo lines, and a comma'
    item.save()
    ann = person("ann", "de")
    while lease := take(ann, task):
        skip(ann, lease.pk)
    out = tmp_path / f"waiting.{ending}"
    assert run(out=out).said == [
        f"Task task: 6 posts to be decided by ada. They were written to {out}. Fill in the columns label (or "
        "discard) and reason, and run adjudicate with the file."
    ]
    *dangerous, left = rows = read(out)
    if ending == "jsonl":
        assert [row["text"] for row in rows] == [f"={key} read" for key in keys[:-1]] + [item.text]
    else:
        assert not [cell for row in rows for cell in row.values() if cell.startswith(("=", "+", "-", "@"))]
        assert left["text"] == 'a "text" in two lines, and a comma'
    assert (left["id"], left["candidates"], left["read by readers of"]) == ("left", "de, en", "de")
    assert left["votes"] == "langid: de 0.90, en 0.70; cld2: en 0.90, de 0.70; fasttext: de 0.90"
    for row in dangerous:
        row["label"], row["reason"] = "de", "I read it"
    write(out, rows)
    assert run(file=out).data == {"settled": 5, "discarded": 0, "already": 0, "open": 1, "rejects": []}
    assert labels(task) == dict.fromkeys(keys[:-1], GERMAN) | {"left": WAITS}
    with pytest.raises(ActionError, match="already exists and may contain decisions"):
        run(out=out)


def test_of_a_list_for_which_the_disk_has_no_room_nothing_is_left(skipped, ada, tmp_path):
    skipped()
    out = tmp_path / "waiting.csv"
    (tmp_path / ".waiting.csv.new").symlink_to("/dev/full")
    with pytest.raises(ActionError, match=r"Cannot write .*waiting\.csv: No space left on device\."):
        run(out=out)
    assert list(tmp_path.iterdir()) == []


def test_the_list_is_shown_and_says_what_is_left_to_others(make_task, person, ada, capsys):
    task, both = make_task([DISPUTED], rounds=1), person("both", "de", adjudicates=True)
    skip(both, take(both, task).pk)
    call_command("adjudicate", "task", list=True, **{"as": "ada"})
    shown = capsys.readouterr().out
    assert shown.splitlines()[0].split() == ["id", "text", "candidates", "read", "by", "readers", "of"]
    assert task.units.get().item.text[:60] in shown
    assert "Task task: 1 post to be decided by ada." in shown
    call_command("adjudicate", "task", list=True, **{"as": "both"})
    assert capsys.readouterr() == (
        "Task task: 0 posts to be decided by both.\n",
        "Another adjudicator must decide 1 post that both has already judged.\n",
    )


def test_of_what_is_checked_blind_no_vote_is_told(make_task, person, ada):
    task, ann = make_task([AGREED], audit_least=1, audit_recheck=0), person("ann", "de")
    judge(ann, take(ann, task).pk, Answer("fr"))
    (row,) = run(list=True).data["waiting"]
    item = task.units.get().item
    assert {head: cell for head, cell in row.items() if cell} == {"id": item.key, "text": item.text, "blind": "yes"}


def test_a_post_that_is_asked_about_with_two_languages_is_decided_for_one(make_task, person, ada, file):
    task, ann = make_task([DISPUTED], asked="de", labels=["de", "en"], rounds=1), person("ann", "de en")
    add_units(task, [task.units.get().item], asked="en")
    while lease := take(ann, task):
        skip(ann, lease.pk)
    outcome = run(file=file("id,asked,label,reason\n1,en,not-en,known\n1,,de,known\n1,fr,de,known\n"))
    sentence = "The task asks about several languages of 1: de, en. Enter one of them in the column asked."
    assert outcome.warned == [f"Line 3: {sentence}", f"Line 4: {sentence}"]
    assert dict(task.units.values_list("asked", "label")) == {"de": "", "en": "not-en"}
