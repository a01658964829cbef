"""Moves of units between stages, such as the one that a unit's answers lead to.

Only this module writes Unit.stage, and it stores a Transition for each move. Callers must have locked the unit's row.
This is not necessary while a task is being opened, because no other transaction can see the units yet. routing.py
decides where a unit goes that its answers do not decide.
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
# Fields of a unit that change when it is sent to people.
CHANGED = ("stage", "label", "round", "language", "visited", "candidates", "recheck")
# The event for each first stage of a new unit. If the unit starts in a queue, the task's kind defines the event.
_BEGINNINGS = {stages.COPIED: "copied", stages.LABELLED: "reused", stages.AGREED: "agreed"}
# A primary key that no row has, because primary keys start at 1.
NO_ROW = 0
# The event, the next stage and the label of a unit; or the number of answers that it needs now.
CameTo = tuple[str, str, str] | int


def move(unit: Unit, event: str, to_stage: str, *, keep: bool = True, **changes: Any) -> None:
    """Move a unit whose row the caller has locked, and store the transition.

    changes: see `moved`. Without a new label, the unit has no label afterwards.
    keep: whether to store the move. If not, the same statements run without effect.
    """
    transition = moved(unit, event, to_stage, of=_NEW, **changes)
    update_one(unit, "stage", "label", "round", "language", "visited", "redundancy", keep=keep)
    insert_one(transition, keep=keep)


def moved(
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

    changes: new values of round, language, visited and redundancy.
    of: constructor of the transition; PLAIN is a faster one for bulk insertion.
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
    """Decide a unit that has all its answers: label it, ask one more person, or send it to its next stage.

    answers: the unit's answers.
    asks: whether a quality control may request answers from more people.
    how: `by`, `judgment` and `keep`, see `move`.
    """
    follow(unit, came_to(unit, [answer.label for answer in answers], asks=asks), **how)


def decide_without_more(unit: Unit, answers: Sequence[Judgment], **how: Any) -> None:
    """Decide a unit based on the answers that it has, without asking anybody else."""
    unit.redundancy = len(answers)
    decide(unit, answers, asks=False, **how)


def follow(unit: Unit, result: CameTo, **how: Any) -> None:
    """Store what a unit's answers came to. how: see `decide`."""
    if isinstance(result, int):
        unit.redundancy = result
        update_one(unit, "redundancy", keep=how.get("keep", True))
    else:
        event, to_stage, label = result
        move(unit, event, to_stage, **how, label=label)


def aggregate(task: Task, answers: Sequence[str]) -> tuple[bool, Any]:
    """Return whether more answers are needed, and how many, or the label that the task's aggregation returned."""
    people = task.redundancy if task.stop_early else len(answers)
    rule = task.kind.form.aggregations[task.aggregation]
    result = outcome(list(answers), aggregate=rule, order=task.labels, people=people)
    return isinstance(result, int) and len(answers) < people, result


def came_to(unit: Unit, answers: list[str], aggregated: Any = None, *, asks: bool = True) -> CameTo:
    """Return the event, the stage and the label that result from a unit's answers.

    If the answers do not decide the unit yet, return the number of answers that it needs now.

    aggregated: what `aggregate` returned for the answers, if the caller has called it.
    asks: whether a quality control may request answers from more people.
    """
    task = unit.task
    is_open, result = aggregated or aggregate(task, answers)
    if is_open:
        return int(result)
    # Most rules return one of the answers, which were checked when they were given.
    label = result if result is None or result in answers else _checked_label(unit, result)
    for control in task.hooks["decided"]:
        decided = control.decided(unit, answers, label)
        if isinstance(decided, int):
            if asks and decided > len(answers):
                return decided
        elif decided:
            return decided
    if label is None:
        # A unit with a known answer was hidden among the work, so it does not need a label.
        return "conflicted", stages.DISCARDED if unit.known_answer else task.on_conflict, ""
    return "answered", stages.LABELLED, label


def _checked_label(unit: Unit, result: object) -> str:
    """Return the label that an aggregation returned, which is none of the answers.

    If it is not a possible answer, raise a CorpusError that names the package of the unit's form.
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
    """Return whether people label the unit because the unit or a copy of it was drawn for the audit."""
    cached: Any = unit  # some queries annotate the unit with the result
    if not hasattr(cached, "is_audit"):
        cached.is_audit = unit.transitions.filter(event="audited").exists()
    return bool(unit.agreed_label) and cached.is_audit


# --- units that enter queues


def to_people(unit: Unit, event: str, routes: Routes) -> Any:
    """Move a unit to the queue for its most likely language and return the transition. The caller saves both."""
    candidates = routes.kind.routing.candidates(unit.item, unit.asked, routes)
    return moved(unit, event, stages.QUEUED, of=PLAIN, **first_queue(candidates, routes))


def first_queue(candidates: Sequence[str], routes: Routes) -> dict[str, Any]:
    """Return the values of a unit's fields in the queue of its most likely language."""
    queue = routes.queue_in(candidates[0])
    return {"candidates": candidates, "round": 1, "language": queue, "visited": [queue]}


def enter(task: Task, units: Mapping[str, Sequence[Any]], **fixed: Any) -> None:
    """Store new units and their first transitions.

    units: the values of each column, with the primary keys.
    fixed: values of all units.
    """
    events = {**_BEGINNINGS, stages.QUEUED: task.kind.routing.enters_by}
    for stage, event in events.items():
        stages.check_move(stages.NEW, event, stage)
    insert_columns(Unit, units, task_id=task.pk, **fixed)
    moves = {name: units[name] for name in ("round", "language", "label")}
    moves |= {"unit_id": units["id"], "event": [*map(events.get, units["stage"])], "to_stage": units["stage"]}
    insert_columns(Transition, moves, from_stage=stages.NEW, at=timezone.now())


def seen(annotator: Annotator, labelled: Iterable[tuple[Unit, str]]) -> list[str]:
    """Return the labels of units in the form that an annotator sees."""
    pairs = list(labelled)
    for control in dict.fromkeys(control for unit, _ in pairs for control in unit.task.hooks["seen"]):
        pairs = [(unit, label) for (unit, _), label in zip(pairs, control.seen(annotator, pairs), strict=True)]
    return [label for _, label in pairs]


def locked(task: Task) -> Task:
    """Return the task with its row locked, so that only one transaction at a time evaluates agreement or adds units."""
    return Task.all_objects.select_for_update(no_key=True).get(pk=task.pk)


def send_to_people(units: QuerySet[Unit], event: str, routes: Routes) -> int:
    """Move units from the stage AGREED into queues. Returns their number."""
    units = units.filter(stage=stages.AGREED).select_related("item", "task")
    # no_key prevents a deadlock with an extension that adds copies of the units.
    unit_list = list(units.select_for_update(of=("self",), no_key=True))
    transitions = [to_people(unit, event, routes) for unit in unit_list]
    for control in routes.task.hooks["queued"]:
        control.queued(routes.task, unit_list, event)
    save_all(unit_list, transitions, CHANGED)
    return len(unit_list)


def save_all(units: list[Unit], transitions: Iterable[Any], fields: Collection[str]) -> None:
    update(units, fields)
    insert(transitions)
