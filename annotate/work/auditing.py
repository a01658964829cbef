"""Reading more: posts that a manager adds to a task's audit, and units that one reader decides added to its checks."""

from collections.abc import Collection

from django.db import transaction
from django.db.models import QuerySet

from annotate.core import stages
from annotate.core.refusals import NotFound, WrongStage
from annotate.models import Task, Unit
from annotate.quality import checks
from annotate.quality.audits import choose_more, labels_of, of_audit, unread
from annotate.work.closing import how_to_go_on
from annotate.work.contesting import locked
from annotate.work.moving import PLAIN, moved, save_all, send_to_people
from annotate.work.routes import Routes


@transaction.atomic
def add_audits(task: Task, number: int, languages: Collection[str] = ()) -> dict[str, int]:
    """Add `number` posts that nobody was asked about to the audit, or all there are. Returns how many by language.

    languages: labels on which the detectors agree, among which they are shared out (core/audits.allotted); empty for
    all. A text whose other posts have been read is not read again. by: the manager who asks for it. NotFound for a
    language in which the detectors agree on nothing, WrongStage for a closed task or where nothing is left.
    """
    # The units that are with people because a copy of theirs was chosen may be chosen now themselves.
    task = _locked_open(task, unread(task).exclude(stage__in=(stages.AGREED, stages.COPIED)))
    agreed = labels_of(task.units.all())
    _check_languages(languages, agreed, f"The detectors agree on no post of task {task.name}", "they do")
    found = choose_more(task, number, languages)
    if not found:
        raise WrongStage(
            f"Nothing can be added to the audit of task {task.name}: people read every post{_where(languages)} on "
            "which the detectors agree, or have read it."
        )
    units = _units(task, found)
    for unit in units:
        unit.audited = True
    save_all(units, [], ["audited"])
    # Those that had been chosen before have left the detectors' stage.
    send_to_people(task.units.filter(of_audit()), "audited", Routes.load(task))
    return {label: len(units) for label, units in found.items()}


@transaction.atomic
def add_checks(task: Task, number: int, languages: Collection[str] = ()) -> dict[str, int]:
    """Have an adjudicator decide `number` more units again, or all there are, of those that one reader decides or has
    decided. Returns how many by queue.

    languages: first queues, among which they are shared out as audits are; empty for all. NotFound for a language in
    whose queue no unit asked one reader, WrongStage for a closed task or where nothing is left.
    """
    task = _locked_open(task, checks.asked_of_one(task).filter(recheck=False))
    queues = checks.check_counts(task)
    _check_languages(languages, queues, f"One reader decides no unit of task {task.name}", "that is so")
    found = checks.choose_more(task, number, languages)
    if not found:
        raise WrongStage(
            f"No check can be added to task {task.name}: nothing{_where(languages)} that one reader decides is "
            "unchecked."
        )
    units = _units(task, found)
    of_one = set(task.units.filter(checks.is_alone(), pk__in=[unit.pk for unit in units]).values_list("pk", flat=True))
    transitions = []
    for unit in units:
        unit.recheck = True
        if unit.stage == stages.LABELLED and unit.pk in of_one:
            transitions.append(moved(unit, "checked", stages.ADJUDICATION, of=PLAIN))
    save_all(units, transitions, ["recheck", "stage", "label"])
    return {queue: len(of_one.intersection(units)) for queue, units in found.items()}


def _locked_open(task: Task, units: QuerySet[Unit]) -> Task:
    """The task, locked after these units, since an answer locks its unit first and then the task. WrongStage if it is
    closed."""
    list(units.order_by("pk").select_for_update(of=("self",), no_key=True))
    task = locked(task)
    if not task.is_open:
        raise WrongStage(f"Task {task.name} is closed, so nobody would read them. {how_to_go_on(task)}")
    return task


def _check_languages(languages: Collection[str], known: Collection[str], none: str, others: str) -> None:
    """NotFound for a language that is not among the known ones."""
    if strange := [label for label in languages if label not in known]:
        raise NotFound(
            f"{none} in {', '.join(strange)}; {others} in: {', '.join(sorted(filter(None, known))) or 'no language'}."
        )


def _where(languages: Collection[str]) -> str:
    return f" in {', '.join(languages)}" if languages else ""


def _units(task: Task, found: dict[str, list[int]]) -> list[Unit]:
    return list(task.units.in_bulk([unit for units in found.values() for unit in units]).values())
