"""Adjudication by the API: the rights, the rules and the blindness of the pages, in JSON."""

import json

import pytest

from annotate.core import stages
from annotate.kinds import Answer
from annotate.models import Judgment, Task
from annotate.work.adjudication import settle
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.test_adjudication import differed  # noqa: F401 - fixture
from tests.annotate.test_api import Program, refusal

KNOWN = {"reason": "I read the language"}
DISPUTED_UNIT = {"unit", "item", "text", "language", "fields", "asked"}
DOSSIER = {"url", "sets", "blind", "open", "own", "outcome", "votes", "judgments", "history", "posts", "searches"}


@pytest.fixture
def ada(person):
    return person("ada", adjudicates=True)


@pytest.fixture
def program(client, ada):
    return Program(client, ada)


@pytest.fixture
def skipped(make_task, person):
    """Two posts whose one reader has skipped them; the first may be in Frisian."""
    task, ann = make_task([DISPUTED] * 2, rounds=1), person("ann", "de")
    while lease := take(ann, task):
        skip(ann, lease.pk)
    return task


def address(unit, act=""):
    return f"tasks/{unit.task.name}/adjudication/{unit.pk}/{act and act + '/'}"


def where(unit):
    unit.refresh_from_db()
    return unit.stage, unit.label


def test_the_list_has_what_waits_with_ids_and_with_what_the_page_says(skipped, program):
    found = program.get("tasks/task/adjudication/").json()
    assert {name: value for name, value in found.items() if name != "units"} == {
        "waiting": 2,
        "for_others": 0,
        "pages": 1,
    }
    assert [set(row) for row in found["units"]] == [DISPUTED_UNIT | {"blind", "told"}] * 2
    first, unit = found["units"][0], skipped.units.get(position=1)
    assert (first["unit"], first["item"], first["text"]) == (unit.pk, unit.item.key, unit.item.text)
    assert (first["blind"], first["told"]) == (False, {"candidates": "de, en", "queues so far": "de"})


def test_the_list_is_cut_to_a_language_and_into_pages(skipped, program, monkeypatch):
    monkeypatch.setattr("annotate.pages.api_adjudication.PER_PAGE", 1)
    positions = [
        [row["unit"] for row in program.get(f"tasks/task/adjudication/?language=de&page={page}").json()["units"]]
        for page in (1, 2)
    ]
    assert positions == [[unit.pk] for unit in skipped.units.order_by("position")]
    french = program.get("tasks/task/adjudication/?language=fr").json()
    assert (french["waiting"], french["units"]) == (2, [])
    beyond = program.get("tasks/task/adjudication/?page=3")
    assert (refusal(beyond), beyond.json()["detail"]) == ((404, "not_found"), "There is no such page: the list has 2.")
    strange = program.get("tasks/task/adjudication/?language=xx-none")
    assert refusal(strange) == (400, "invalid_answer")
    assert "'xx-none' is not a language code known here; write a code such as de or zh-CN." in strange.json()["detail"]


def test_a_dossier_has_votes_judgments_and_history(skipped, program):
    unit = skipped.units.get(position=1)
    found = program.get(address(unit)).json()
    assert set(found) == DISPUTED_UNIT | DOSSIER
    assert (found["open"], found["own"], found["outcome"], found["blind"]) == (True, None, None, False)
    assert found["votes"]["langid"] == [["de", 0.9], ["en", 0.7]]
    assert [(said["annotator"], said["queue"], said["kind"]) for said in found["judgments"]] == [("ann", "de", "skip")]
    assert [(move["event"], move["stage"], move["by"]) for move in found["history"]] == [
        ("disputed", "QUEUED", None),
        ("exhausted", "ADJUDICATION", "ann"),
    ]
    assert "Wiktionary" in found["searches"]


def test_a_unit_is_settled_discarded_and_taken_back(skipped, program):
    first, second = skipped.units.order_by("position")
    settled = program.post(address(first, "settle"), label="de", comment="Bavarian", **KNOWN)
    assert (settled.status_code, settled.json()["kind"], settled.json()["label"]) == (200, "settle", "de")
    assert (where(first), first.judgments.last().comment) == ((stages.LABELLED, "de"), "Bavarian")
    found = program.get(address(first)).json()
    assert (found["open"], found["outcome"], found["own"]) == (False, "de", settled.json())
    assert program.post(address(second, "discard"), reason="nothing found").json()["kind"] == "discard"
    assert where(second) == (stages.DISCARDED, "")
    assert program.get("tasks/task/adjudication/").json()["units"] == []
    assert program.post(address(first, "unsettle")).status_code == 204
    assert where(first) == (stages.ADJUDICATION, "")
    assert refusal(program.post(address(first, "unsettle"))) == (409, "nothing_to_undo")


def test_a_decision_sent_again_is_answered_as_the_first_was_and_another_is_refused(skipped, program):
    unit = skipped.units.get(position=1)
    first = program.post(address(unit, "settle"), label="de", **KNOWN)
    assert program.post(address(unit, "settle"), label="de", **KNOWN).json() == first.json()
    assert refusal(program.post(address(unit, "settle"), label="en", **KNOWN)) == (409, "wrong_stage")
    assert refusal(program.post(address(unit, "discard"), **KNOWN)) == (409, "wrong_stage")
    assert Judgment.objects.decisions().count() == 1


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"label": "ja", **KNOWN}, "'ja' is not on this task's list of languages."),
        ({"label": "de"}, "reason: This field is required."),
        ({"label": "de", "reason": " "}, "reason: This field may not be blank."),
        ({"label": "", **KNOWN}, "label: This field may not be blank."),
        ({"label": "de", "reason": "x" * 201}, "reason: Ensure this field has no more than 200 characters."),
        ({"label": "de", "comment": "a\x00", **KNOWN}, "comment: Null characters are not allowed."),
    ],
)
def test_a_decision_that_cannot_be_taken_is_refused_with_a_sentence(skipped, program, said, sentence):
    refused = program.post(address(skipped.units.get(position=1), "settle"), **said)
    assert refusal(refused) == (400, "invalid_answer")
    assert refused.json()["detail"] == sentence
    assert not Judgment.objects.decisions().exists()


def test_nobody_decides_by_the_api_what_they_have_judged(make_task, person, client):
    task, both = make_task([DISPUTED], rounds=1), person("both", "de", adjudicates=True)
    skip(both, take(both, task).pk)
    program, unit = Program(client, both), task.units.get()
    found = program.get("tasks/task/adjudication/").json()
    assert (found["waiting"], found["for_others"], found["units"]) == (0, 0, [])
    for sent in ({"act": "settle", "label": "de"}, {"act": "discard"}):
        refused = program.post(address(unit, sent.pop("act")), **sent, **KNOWN)
        assert refusal(refused) == (403, "not_allowed")
        assert "another adjudicator must decide it" in refused.json()["detail"]


def test_a_unit_that_readers_may_still_be_given_is_not_there(make_task, program):
    for unit in make_task([DISPUTED, AGREED]).units.all():
        assert refusal(program.get(address(unit))) == (404, "not_found")
        for act, sent in (("settle", {"label": "de"}), ("discard", {})):
            assert refusal(program.post(address(unit, act), **sent, **KNOWN)) == (404, "not_found")


def test_a_unit_is_decided_under_its_own_task_only(skipped, make_task, program):
    other = make_task([DISPUTED], name="other")
    unit = skipped.units.get(position=1)
    for act in ("settle", "discard", "unsettle"):
        sent = {"label": "de"} if act == "settle" else {}
        refused = program.post(f"tasks/{other.name}/adjudication/{unit.pk}/{act}/", **sent, **KNOWN)
        assert refusal(refused) == (404, "not_found")
    assert where(unit)[0] == stages.ADJUDICATION


@pytest.fixture
def doubted(make_task, person):
    """A post on which the detectors agree, which its reader denied: an adjudicator checks it, blind."""
    task, ann = make_task([AGREED], audit_least=1, audit_recheck=0), person("ann", "de")
    judge(ann, take(ann, task).pk, Answer("fr", comment="surely French"))
    unit = task.units.get()
    assert unit.stage == stages.ADJUDICATION
    return unit


def everything(program, unit):
    return json.dumps([program.get(f"tasks/{unit.task.name}/adjudication/").json(), program.get(address(unit)).json()])


def test_of_a_unit_that_is_checked_blind_no_vote_answer_or_history_is_told(doubted, program, ada):
    for decided in (False, True):
        if decided:
            settle(ada, doubted.pk, Answer("en", "I read the language"))
        found = program.get(address(doubted)).json()
        assert (found["blind"], found["outcome"]) == (True, None)
        assert (found["votes"], found["judgments"], found["history"]) == ({}, [], [])
        told = everything(program, doubted)
        for word in (
            "ann",
            "French",
            '"fr"',
            '"de"',
            "langid",
            "cld2",
            "fasttext",
            "audit",
            "candidates",
            *stages.STAGES,
        ):
            assert word not in told, word
    (row,) = Task.objects.get().units.all()
    assert program.post(address(row, "unsettle")).status_code == 204
    (listed,) = program.get("tasks/task/adjudication/").json()["units"]
    assert (listed["blind"], listed["told"]) == (True, {})
    assert program.get("tasks/task/adjudication/?language=de").json()["units"] == []


def test_what_detectors_and_readers_said_changes_nothing_of_what_is_told_blind(make_task, person, program):
    told = []
    for number, (votes, said) in enumerate([(("de",) * 3, "fr"), (("fr",) * 3, "und")]):
        task = make_task(
            [{"votes": votes, "text": "the same text", "letters": 40, "key": f"key{number}"}],
            name=f"task{number}",
            audit_least=1,
        )
        reader = person(f"reader{number}", "de fr")
        judge(reader, take(reader, task).pk, Answer(said))
        unit = task.units.get()
        told.append(everything(program, unit).replace(f'"unit": {unit.pk},', "").replace(f'"item": "key{number}"', ""))
        Task.objects.filter(pk=task.pk).update(is_open=False)
    assert told[0] == told[1]


def test_a_record_has_its_fields_and_what_people_said_of_it(differed, program):  # noqa: F811
    task, _ = differed
    (row,) = program.get("tasks/crowd/adjudication/").json()["units"]
    unit = task.units.get()
    assert (row["item"], row["language"]) == (unit.item.key, "en")
    assert row["fields"] == {name: unit.item.fields[name] for name in task.kind.fields}
    assert row["told"] == {"language": "en", "answers": "Perfect, Excellent, Bad"}
    assert [said["label"] for said in program.get(address(unit)).json()["judgments"]] == ["4", "3", "0"]
    assert program.post(address(unit, "settle"), label="3", reason="The guidelines say so").status_code == 200
