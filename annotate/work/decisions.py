"""Decisions: what becomes of a unit that has all its answers. moves.py performs the moves."""

from collections.abc import Sequence
from typing import Any

from annotate.core import stages
from annotate.core.aggregation.answer_table import outcome
from annotate.kinds import Answer
from annotate.models import Judgment, Unit
from annotate.work.moves import move
from corpora.core import CorpusError, package_of
from corpora.database.statements import update_one

# The event, the next stage and the label of a unit; or the number of answers that it needs now.
CameTo = tuple[str, str, str] | int


def decide(unit: Unit, answers: Sequence[Judgment], *, asks: bool = True, **how: Any) -> None:
    """Decide a unit that has all its answers: label it, ask one more person, or send it to its next stage.

    answers: the unit's answers.
    asks: whether a quality control may request answers from more people.
    how: `by`, `judgment` and `keep`, see `moves.move`.
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


def came_to(unit: Unit, answers: list[str], *, asks: bool = True) -> CameTo:
    """Return the event, the stage and the label that result from a unit's answers.

    If the answers do not decide the unit yet, return the number of answers that it needs now.

    asks: whether a quality control may request answers from more people.
    """
    task = unit.task
    asked = task.redundancy if task.stop_early else len(answers)
    aggregate = task.kind.form.aggregations[task.aggregation]
    result = outcome(answers, aggregate=aggregate, order=task.labels, people=asked)
    if isinstance(result, int) and len(answers) < asked:
        return result
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
