"""adjudicate: decisions from a file, and the list of what waits as one."""

import csv
import json

import pytest
from django.core.management import CommandError

from annotate.actions.action import ActionError, Cancelled, Progress
from annotate.actions.commands import call_command
from annotate.actions.decision_files import adjudicate_action
from annotate.core import stages
from annotate.kinds import Answer
from annotate.models import Judgment
from annotate.work.adjudication import settle, unsettle
from annotate.work.interventions import pause
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from annotate.work.unit_entry import add_units
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.test_adjudication import differed  # noqa: F401 - fixture


@pytest.fixture
def ada(person):
    return person("ada", adjudicates=True)


@pytest.fixture
def skipped(make_task, person):
    """Posts a, b and c, which their one reader has skipped."""
    task, ann = make_task([{"key": key, "votes": DISPUTED} for key in "abc"], rounds=1), person("ann", "de")
    while lease := take(ann, task):
        skip(ann, lease.pk)
    return task


@pytest.fixture
def file(tmp_path):
    """file("id,label,reason\\na,de,known\\n") is a CSV file of that."""

    def make(text, name="decisions.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return make


def run(**given):
    return adjudicate_action.perform({"task": "task", "as": "ada"} | given)


def labels(task):
    return {key: (stage, label) for key, stage, label in task.units.values_list("item__key", "stage", "label")}


QUOTING = {",": csv.QUOTE_MINIMAL, "\t": csv.QUOTE_NONE}
WAITS = (stages.ADJUDICATION, "")


def test_decisions_are_taken_as_the_page_takes_them(skipped, ada, file, capsys):
    path = file('id,label,reason,comment\na,de,I read it,"Bavarian, surely"\nb,discard,Nothing found,\nc,,,\n')
    call_command("adjudicate", "task", str(path), **{"as": "ada"})
    assert capsys.readouterr().out == (
        "Task task: ada settled 1 and discarded 1; 0 were decided so already, 1 has no label yet, 0 were rejected.\n"
    )
    assert labels(skipped) == {"a": (stages.LABELLED, "de"), "b": (stages.DISCARDED, ""), "c": WAITS}
    settled = Judgment.objects.get(kind=Judgment.SETTLE)
    assert (settled.annotator, settled.reason, settled.comment) == (ada, "I read it", "Bavarian, surely")
    assert settled.unit.transitions.last().by == ada.user


def test_run_again_the_file_adds_what_is_missing_and_nothing_else(skipped, ada, file):
    path = file("id,label,reason\na,de,known\nb,discard,nothing found\n")
    run(file=path)
    unsettle(ada, skipped.units.get(item__key="b").pk)
    again = run(file=path)
    assert again.data == {"settled": 0, "discarded": 1, "already": 1, "open": 0, "rejects": []}
    assert Judgment.objects.live().decisions().count() == 2


def test_rows_that_cannot_be_taken_are_listed_with_line_and_reason_and_the_others_are_taken(
    skipped, ada, file, data_dir
):
    path = file("id,label,reason\na,de,known\nb,ja,known\nc,en,\nd,de,known\na,fr,known\nb\n,de,known\na,de,known\n")
    outcome = run(file=path)
    assert [(row["line"], row["reason"]) for row in outcome.data["rejects"]] == [
        (3, "'ja' is not on this task's list of languages."),
        (4, "Say in a few words how you know, so that others can follow the decision."),
        (5, "The task has no post with the id d."),
        (6, "Line 2 decides on a in another way; keep one of them."),
        (7, "The row has 1 field where the header has 3."),
        (8, "The id is empty."),
    ]
    assert outcome.warned == [f"Line {row['line']}: {row['reason']}" for row in outcome.data["rejects"]]
    assert (outcome.data["settled"], outcome.data["already"]) == (1, 0)
    assert labels(skipped) == {"a": (stages.LABELLED, "de"), "b": WAITS, "c": WAITS}
    (listed,) = (data_dir / "decisions" / "task").iterdir()
    assert str(listed) in outcome.said[0]
    # and a script sees that something is left
    assert outcome.status == 3
    with pytest.raises(CommandError) as caught:
        call_command("adjudicate", "task", path, **{"as": "ada"})
    assert (caught.value.returncode, str(caught.value)) == (3, "")
    assert [json.loads(line)["line"] for line in listed.read_text().splitlines()] == [3, 4, 5, 6, 7, 8]


def test_a_file_of_which_no_row_can_be_taken_ends_as_one_of_which_some_cannot(skipped, ada, file, capsys):
    path = file("id,label,reason\nx,de,known\n")
    with pytest.raises(CommandError) as caught:
        call_command("adjudicate", "task", path, json=True, **{"as": "ada"})
    assert (caught.value.returncode, str(caught.value)) == (3, "")
    out, err = capsys.readouterr()
    assert json.loads(out)["rejects"] == [{"line": 2, "reason": "The task has no post with the id x."}]
    assert err == "Line 2: The task has no post with the id x.\n"
    (said,) = run(file=path).said
    assert said.startswith(f"Nothing of {path} was decided; 1 row was rejected, listed in ")
    assert labels(skipped)["a"] == WAITS


def test_a_file_that_is_not_of_decisions_is_refused(skipped, ada, file):
    with pytest.raises(ActionError, match="has no column reason"):
        run(file=file("id,label\na,de\n"))


def test_json_lines_and_other_names_of_columns_do_as_well(skipped, ada, file):
    rows = [{"post": "a", "label": "und", "why": "mixed"}, {"post": "b", "label": ["de"], "why": "known"}]
    path = file("".join(json.dumps(row) + "\n" for row in rows), "decisions.jsonl")
    outcome = run(file=path, column=["id=post", "reason=why"])
    assert outcome.data["settled"] == 1
    assert outcome.warned == ["Line 2: The label is neither a string nor a whole number."]


def test_nobody_decides_what_they_have_judged_nor_what_others_have_decided(make_task, person, ada, file):
    task, both = (
        make_task([{"key": key, "votes": DISPUTED} for key in "ab"], rounds=1),
        person("both", "de", adjudicates=True),
    )
    while lease := take(both, task):
        skip(both, lease.pk)
    settle(ada, task.units.get(item__key="b").pk, Answer("de", "known"))
    own, decided = run(file=file("id,label,reason\na,de,known\nb,de,known\n"), **{"as": "both"}).warned
    assert own.startswith("Line 2: You have judged this one as an annotator")
    assert decided.startswith("Line 3: This one is not waiting for an adjudicator")


def test_who_is_paused_decides_nothing(skipped, ada, manager, file):
    pause(ada, skipped, by=manager, reason="asleep")
    with pytest.raises(ActionError, match="paused"):
        run(file=file("id,label,reason\na,de,known\n"))
    assert labels(skipped)["a"] == WAITS


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"as": "nobody", "list": True}, "There is no annotator 'nobody', or the account is locked"),
        ({"as": "ann", "list": True}, "ann is no adjudicator; say so in the column adjudicates"),
        ({"task": "other", "list": True}, "There is no task 'other'; there is: task."),
        ({}, "Name either a FILE of decisions, or, with --list or --out FILE, ask for what waits"),
        ({"file": "x.csv", "list": True}, "Name either a FILE of decisions"),
        ({"file": "x.csv"}, "x.csv does not exist"),
        ({"out": "list.xlsx"}, "give it a name that ends in .csv, .tsv, .jsonl"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(skipped, ada, given, sentence):
    with pytest.raises(ActionError) as refused:
        run(**given)
    assert sentence in str(refused.value)


def test_cancelled_in_the_middle_what_is_decided_stays(skipped, ada, file):
    class Once(Progress):
        def advance(self, count=0):
            raise Cancelled

    path = file("id,label,reason\na,de,known\nb,de,known\n")
    with pytest.raises(Cancelled):
        adjudicate_action.perform({"task": "task", "as": "ada", "file": path}, Once())
    assert labels(skipped) == {"a": (stages.LABELLED, "de"), "b": WAITS, "c": WAITS}
    assert run(file=path).data["already"] == 1


def filled_in(text, suffix):
    """A list of what waits, with the first decided."""
    if suffix == "jsonl":
        first, *rest = text.splitlines(keepends=True)
        return "".join([json.dumps(json.loads(first) | {"label": "de", "reason": "known"}) + "\n", *rest])
    gap = "\t" if suffix == "tsv" else ","
    return text.replace(f"{gap}{gap}\n", f"de{gap}known{gap}\n", 1)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
def test_what_waits_is_written_filled_in_and_taken_back_in(skipped, ada, tmp_path, suffix):
    out = tmp_path / f"waiting.{suffix}"
    item = skipped.units.get(item__key="a").item
    item.text = 'a "text"\tin\ntwo lines, and a comma'
    item.save()
    assert run(out=out).said == [
        f"Task task: 3 posts to be decided by ada. Written to {out}: fill in label (or discard) and reason, and give "
        "the file to adjudicate."
    ]
    text = out.read_text(encoding="utf-8")
    gap = {"csv": ",", "tsv": "\t"}.get(suffix)
    lines = text.splitlines()
    first = json.loads(lines[0]) if gap is None else next(csv.DictReader(lines, delimiter=gap, quoting=QUOTING[gap]))
    assert (first["id"], first["candidates"], first["queues so far"]) == ("a", "de, en", "de")
    assert first["text"] == (item.text if gap is None else 'a "text" in two lines, and a comma')
    assert first["votes"] == "langid: de 0.90, en 0.70; cld2: en 0.90, de 0.70; fasttext: de 0.90"
    out.write_text(filled_in(text, suffix), encoding="utf-8")
    assert run(file=out).data == {"settled": 1, "discarded": 0, "already": 0, "open": 2, "rejects": []}
    assert labels(skipped)["a"] == (stages.LABELLED, "de")
    with pytest.raises(ActionError, match="is there already, and there may be decisions in it"):
        run(out=out)


def test_of_a_list_for_which_the_disk_has_no_room_nothing_is_left(skipped, ada, tmp_path):
    out = tmp_path / "waiting.csv"
    (tmp_path / ".waiting.csv.new").symlink_to("/dev/full")
    with pytest.raises(ActionError, match=r"waiting\.csv cannot be written: No space left on device\."):
        run(out=out)
    assert list(tmp_path.iterdir()) == []


def test_the_list_is_shown_and_says_what_is_left_to_others(make_task, person, ada, capsys):
    task, both = make_task([{"key": "a", "votes": DISPUTED}], rounds=1), person("both", "de", adjudicates=True)
    skip(both, take(both, task).pk)
    call_command("adjudicate", "task", list=True, **{"as": "ada"})
    shown = capsys.readouterr().out
    assert shown.splitlines()[0].split() == ["id", "text", "candidates", "queues", "so", "far"]
    assert task.units.get().item.text[:60] in shown
    assert "Task task: 1 post to be decided by ada." in shown
    call_command("adjudicate", "task", list=True, **{"as": "both"})
    out, err = capsys.readouterr()
    assert out == "Task task: 0 posts to be decided by both.\n"
    assert err == "1 post more must be decided by somebody else: both has judged them.\n"
    person("ann", "de")
    with pytest.raises(CommandError, match="no adjudicator"):
        call_command("adjudicate", "task", list=True, **{"as": "ann"})


def test_of_what_is_checked_blind_no_vote_is_told(make_task, person, ada, tmp_path):
    task, ann = make_task([AGREED], audit_least=1, audit_recheck=0), person("ann", "de")
    judge(ann, take(ann, task).pk, Answer("fr"))
    (row,) = run(list=True).data["waiting"]
    unit = task.units.get()
    assert {head: cell for head, cell in row.items() if cell} == {
        "id": unit.item.key,
        "text": unit.item.text,
        "blind": "yes",
    }


def test_a_post_that_is_asked_about_with_two_languages_is_decided_for_one(make_task, person, ada, file):
    task, ann = (
        make_task([{"key": "a", "votes": DISPUTED}], asked="de", labels=["de", "en"], rounds=1),
        person("ann", "de en"),
    )
    add_units(task, [task.units.get().item], asked="en")
    while lease := take(ann, task):
        skip(ann, lease.pk)
    outcome = run(file=file("id,asked,label,reason\na,en,not-en,known\na,,de,known\na,fr,de,known\n"))
    said = "a is asked about with: de, en. Say in the column asked which of them is meant."
    assert outcome.warned == [f"Line 3: {said}", f"Line 4: {said}"]
    assert dict(task.units.values_list("asked", "label")) == {"de": "", "en": "not-en"}


def test_a_record_is_decided_by_its_grade(differed, ada, file):  # noqa: F811
    task, _ = differed
    (row,) = run(task="crowd", list=True).data["waiting"]
    assert (row["language"], row["answers"]) == ("en", "Perfect, Excellent, Bad")
    path = file(f"id\tlabel\treason\n{row['id']}\t3\tthe guidelines say so\n", "decisions.tsv")
    assert run(task="crowd", file=path).data["settled"] == 1
    assert task.units.get().label == "3"


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl"])
def test_no_cell_of_a_list_is_run_by_a_spreadsheet_and_its_ids_come_back(make_task, person, ada, tmp_path, ending):
    keys = ["=1+1", "+49", "-5", "@name", "'quoted"]
    texts = {key: f"={key} said so" for key in keys}
    task = make_task([{"key": key, "text": texts[key], "votes": DISPUTED} for key in keys], rounds=1)
    ann = person("ann", "de")
    while lease := take(ann, task):
        skip(ann, lease.pk)
    path = tmp_path / f"waiting.{ending}"
    run(out=path)
    if ending == "jsonl":
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert {row["text"] for row in rows} == set(texts.values())
        return
    split = {"csv": ",", "tsv": "\t"}[ending]
    with path.open(encoding="utf-8", newline="") as lines:
        heads, *rows = csv.reader(lines, delimiter=split, quoting=QUOTING[split])
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@"))]
    for row in rows:
        row[heads.index("label")], row[heads.index("reason")] = "de", "I read it"
    with path.open("w", encoding="utf-8", newline="") as lines:
        csv.writer(lines, delimiter=split, quoting=QUOTING[split]).writerows([heads, *rows])
    run(file=path)
    assert set(labels(task).values()) == {(stages.LABELLED, "de")}
    assert set(labels(task)) == set(keys)


def test_a_row_that_pandas_saved_without_a_label_is_not_decided_yet(skipped, ada, file):
    rows = [{"id": "a", "label": None, "reason": None}, {"id": "b", "label": float("nan"), "reason": "x"}]
    outcome = run(file=file("".join(json.dumps(row) + "\n" for row in rows), "decisions.jsonl"))
    assert (outcome.data["open"], outcome.warned) == (2, [])
    outcome = run(file=file("id,label,reason\na,nan,nan\nb, de\u00a0,known\n"))
    assert (outcome.data["open"], outcome.data["settled"], outcome.warned) == (1, 1, [])
