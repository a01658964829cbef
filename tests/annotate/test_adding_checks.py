"""Units that a manager adds to the checks of readers who decide alone: which, how many by queue, and what follows."""

import json

import pytest
from django.core.management import CommandError

from annotate.actions.commands import call_command
from annotate.controls import checks
from annotate.controls.checks import add_checks
from annotate.core import stages
from annotate.core.draws import hash_order
from annotate.core.refusals import NotFound, WrongStage
from annotate.kinds import Answer
from annotate.work import adjudication
from annotate.work.answer_changes import undo
from annotate.work.closure import close
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.acts import said_by, say, settle
from tests.annotate.conftest import AGREED, DISPUTED
from tests.annotate.exporting.acts import with_manifest
from tests.annotate.test_adding_audits import exported
from tests.together import at_once, until_others_wait_or_end

FRENCH = ("fr en", "en fr", "fr")
# So small a share that only the least number of each language is checked.
FEW = 1e-9


@pytest.fixture
def ann(person):
    return person("ann", "de fr")


@pytest.fixture
def ada(person):
    return person("ada", adjudicates=True)


def checked(task, **fields):
    return set(task.units.filter(recheck=True, **fields).values_list("item__key", flat=True))


def first(task, number):
    """The units that the task's lots check first."""
    keys = task.units.values_list("item__key", flat=True)
    return set(hash_order.drawn(keys, number, lots=task.lots, purpose="check"))


def test_draws_of_checks_continue_where_the_first_ended(make_task, monkeypatch):
    monkeypatch.setattr(checks, "CHECK_LEAST", 5)
    task = make_task([DISPUTED] * 30, check_share=FEW)
    assert checked(task) == first(task, 5)
    assert add_checks(task, 4) == {"de": 4}
    assert checked(task) == checked(task, stage=stages.QUEUED) == first(task, 9)


def test_an_answered_unit_that_is_added_goes_to_an_adjudicator_who_is_told_nothing(make_task, ann, ada):
    task = make_task([DISPUTED] * 6)
    for _ in range(3):
        say(ann, task, "de")
    assert add_checks(task, 10) == {"de": 6}
    assert task.units.filter(recheck=True).count() == 6
    listed = list(adjudication.to_adjudicate(task, ada))
    assert len(listed) == 3
    assert all(unit.blind and unit.transitions.last().event == "checked" for unit in listed)
    settle(ada, listed[0], "fr")
    settle(ada, listed[1], "de")
    [row] = checks.report(task)["languages"]
    assert (row["checked"], row["otherwise"], row["waiting"], row["alone"]) == (2, 1, 4, 0)


def test_the_reader_of_a_unit_that_is_added_can_take_the_answer_back_as_before(make_task, ann):
    task = make_task([DISPUTED])
    lease = take(ann, task)
    judge(ann, lease.pk, Answer("de"))
    add_checks(task, 1)
    undo(ann, task)
    unit = task.units.get()
    assert (unit.stage, unit.recheck, said_by(ann)) == (stages.QUEUED, True, [])
    assert say(ann, task, "de").stage == stages.ADJUDICATION


def test_what_somebody_else_has_decided_is_drawn_in_its_turn_and_does_not_count(make_task, ann, ada):
    """So every unit of a queue has the same chance of a check, which an export states."""
    task = make_task([DISPUTED] * 20)
    order = hash_order.drawn(task.units.values_list("item__key", flat=True), 20, lots=task.lots, purpose="check")
    for unit in task.units.filter(item__key__in=order[:3]):
        unit.stage = stages.DISCARDED
        unit.save()
    assert add_checks(task, 5) == {"de": 5}
    assert checked(task) == set(order[:8])
    with_manifest()
    while take(ann, task):
        say(ann, task, "de")
    columns = {(row["check_chance"], row["checked"]) for row in exported(task, "check_chance", "checked", "stage")}
    assert (8 / 20, False) in columns


def test_queues_share_added_checks_by_size_and_by_how_often_readers_were_wrong(make_task, ann, ada, monkeypatch):
    monkeypatch.setattr(checks, "CHECK_LEAST", 4)
    task = make_task([DISPUTED] * 20 + [FRENCH] * 20, check_share=FEW)
    while lease := take(ann, task):
        judge(ann, lease.pk, Answer(lease.queue))
    french = task.units.filter(language="fr", stage=stages.ADJUDICATION)
    for unit, label in zip(list(french), ("de", "fr", "de", "fr"), strict=True):
        settle(ada, unit, label)
    for unit in task.units.filter(stage=stages.ADJUDICATION):
        settle(ada, unit, "de")
    added = add_checks(task, 12)
    assert sum(added.values()) == 12
    assert added["fr"] > added["de"]
    assert add_checks(task, 40, ["de"]) == {"de": 16 - added["de"]}


@pytest.mark.parametrize(
    ("languages", "refused", "why"),
    [
        (["en"], NotFound, "One reader decides no unit of task task in en; that is so in: de, fr."),
        (["fr"], WrongStage, "No check can be added to task task: nothing in fr that one reader decides is unchecked."),
    ],
)
def test_no_check_is_added_where_nothing_is_left(make_task, languages, refused, why):
    task = make_task([DISPUTED] * 5 + [FRENCH] * 3)
    add_checks(task, 10, ["fr"])
    with pytest.raises(refused, match=why):
        add_checks(task, 1, languages)


def test_no_check_is_added_to_a_closed_task(make_task):
    task = make_task([DISPUTED] * 5)
    close(task)
    with pytest.raises(WrongStage, match=r"Open it again with `assay reopen task`\."):
        add_checks(task, 1)


def test_adding_checks_asks_the_database_no_more_often_for_more_units(make_task, django_assert_max_num_queries):
    task = make_task([DISPUTED] * 150)
    with django_assert_max_num_queries(35):
        add_checks(task, 120)


def test_a_set_with_added_checks_shows_that_its_lots_are_those_of_the_secret(make_task, ann, ada, tmp_path, capsys):
    task = make_task([DISPUTED] * 12, check_share=FEW)
    for _ in range(6):
        say(ann, task, "de")
    add_checks(task, 5)
    while take(ann, task):
        say(ann, task, "de")
    for unit in list(adjudication.to_adjudicate(task, ada)):
        settle(ada, unit, "de")
    close(task)
    with_manifest()
    call_command("export_gold", "task", out=str(tmp_path / "set"), tell_secret=True)
    capsys.readouterr()
    call_command("verify_lots", str(tmp_path / "set"), json=True)
    said = json.loads(capsys.readouterr().out)
    assert said["secret_fits"]
    assert {row["lot"]: row["differ"] for row in said["lots"]}["check"] == 0


def test_the_command_adds_checks(make_task, ada, capsys):
    task = make_task([DISPUTED] * 20)
    call_command("audit", "task", "--add", "9", "--checks", "--dry-run")
    assert capsys.readouterr().out.startswith("Added to the checks by lot: 9 posts: 9 of de.\nThis was a dry run")
    assert not checked(task)
    call_command("audit", "task", "--add", "25", "--checks")
    said = "Added to the checks by lot: 20 posts: 20 of de. These are all there are, and not 25.\n"
    assert capsys.readouterr().out == said
    assert len(checked(task)) == 20


def test_the_command_refuses_checks_where_several_people_answer(make_records_task):
    make_records_task(gold=[])
    with pytest.raises(CommandError, match="crowd has no checks to add to: its kind of question asks several people"):
        call_command("audit", "crowd", "--add", "1", "--checks")


def test_checks_are_an_option_of_add(make_task):
    make_task([AGREED] * 5)
    with pytest.raises(CommandError, match=r"--checks: an option of --add, which is not given\."):
        call_command("audit", "task", "--checks")


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_an_answer_and_an_addition_of_checks_do_not_wait_for_each_other(make_task, person, monkeypatch):
    task = make_task([DISPUTED])
    ann = person("ann", "de")
    lease = take(ann, task)

    def check(_):
        until_others_wait_or_end()  # the answer has its unit locked

    monkeypatch.setattr("annotate.controls.agreement_audit.check_limit", check)
    said = at_once(lambda: judge(ann, lease.pk, Answer("de")), lambda: add_checks(task, 8))
    assert said[1] == {"de": 1}, said
    assert task.units.get().stage == stages.ADJUDICATION
