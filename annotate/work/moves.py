"""Moves units between stages.

Only this module writes Unit.stage, and it stores a Transition for each move. Callers must have locked the unit's row,
except while a task is being opened, when no other transaction can see its units. routing.py selects the next stage or
queue of a unit that its answers don't decide.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone

from annotate.core import stages
from annotate.core.aggregation.answer_table import outcome
from annotate.kinds import Answer
from annotate.models import Annotator, Judgment, Task, Transition, Unit
from annotate.work.routes import Routes
from corpora.core import CorpusError, package_of
from corpora.database.bulk_rows import insert, insert_columns, plain, update
from corpora.database.statements import insert_one, new_row, update_one

BATCH = 2000
PLAIN = plain(Transition)
_NEW = partial(new_row, Transition)
# Fields of a unit that change when it enters a queue.
CHANGED = ("stage", "label", "round", "language", "visited", "candidates", "recheck")
# First stage of a new unit -> event. For units that start in a queue, the task's kind defines the event.
_FIRST_EVENTS = {stages.COPIED: "copied", stages.LABELLED: "reused", stages.AGREED: "agreed"}
# A primary key that no row has, because primary keys start at 1.
NO_ROW = 0
# Result of a unit's answers: (event, next stage, label) if they decide it, otherwise the number of answers needed.
Resolution = tuple[str, str, str] | int


def move(unit: Unit, event: str, to_stage: str, *, keep: bool = True, **changes: Any) -> None:
    """Move a unit, and save the unit and the transition.

    keep: whether to store the move. If False, the same statements run without effect.
    changes: see `apply_move`. If no label is passed, the unit's label is cleared.
    """
    transition = apply_move(unit, event, to_stage, of=_NEW, **changes)
    update_one(unit, "stage", "label", "round", "language", "visited", "redundancy", keep=keep)
    insert_one(transition, keep=keep)


def apply_move(
    unit: Any,
    event: str,
    to_stage: str,
    *,
    by: User | None = None,
    judgment: Judgment | None = None,
    label: str = "",
    of: Callable[..., Any] = Transition,
    **changes: Any,
) -> Any:
    """Move a unit in memory and return the transition. The caller saves both.

    of: class to build the transition with; PLAIN is a faster one for bulk insertion.
    changes: new values of round, language, visited or redundancy.
    """
    stages.check_move(unit.stage, event, to_stage)
    from_stage, unit.stage, unit.label = unit.stage, to_stage, label
    for field, value in changes.items():
        setattr(unit, field, value)
    return of(
        unit=unit,
        event=event,
        from_stage=from_stage,
        to_stage=to_stage,
        round=unit.round,
        language=unit.language,
        label=label,
        judgment=judgment,
        by=by,
        at=timezone.now(),
    )


# --- units with all their answers


def decide(unit: Unit, answers: Sequence[Judgment], *, asks: bool = True, **how: Any) -> None:
    """Decide a unit that has all its answers: label it, ask another annotator, or move it to its next stage.

    answers: the unit's answers.
    asks: whether a control may request more answers.
    how: `by`, `judgment` and `keep`, see `move`.
    """
    apply_resolution(unit, resolve(unit, [answer.label for answer in answers], asks=asks), **how)


def decide_now(unit: Unit, answers: Sequence[Judgment], **how: Any) -> None:
    """Decide a unit based on its current answers, without asking anyone else."""
    unit.redundancy = len(answers)
    decide(unit, answers, asks=False, **how)


def apply_resolution(unit: Unit, result: Resolution, **how: Any) -> None:
    """Apply the result of `resolve` to the unit.

    how: see `decide`.
    """
    if isinstance(result, int):
        unit.redundancy = result
        update_one(unit, "redundancy", keep=how.get("keep", True))
    else:
        event, to_stage, label = result
        move(unit, event, to_stage, **how, label=label)


def aggregate(task: Task, answers: Sequence[str]) -> tuple[bool, Any]:
    """Aggregate a unit's answers by the task's rule.

    Returns (True, number of answers needed) if the answers don't decide yet, otherwise (False, label). The label is
    None if the rule selects none.
    """
    people = task.redundancy if task.stop_early else len(answers)
    rule = task.kind.form.aggregations[task.aggregation]
    result = outcome(list(answers), aggregate=rule, order=task.labels, people=people)
    return isinstance(result, int) and len(answers) < people, result


def resolve(unit: Unit, answers: list[str], aggregated: Any = None, *, asks: bool = True) -> Resolution:
    """Return the event, the next stage and the label that result from a unit's answers.

    If the answers don't decide the unit yet, returns the number of answers that it needs now.

    answers: the labels in the unit's answers.
    aggregated: the result of `aggregate` for these answers, if the caller has it.
    asks: whether a control may request more answers.
    """
    task = unit.task
    is_open, result = aggregated or aggregate(task, answers)
    if is_open:
        return int(result)
    # If the label is one of the answers, it was checked when the annotator gave that answer.
    label = result if result is None or result in answers else _checked_label(unit, result)
    for control in task.hooks["decided"]:
        decided = control.decided(unit, answers, label)
        if isinstance(decided, int):
            if asks and decided > len(answers):
                return decided
        elif decided:
            return decided
    if label is None:
        # A unit with a known answer is hidden among the work and doesn't need a label.
        return "conflicted", stages.DISCARDED if unit.known_answer else task.on_conflict, ""
    return "answered", stages.LABELLED, label


def _checked_label(unit: Unit, result: object) -> str:
    """Check and return a label that an aggregation computed. Called only if no annotator gave this label.

    Raise CorpusError, naming the package that defines the aggregation, if the label is not a possible answer.
    """
    form, name = unit.task.kind.form, unit.task.aggregation
    try:
        if not isinstance(result, str):
            raise ValueError("It must be a text or None.")
        unit.task.kind.rules.check(Answer(result, is_sure=True), unit)
    except ValueError as error:
        raise CorpusError(
            f"{package_of(form)} cannot be used: its aggregation {name} of the form {form.slug} returned {result!r} "
            f"for the unit {unit}. {error} Fix the package."
        ) from error
    return result


def is_audit(unit: Unit) -> bool:
    """Return whether annotators label the unit because it, or a copy of it, was drawn for the audit."""
    cached: Any = unit  # some queries annotate units with `is_audit`
    if not hasattr(cached, "is_audit"):
        cached.is_audit = unit.transitions.filter(event="audited").exists()
    return bool(unit.agreed_label) and cached.is_audit


# --- units that enter queues


def queue_unit(unit: Unit, event: str, routes: Routes) -> Any:
    """Move a unit to the queue of its most likely language and return the transition. The caller saves both."""
    candidates = routes.kind.routing.candidates(unit.item, unit.asked, routes)
    return apply_move(unit, event, stages.QUEUED, of=PLAIN, **first_queue(candidates, routes))


def first_queue(candidates: Sequence[str], routes: Routes) -> dict[str, Any]:
    """Return the field values of a unit that enters the queue of its most likely language.

    candidates: the unit's possible languages, most likely first.
    """
    queue = routes.queue_in(candidates[0])
    return {"candidates": candidates, "round": 1, "language": queue, "visited": [queue]}


def insert_units(task: Task, units: Mapping[str, Sequence[Any]], **fixed: Any) -> None:
    """Insert new units and their first transitions.

    units: column values by column name, including the primary keys.
    fixed: values that are the same for all units.
    """
    events = {**_FIRST_EVENTS, stages.QUEUED: task.kind.routing.enters_by}
    for stage, event in events.items():
        stages.check_move(stages.NEW, event, stage)
    insert_columns(Unit, units, task_id=task.pk, **fixed)
    moves = {name: units[name] for name in ("round", "language", "label")}
    moves |= {"unit_id": units["id"], "event": [*map(events.get, units["stage"])], "to_stage": units["stage"]}
    insert_columns(Transition, moves, from_stage=stages.NEW, at=timezone.now())


def labels_as_seen(annotator: Annotator, labelled: Iterable[tuple[Unit, str]]) -> list[str]:
    """Convert stored labels to the form that an annotator sees.

    labelled: (unit, stored label) pairs.
    """
    pairs = list(labelled)
    for control in dict.fromkeys(control for unit, _ in pairs for control in unit.task.hooks["seen"]):
        pairs = [(unit, label) for (unit, _), label in zip(pairs, control.seen(annotator, pairs), strict=True)]
    return [label for _, label in pairs]


def lock_task(task: Task) -> Task:
    """Return the task with its row locked, so that only one transaction at a time evaluates agreement or adds units."""
    return Task.all_objects.select_for_update(no_key=True).get(pk=task.pk)


def queue_agreed_units(units: QuerySet[Unit], event: str, routes: Routes) -> int:
    """Move the units in stage AGREED into queues, and return how many were moved. Other units don't move."""
    units = units.filter(stage=stages.AGREED).select_related("item", "task")
    # no_key prevents a deadlock with a transaction that extends the task by copies of these units.
    unit_list = list(units.select_for_update(of=("self",), no_key=True))
    transitions = [queue_unit(unit, event, routes) for unit in unit_list]
    for control in routes.task.hooks["queued"]:
        control.queued(routes.task, unit_list, event)
    save_all(unit_list, transitions, CHANGED)
    return len(unit_list)


def save_all(units: list[Unit], transitions: Iterable[Any], fields: Collection[str]) -> None:
    update(units, fields)
    insert(transitions)
