"""Adjudication by the API: the rights, the rules and the blindness of the pages, in JSON."""

import json

import pytest

from annotate.core import stages
from annotate.kinds import Answer
from annotate.models import Annotator, Judgment
from annotate.work.adjudication import settle
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.adjudication.acts import where
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


def test_a_unit_that_readers_may_be_given_or_of_another_task_is_not_there(make_task, skipped, program, ada, client):
    waiting = skipped().units.get()
    client.force_login(ada.user)
    open_units = list(make_task([DISPUTED, AGREED], name="open").units.all())
    for unit in open_units:
        assert refusal(program.get(address(unit))) == (404, "not_found")
        assert client.get(f"/{address(unit)}").status_code == 404
    for path in (*map(address, open_units), f"tasks/open/adjudication/{waiting.pk}/"):
        for act, sent in (("settle", {"label": "de"}), ("discard", {})):
            assert refusal(program.post(f"{path}{act}/", **sent, **KNOWN)) == (404, "not_found")
    assert refusal(program.post(f"{path}unsettle/")) == (404, "not_found")
    assert where(waiting) == (stages.ADJUDICATION, "")


@pytest.fixture
def doubted(make_task, person):
    """A post on which the detectors agree, which its reader denied: an adjudicator checks it, blind."""
    task, ann = make_task([AGREED], audit_least=1, audit_recheck=0), person("ann", "de")
    judge(ann, take(ann, task).pk, Answer("fr", comment="surely French"))
    return task.units.get()


def everything(program, unit):
    return json.dumps([program.get(f"tasks/{unit.task.name}/adjudication/").json(), program.get(address(unit)).json()])


def test_of_a_unit_that_is_checked_blind_no_vote_answer_or_history_is_told(doubted, program, ada):
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
