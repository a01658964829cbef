"""Adjudication without pages: through the API and by files."""

import csv
import json

import pytest

from annotate.actions.action import ActionError, Cancelled, Progress
from annotate.actions.decision_files import adjudicate_action
from annotate.actions.registry import call_command
from annotate.core import stages
from annotate.kinds import Answer
from annotate.models import Annotator, Judgment
from annotate.work.adjudication import settle, unsettle
from annotate.work.interventions import pause
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from annotate.work.unit_entry import add_units
from tests.annotate.adjudication.conftest import where
from tests.annotate.api.test_api import Program, refusal
from tests.annotate.conftest import AGREED, DISPUTED

KNOWN = {"reason": "I read the language"}
DISPUTED_UNIT = {"unit", "item", "text", "language", "fields", "asked"}
DOSSIER = {"url", "sets", "blind", "open", "own", "outcome", "votes", "judgments", "history", "posts", "searches"}
LIST = "tasks/task/adjudication/"


@pytest.fixture
def program(client, ada):
    return Program(client, ada)


def address(unit, act=""):
    return f"tasks/{unit.task.name}/adjudication/{unit.pk}/{act and act + '/'}"


def test_the_list_and_the_dossier_have_what_the_pages_say_and_name_people_by_pseudonyms(skipped, program):
    unit, _ = skipped(2).units.order_by("position")
    listed = program.get(LIST).json()
    assert [listed[name] for name in ("waiting", "for_others", "pages")] == [2, 0, 1]
    assert [set(row) for row in listed["units"]] == [DISPUTED_UNIT | {"blind", "told"}] * 2
    first = listed["units"][0]
    assert (first["unit"], first["item"], first["text"]) == (unit.pk, unit.item.key, unit.item.text)
    assert (first["blind"], first["told"]) == (False, {"candidates": "de, en", "read by readers of": "de"})
    dossier = program.get(address(unit)).json()
    assert set(dossier) == DISPUTED_UNIT | DOSSIER
    assert [dossier[name] for name in ("open", "own", "outcome", "blind")] == [True, None, None, False]
    assert dossier["votes"]["langid"] == [["de", 0.9], ["en", 0.7]]
    reader = Annotator.objects.get(user__username="reader").pseudonym
    assert [(row["annotator"], row["queue"], row["kind"]) for row in dossier["judgments"]] == [(reader, "de", "skip")]
    assert [(move["event"], move["stage"], move["by"]) for move in dossier["history"]] == [
        ("disputed", "QUEUED", None),
        ("exhausted", "ADJUDICATION", reader),
    ]
    assert "Wiktionary" in dossier["searches"]


def test_the_list_is_cut_to_a_language_and_into_pages(skipped, program, monkeypatch):
    monkeypatch.setattr("annotate.api.adjudication_api.PER_PAGE", 1)
    task = skipped(2)
    pages = [[row["unit"] for row in program.get(f"{LIST}?language=de&page={page}").json()["units"]] for page in (1, 2)]
    assert pages == [[unit.pk] for unit in task.units.order_by("position")]
    french = program.get(f"{LIST}?language=fr").json()
    assert (french["waiting"], french["units"]) == (2, [])
    beyond = program.get(f"{LIST}?page=3")
    assert (refusal(beyond), beyond.json()["detail"]) == (
        (404, "not_found"),
        "This page does not exist. The list has 2 pages.",
    )
    strange = program.get(f"{LIST}?language=xx-none")
    assert refusal(strange) == (400, "invalid_answer")
    assert "'xx-none' is not a known language code; write a code such as de or zh-CN." in strange.json()["detail"]


def test_a_unit_is_settled_discarded_and_taken_back_and_a_retry_is_answered_as_before(skipped, program):
    first, second = skipped(2).units.order_by("position")
    settled = program.post(address(first, "settle"), label="de", comment="Bavarian", **KNOWN)
    assert (settled.status_code, settled.json()["kind"], settled.json()["label"]) == (200, "settle", "de")
    assert (where(first), first.judgments.last().comment) == ((stages.LABELLED, "de"), "Bavarian")
    dossier = program.get(address(first)).json()
    assert (dossier["open"], dossier["outcome"], dossier["own"]) == (False, "de", settled.json())
    again = program.post(address(first, "settle"), label="de", comment="Bavarian", **KNOWN)
    assert again.json() == settled.json()
    assert refusal(program.post(address(first, "settle"), label="en", **KNOWN)) == (409, "wrong_stage")
    assert program.post(address(second, "discard"), reason="nothing found").json()["kind"] == "discard"
    assert refusal(program.post(address(second, "discard"), **KNOWN)) == (409, "wrong_stage")
    assert where(second) == (stages.DISCARDED, "")
    assert Judgment.objects.decisions().count() == 2
    assert program.get(LIST).json()["units"] == []
    assert program.post(address(first, "unsettle")).status_code == 204
    assert where(first) == (stages.ADJUDICATION, "")
    assert refusal(program.post(address(first, "unsettle"))) == (409, "nothing_to_undo")


def test_a_unit_that_readers_may_be_given_or_of_another_task_is_not_there(make_task, skipped, program, as_ada):
    waiting = skipped().units.get()
    open_units = list(make_task([DISPUTED, AGREED], name="open").units.all())
    for unit in open_units:
        assert refusal(program.get(address(unit))) == (404, "not_found")
        assert as_ada.get(f"/{address(unit)}").status_code == 404
    for path in (*map(address, open_units), f"tasks/open/adjudication/{waiting.pk}/"):
        for act, sent in (("settle", {"label": "de"}), ("discard", {})):
            assert refusal(program.post(f"{path}{act}/", **sent, **KNOWN)) == (404, "not_found")
    assert refusal(program.post(f"{path}unsettle/")) == (404, "not_found")
    assert where(waiting) == (stages.ADJUDICATION, "")


@pytest.fixture
def doubted(make_task, person):
    """A post whose reader contradicted the agreeing detectors, so an adjudicator checks it, blind."""
    task, ann = make_task([AGREED], audit_least=1, audit_recheck=0), person("ann", "de")
    judge(ann, take(ann, task).pk, Answer("fr", comment="surely French"))
    return task.units.get()


def everything(program, unit):
    return json.dumps([program.get(f"tasks/{unit.task.name}/adjudication/").json(), program.get(address(unit)).json()])


def test_no_vote_answer_or_history_of_a_blind_unit_is_revealed(doubted, program, ada):
    for decided in (False, True):
        if decided:
            settle(ada, doubted.pk, Answer("en", "I read the language"))
        dossier = program.get(address(doubted)).json()
        assert (dossier["blind"], dossier["outcome"]) == (True, None)
        assert (dossier["votes"], dossier["judgments"], dossier["history"]) == ({}, [], [])
        shown = everything(program, doubted)
        words = ["ann", "French", '"fr"', '"de"', "langid", "cld2", "fasttext", "audit", "candidates"]
        assert [word for word in (*words, *stages.STAGES) if word in shown] == []
    assert program.post(address(doubted, "unsettle")).status_code == 204
    (listed,) = program.get(LIST).json()["units"]
    assert (listed["blind"], listed["told"]) == (True, {})
    assert program.get(f"{LIST}?language=de").json()["units"] == []


def test_a_record_has_its_fields_and_what_people_said_of_it(differed, program):
    task, _ = differed
    (row,) = program.get("tasks/crowd/adjudication/").json()["units"]
    unit = task.units.get()
    assert (row["item"], row["language"]) == (unit.item.key, "en")
    assert row["fields"] == {name: unit.item.fields[name] for name in task.kind.fields}
    assert row["told"] == {"language": "en", "answers": "Perfect, Excellent, Bad"}
    assert [judgment["label"] for judgment in program.get(address(unit)).json()["judgments"]] == ["4", "3", "0"]
    assert program.post(address(unit, "settle"), label="3", reason="The guidelines say so").status_code == 200


# --- `adjudicate`: decisions from a file, and the list of what waits as one


@pytest.fixture
def file(tmp_path):
    """file("id,label,reason\\n1,de,known\\n") writes a CSV file."""

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


def test_no_vote_of_a_blind_check_is_revealed(make_task, person, ada):
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
