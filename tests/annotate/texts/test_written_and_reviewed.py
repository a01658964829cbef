"""A text is written by one person and reviewed by two others; without both, an adjudicator decides."""

from io import StringIO

import pytest
from django.core.management import CommandError
from django.urls import reverse

from annotate.actions.registry import call_command
from annotate.core import refusals, stages
from annotate.kinds import Answer
from annotate.kinds.forms.free_text import ACCEPTED, REJECTED
from annotate.models import Judgment
from annotate.work import answer_changes
from annotate.work.adjudication import settle
from annotate.work.judgments import judge, skip
from annotate.work.queue import release_all, take
from tests.annotate.acts import say
from tests.annotate.goldsets.set_contents import json_lines
from tests.annotate.programs import Program

FIRST, BETTER = "How many strings have a violin?", "How many strings does a violin have?"


@pytest.fixture
def people(person):
    return [person(name, "en") for name in ("wim", "ria", "rob", "roy")]


def answer_on_the_page(client, person, *, answer):
    """Send the values of the form to the page of the queue, and return the response."""
    client.force_login(person.user)
    client.post(reverse("start", args=["questions"]), {"read": 1})
    page = client.get(reverse("queue", args=["questions"]))
    sent = {"lease": page.context["lease"].pk, "answer": answer}
    return client.post(reverse("judge", args=["questions"]), sent)


def test_a_question_is_written_accepted_corrected_adjudicated_and_exported(opened, people, ada, client, tmp_path):
    task, (wim, ria, rob, roy) = opened(size="1", texts={"p1": "A violin\nhas four strings."}), people
    assert answer_on_the_page(client, wim, answer=[f"  {FIRST}\n"]).status_code == 302
    unit = task.units.get()
    assert (unit.stage, unit.redundancy) == (stages.QUEUED, 3)
    # The forms of accepting and correcting contain the field with a correction too.
    answer_on_the_page(client, ria, answer=[ACCEPTED + FIRST, "a correction that was not sent"])
    answer_on_the_page(client, rob, answer=[BETTER])
    assert list(Judgment.objects.values_list("label", flat=True)) == [FIRST, FIRST, BETTER]
    unit.refresh_from_db()
    assert (unit.stage, unit.label) == (stages.ADJUDICATION, "")
    assert take(roy, task) is None

    # Cases can be listed, but not be decided on in a file.
    printed = StringIO()
    call_command("adjudicate", "questions", list=True, **{"as": "ada"}, stdout=printed)
    assert "Task questions: 1 record to be decided by ada." in printed.getvalue()
    with pytest.raises(CommandError, match="shows versions of a text, which a file cannot do"):
        call_command("adjudicate", "questions", out=str(tmp_path / "cases.csv"), **{"as": "ada"})

    client.force_login(ada.user)
    bench = reverse("adjudicate", args=["questions", unit.pk])
    page = client.get(bench).text
    assert "<del>have</del><ins>does</ins>" in page.replace(" ", "")
    assert client.post(bench, {"answer": [REJECTED], "reason": "No"}).status_code == 400
    assert client.post(bench, {"answer": ["  "], "reason": "No"}).status_code == 400
    client.post(bench, {"answer": [ACCEPTED + BETTER, FIRST], "reason": "Better wording"})
    unit.refresh_from_db()
    assert (unit.stage, unit.label) == (stages.LABELLED, BETTER)

    out, printed = tmp_path / "gold", StringIO()
    call_command("export_gold", "questions", out=out, splits="train=0,dev=0,test=1", seed="1", stdout=printed)
    assert printed.getvalue() == f"1 of 1 records written to {out}.\n"
    assert (out / "xglue.qg.en.src.test").read_text() == "A violin has four strings.\n"
    assert (out / "xglue.qg.en.tgt.test").read_text() == f"{BETTER}\n"
    [row] = json_lines(out / "gold.jsonl")
    assert [judgment["label"] for judgment in row["judgments"]] == [FIRST, FIRST, BETTER, BETTER]
    card = (out / "README.md").read_text()
    assert "task_categories:\n- text-generation\n" in card
    assert "## Review of the texts\n\nAccepted by all 2 reviewers: 0 of 1 text." in card
    assert "2 others then accepted, corrected or rejected it" in card


def test_a_text_that_both_accept_is_the_label(opened, people):
    task, (wim, ria, rob, _roy) = opened(size="1"), people
    say(wim, task, BETTER)
    assert say(ria, task, BETTER).stage == stages.QUEUED
    unit = say(rob, task, BETTER)
    assert (unit.stage, unit.label) == (stages.LABELLED, BETTER)


@pytest.mark.parametrize("verdicts", [(REJECTED, BETTER), (REJECTED, REJECTED), ("Why?, or what else?",) * 2])
def test_a_text_that_not_both_accept_goes_to_an_adjudicator(opened, people, ada, verdicts):
    task, (wim, *reviewers) = opened(size="1"), people
    say(wim, task, BETTER)
    for reviewer, verdict in zip(reviewers, verdicts, strict=False):
        unit = say(reviewer, task, verdict)
    assert (unit.stage, unit.label) == (stages.ADJUDICATION, "")
    with pytest.raises(refusals.InvalidAnswer, match="no text to reject"):
        settle(ada, unit.pk, Answer(REJECTED, reason="Bad"))
    settle(ada, unit.pk, Answer(FIRST, reason="Mine"))
    unit.refresh_from_db()
    assert (unit.stage, unit.label) == (stages.LABELLED, FIRST)


def test_only_one_person_writes_at_a_time_and_a_skipped_passage_goes_to_another_writer(opened, people):
    task, (wim, ria, rob, _roy) = opened(size="1"), people
    skip(wim, take(wim, task).pk)
    lease = take(ria, task)
    assert take(rob, task) is None
    with pytest.raises(refusals.InvalidAnswer, match="no text to reject"):
        judge(ria, lease.pk, Answer(REJECTED))
    judge(ria, lease.pk, Answer(BETTER))
    assert take(rob, task) is not None
    assert take(wim, task) is None


def test_a_writer_can_undo_a_text_until_somebody_reviews_it(opened, people, client):
    task, (wim, ria, _rob, _roy) = opened(size="1"), people
    say(wim, task, FIRST)
    again = answer_changes.undo(wim, task)
    assert task.kind.form.texts_for(again.unit, wim) == ("", FIRST)
    # Nobody else writes a text of the same item meanwhile.
    assert (task.units.get().redundancy, take(ria, task)) == (1, None)
    client.force_login(wim.user)
    assert f">{FIRST}</textarea>" in client.get(reverse("queue", args=["questions"])).text
    judge(wim, again.pk, Answer("Which strings?"))
    # A reviewer has the text open, then returns it, then answers.
    take(ria, task)
    with pytest.raises(refusals.TooLateToUndo, match="Somebody else is already reviewing your text"):
        answer_changes.undo(wim, task)
    release_all(ria, task)
    judge(wim, answer_changes.undo(wim, task).pk, Answer(FIRST))
    say(ria, task, FIRST)
    with pytest.raises(refusals.TooLateToUndo, match="Somebody else is already reviewing your text"):
        answer_changes.undo(wim, task)
    # Reviewers can undo their own answers. Then the writer can undo the text again.
    answer_changes.undo(ria, task)
    release_all(ria, task)
    answer_changes.undo(wim, task)


def test_a_text_that_looks_like_a_mark_of_the_pages_is_neither_stored_nor_published(opened, people, ada, client):
    task, (wim, ria, rob, _roy) = opened(size="1"), people
    for sent, why in (
        (ACCEPTED, "not a text of this item"),
        (f"{ACCEPTED}{FIRST}", "not a text of this item"),
        (f"{REJECTED}x and y", "cannot start with &lt;rejected&gt;"),
        ("How \u202emany\u202c strings?", "U+202E"),
        ("How \u2067many strings?", "U+2067"),
    ):
        response = answer_on_the_page(client, wim, answer=[sent])
        assert response.status_code == 400, sent
        assert why in response.text
    assert not Judgment.objects.exists()
    answer_on_the_page(client, wim, answer=[FIRST])
    refused = answer_on_the_page(client, ria, answer=[ACCEPTED + BETTER, BETTER])
    assert (refused.status_code, "not a text of this item" in refused.text) == (400, True)
    say(ria, task, FIRST)
    say(rob, task, BETTER)
    client.force_login(ada.user)
    bench = reverse("adjudicate", args=["questions", task.units.get().pk])
    assert client.post(bench, {"answer": [f"{ACCEPTED}Another text?"], "reason": "No"}).status_code == 400
    assert list(Judgment.objects.values_list("label", flat=True)) == [FIRST, FIRST, BETTER]


def test_programs_write_and_review_through_the_api(opened, people, client):
    opened(size="1")
    first, second, third = (Program(client, person) for person in people[:3])
    lease = first.post("tasks/questions/next/").json()["lease"]
    assert (lease["written"], lease["fields"]) == ("", {"passage": lease["text"]})
    for refused, why in (
        (" ", "blank"),
        ("Why?", "at least 8"),
        ("?" * 20, "no letter"),
        ("x" * 201, "at most 200"),
        (REJECTED, "no text to reject"),
        ("a\x07bcdefgh", "control character"),
    ):
        response = first.post(f"leases/{lease['id']}/judge/", label=refused)
        assert response.status_code == 400, refused
        assert why in response.text
    # An accent may be sent as one character or as two.
    assert first.post(f"leases/{lease['id']}/judge/", label="Where is the Cafe\u0301?").json()["label"] == (
        "Where is the Caf\u00e9?"
    )
    lease = second.post("tasks/questions/next/").json()["lease"]
    assert lease["written"] == "Where is the Caf\u00e9?"
    assert second.post(f"leases/{lease['id']}/judge/", label=lease["written"]).status_code == 200
    lease = third.post("tasks/questions/next/").json()["lease"]
    assert third.post(f"leases/{lease['id']}/judge/", label=REJECTED).json()["label"] == REJECTED


def test_the_control_counts_what_reviewers_answered(opened, people):
    task, (wim, ria, rob, _roy) = opened(size="3"), people
    for verdicts in ((BETTER, BETTER), (BETTER, FIRST), (REJECTED, BETTER)):
        say(wim, task, BETTER)
        for person, verdict in zip((ria, rob), verdicts, strict=True):
            say(person, task, verdict)
    [control] = task.kind.quality_controls
    results = control.section(task)
    assert {name: results["all"][name] for name in ("texts", "by_all", "accepted", "corrected", "rejected")} == {
        **{"texts": 3, "by_all": 1},
        **{"accepted": 4, "corrected": 1, "rejected": 1},
    }
    assert results["all"]["share"]["value"] == pytest.approx(1 / 3)
    assert control.panel(task, results).words == ["Accepted by all 2 reviewers: 1 of 3 texts."]
