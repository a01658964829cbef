"""Closing a task: the outcome of units that nobody will answer, and how the set reports it."""

from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.controls.decoys import load_labelled_units
from annotate.core import stages
from annotate.figures.queue_states import queue_states
from annotate.figures.task_overview import load_overview
from annotate.goldsets.exporter import export
from annotate.goldsets.verification import verify
from annotate.kinds import Answer
from annotate.work.adjudication import settle
from annotate.work.closure import close, reopen
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from annotate.work.routing import reroute
from tests.annotate.conftest import DISPUTED
from tests.annotate.goldsets.acts import with_manifest
from tests.annotate.goldsets.set_contents import card_of, json_lines

ENDED = ("decided", "unconfirmed", "left_out", "unfinished")


def say(annotator, task, label):
    lease = take(annotator, task)
    return judge(annotator, lease.pk, Answer(label)) if label else skip(annotator, lease.pk)


def ended(done):
    return tuple(done[name] for name in ENDED)


def where(task):
    return list(task.units.order_by("position").values_list("stage", "label"))


@pytest.fixture
def standing_still(make_records_task, person):
    """Two records of which three are to be asked: two people have answered, the second of them alike."""

    def make(**fields):
        task = make_records_task("qa_match", 3, **fields)
        for name, labels in (("ann", ["1", "1", "1"]), ("bea", ["1", "0", "1"]), ("cem", [None, None, "0"])):
            annotator = person(name, "en")
            for label in labels:
                say(annotator, task, label)
        return task

    return make


def test_a_record_is_decided_when_the_last_reader_skips_and_the_command_line_says_why_the_task_stands_still(
    standing_still, capsys
):
    task = standing_still()
    assert where(task) == [(stages.LABELLED, "1"), (stages.QUEUED, ""), (stages.LABELLED, "1")]
    # The task's page has the same sentence.
    [queue] = queue_states(task)["queues"]
    assert queue["stuck"]
    [row] = load_overview().tasks
    assert queue["said"] in row["next"]
    call_command("tasks")
    call_command("status")
    call_command("close", "crowd")
    printed = capsys.readouterr()
    assert " ".join((printed.out + printed.err).split()).count(queue["said"]) == 3


def test_a_record_that_most_have_decided_is_decided_by_rerouting_or_closing_when_nobody_is_left(
    make_records_task, person
):
    for number, end in enumerate((reroute, close)):
        task = make_records_task("qa_match", 2, name=f"t{number}")
        ann, bea = person(f"ann{number}", "en"), person(f"bea{number}", "en")
        for label, other in (("1", "1"), ("1", "0")):
            say(ann, task, label)
            say(bea, task, other)
        assert where(task) == [(stages.QUEUED, "")] * 2
        User.objects.exclude(pk__in=[ann.user_id, bea.user_id]).update(is_active=False)
        assert end(task)["decided"] == 1
        assert where(task) == [(stages.LABELLED, "1"), (stages.QUEUED, "")]


def test_a_closed_task_is_finished_without_the_records_left_out_which_are_asked_again_once_it_is_reopened(
    standing_still, person, out
):
    task = standing_still()
    with pytest.raises(CommandError, match="close crowd --leave-out"):
        call_command("reroute", "crowd")
    assert ended(close(task)) == (0, 0, 0, 1)
    with_manifest("records")
    assert not export(task, out)["finished"]
    printed = StringIO()
    call_command("close", "crowd", leave_out=True, stdout=printed)
    assert "Excluded without a label: 1 item. All items are finished." in printed.getvalue()
    manifest = export(task, out)
    assert manifest["finished"]
    assert manifest["counts"]["left_out"] == {"closed": 1}
    [row] = json_lines(out / "left_out.jsonl")
    assert (row["left_out"], row["label"]) == ("closed", None)
    assert "had no label when a manager closed the task" in card_of(out)[1]
    assert not list(out.glob("*.unfinished.*"))
    reopen(task)
    assert where(task)[1] == (stages.QUEUED, "")
    say(person("dee", "en"), task, "0")
    assert where(task)[1] == (stages.LABELLED, "0")


def test_what_somebody_has_open_is_left_to_them(make_records_task, person):
    task, ann = make_records_task("qa_match", 2), person("ann", "en")
    lease = take(ann, task)
    assert ended(close(task, leave_out=True)) == (0, 0, 1, 1)
    judge(ann, lease.pk, Answer("1"))
    assert ended(close(task, leave_out=True)) == (0, 0, 1, 0)


# --- labels that nobody has confirmed


@pytest.fixture
def unconfirmed(make_task, person):
    """Of two posts the language that one reader alone named, in the queue of another, is not confirmed: of the first
    nobody else reads it, and the second waits for somebody who does.
    """
    task, ann = make_task([DISPUTED] * 3), person("ann", "de fr")
    with_manifest()
    say(ann, task, "fr")
    person("ben", "en")
    say(ann, task, "en")
    say(ann, task, "de")
    return task


def test_an_unconfirmed_label_is_exported_in_a_stratum_of_its_own_and_is_no_known_answer_elsewhere(unconfirmed, out):
    assert ended(close(unconfirmed)) == (0, 2, 0, 0)
    manifest = export(unconfirmed, out)
    assert manifest["finished"]
    assert manifest["counts"]["by_stratum"] == {"disputed": 1, "unconfirmed": 2}
    rows = [(row["label"], row["stratum"], row["decided_by"]) for row in json_lines(out / "gold.jsonl")]
    assert rows == [("fr", "unconfirmed", "one"), ("en", "unconfirmed", "one"), ("de", "disputed", "one")]
    assert "| `unconfirmed` |" in card_of(out)[1]
    third = unconfirmed.units.get(position=3)
    assert load_labelled_units(third.item.corpus) == {third.item_id: [third]}


def test_where_there_is_an_adjudicator_what_waits_for_them_waits_on_unless_it_is_left_out(unconfirmed, person):
    ada = person("ada", adjudicates=True)
    assert ended(close(unconfirmed)) == (0, 1, 0, 1)
    first = unconfirmed.units.get(position=1)
    assert first.stage == stages.ADJUDICATION
    reopen(unconfirmed)
    assert ended(close(unconfirmed, leave_out=True)) == (0, 2, 0, 0)
    reopen(unconfirmed)
    settle(ada, first.pk, Answer("fr", "I read it"))
    assert ended(close(unconfirmed)) == (0, 1, 0, 0)


def test_a_unit_that_waits_for_a_second_adjudicator_has_the_first_decision_when_it_is_left_out(make_task, person):
    task = make_task([DISPUTED], check_share=1.0)
    ada, ann = person("ada", adjudicates=True), person("ann", "de")
    person("eve", adjudicates=True)
    say(ann, task, None)
    settle(ada, task.units.get().pk, Answer("de", "I read it"))
    assert ended(close(task)) == (0, 0, 0, 1)
    assert ended(close(task, leave_out=True)) == (1, 0, 0, 0)
    assert where(task) == [(stages.LABELLED, "de")]


def test_the_lots_of_a_set_fit_whose_units_were_left_out_or_not_confirmed(make_task, person, out):
    task, ann = make_task([DISPUTED] * 4, check_share=0.5), person("ann", "de")
    with_manifest()
    say(ann, task, "fr")
    say(ann, task, "de")
    close(task, leave_out=True)
    export(task, out, tell_secret=True)
    assert verify(out)["differ"] == 0
