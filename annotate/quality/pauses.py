"""Who is given no more work of a task: by its rule on gold answers, or by a manager, who also lifts that and voids.

The rule and what it does to people of any accuracy is in annotate/core/pausing.py.
"""

from collections import Counter, defaultdict
from typing import NamedTuple

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from annotate.core import stages
from annotate.core.pausing import Rule, pauses
from annotate.core.refusals import InvalidAnswer, Paused
from annotate.models import Annotator, Judgment, Lease, Pause, Task, Unit
from annotate.quality import honeypots
from annotate.work.queue import close_others, one_at_a_time
from annotate.work.routing import left_decides, reopen

PAUSED = "Your work in this task is paused, and the manager has been told. What you answered before is kept."

REASON = 200  # letters of a manager's reason
DECISIONS = (Judgment.SETTLE, Judgment.DISCARD)


def rule(task: Task) -> Rule:
    return Rule(task.pause_below, task.pause_confidence, task.pause_least)


def running(annotator: Annotator, task: Task) -> Pause | None:
    return Pause.objects.filter(annotator=annotator, task=task, lifted_at=None).first()


def check_not_paused(annotator: Annotator, task: Task) -> None:
    if running(annotator, task):
        raise Paused(PAUSED)


def after_answer(judgment: Judgment) -> None:
    """After an answer to a honeypot: pause who has failed too many since they began, or since their last pause.

    The caller has the annotator locked.
    """
    annotator, task = judgment.annotator, judgment.unit.task
    right, asked = _known(annotator, task)
    if pauses(right, asked, rule(task)) and running(annotator, task) is None:
        _pause(annotator, task, right, asked)


def _known(annotator: Annotator, task: Task) -> tuple[int, int]:
    """How many known answers the annotator has given since their last pause was lifted, of how many asked for."""
    own = honeypots.answers(task).filter(annotator=annotator)
    if lifted := Pause.objects.filter(annotator=annotator, task=task, lifted_at__isnull=False).first():
        own = own.filter(answered_at__gt=lifted.lifted_at)
    found = list(own.values_list("right", flat=True))
    return sum(found), len(found)


def _pause(annotator: Annotator, task: Task, right: int, asked: int, *, by=None, reason: str = "") -> Pause:
    pause = Pause.objects.create(
        annotator=annotator, task=task, right=right, asked=asked, by=by, reason=reason, at=timezone.now()
    )
    close_others([], annotator, task, "released")
    return pause


@transaction.atomic
def pause(annotator: Annotator, task: Task, *, by, reason: str) -> Pause:
    """Give an annotator no more work of a task. Who is paused already stays so, and the reason is noted with it."""
    reason = _checked(reason)
    one_at_a_time(annotator)
    return _pause_or_note(annotator, task, by=by, reason=reason)


def _checked(reason: str) -> str:
    """A manager's reason without blanks around it. InvalidAnswer where it cannot be stored, or is none."""
    reason = reason.strip()
    if not reason:
        raise InvalidAnswer("Say in a few words why, so that others can follow the decision.")
    if "\x00" in reason:
        raise InvalidAnswer("The reason has a NUL character in it. Please remove it.")
    if len(reason) > REASON:
        raise InvalidAnswer(f"The reason is longer than {REASON} characters. Please shorten it.")
    return reason


def _pause_or_note(annotator: Annotator, task: Task, *, by, reason: str) -> Pause:
    found = running(annotator, task)
    if found is None:
        return _pause(annotator, task, *_known(annotator, task), by=by, reason=reason)
    if not f"; {found.reason}".endswith(f"; {reason}"):
        found.reason = "; ".join(filter(None, [found.reason, reason]))
        found.save(update_fields=["reason"])
    return found


@transaction.atomic
def lift(found: Pause, *, by) -> None:
    """Let an annotator go on; what counts against them from now on are the known answers from now on."""
    Pause.objects.filter(pk=found.pk, lifted_at=None).update(lifted_at=timezone.now(), lifted_by=by)


class Voided(NamedTuple):
    """What voiding did: answers that count no more, and units that went back to the queue."""

    answers: int
    reopened: int


def _said(annotator: Annotator, task: Task) -> QuerySet[Judgment]:
    """What voiding takes: answers, and skips, since units may be given up for them."""
    kinds = [Judgment.ANSWER, Judgment.SKIP]
    return Judgment.objects.filter(annotator=annotator, unit__task=task, kind__in=kinds, voided_at=None)


def _rests_on(unit: Unit, judgment: Judgment) -> bool:
    """Whether a unit is to be asked anew without a judgment: an answer, or a skip of the round that was given up."""
    if judgment.kind == Judgment.ANSWER:
        return True
    if unit.stage not in (stages.ADJUDICATION, stages.DISCARDED) or judgment.lease.round != unit.round:
        return False
    last = unit.transitions.last()
    return last.event == "exhausted" and last.judgment_id is not None  # not by a manager, for want of readers


def would_void(annotator: Annotator, task: Task) -> dict[str, int]:
    """What voiding would do now: answers, gold answers among them; skips; units that would be reopened, that would be
    decided at once by what is left, that wait already, that keep an adjudicator's decision; and units of other tasks
    that took their label from those that rest on the answers.
    """
    own = _said(annotator, task)
    said = {judgment.unit_id: judgment for judgment in own.filter(unit__honeypot=False).select_related("lease")}
    units = Unit.objects.filter(pk__in=own.values("unit"), honeypot=False).order_by().select_related("task")
    decided = Judgment.objects.filter(unit=OuterRef("pk"), voided_at=None, kind__in=DECISIONS)
    left: dict[int, list[str]] = defaultdict(list)
    others = Judgment.objects.filter(unit__in=units.order_by(), kind=Judgment.ANSWER, voided_at=None)
    for unit, label in others.exclude(annotator=annotator).order_by("pk").values_list("unit", "label"):
        left[unit].append(label)
    counts: Counter[str] = Counter()
    for unit in units.annotate(decided=Exists(decided)):
        if not _rests_on(unit, said[unit.pk]):
            continue
        if unit.decided:
            counts["decided"] += 1
        elif left_decides(unit, left[unit.pk]):
            counts["settled"] += 1
        else:
            counts["waiting" if unit.stage == stages.QUEUED else "reopened"] += 1
    answered = units.filter(pk__in=own.filter(kind=Judgment.ANSWER).values("unit"), label__gt="")
    return {
        "answers": own.filter(kind=Judgment.ANSWER).count(),
        "known": own.filter(kind=Judgment.ANSWER, unit__honeypot=True).count(),
        "skips": own.filter(kind=Judgment.SKIP).count(),
        **{what: counts[what] for what in ("reopened", "settled", "waiting", "decided")},
        "reused": Unit.objects.filter(reused_from__in=answered.filter(~Exists(decided))).count(),
    }


@transaction.atomic
def void(annotator: Annotator, task: Task, *, by, reason: str) -> Voided:
    """Void all that an annotator answered and skipped in a task, pause them, and reopen every unit that rests on it.

    The judgments are kept and marked, and they are never given the same units again. Run twice, the second time finds
    nothing.
    """
    reason = _checked(reason)
    one_at_a_time(annotator)
    # In one order; nobody else holds one unit while waiting for another. None is added, as the annotator is locked.
    units = Unit.objects.filter(pk__in=_said(annotator, task).values("unit")).order_by("pk")
    found = {unit.pk: unit for unit in units.select_for_update(of=("self",), no_key=True).select_related("task")}
    own = [judgment for judgment in _said(annotator, task).select_related("lease") if judgment.unit_id in found]
    Lease.objects.filter(pk__in=[judgment.lease_id for judgment in own]).update(place=None, outcome="voided")
    voided = Judgment.objects.filter(pk__in=[judgment.pk for judgment in own])
    voided.update(voided_at=timezone.now(), voided_by=by)
    reopened = 0
    for judgment in own:
        unit = found[judgment.unit_id]
        before = unit.stage
        if _rests_on(unit, judgment):
            reopen(unit, by)
        reopened += before != stages.QUEUED == unit.stage
    # Last, since it closes what they have open without the units' locks, for which others may wait who want the leases.
    _pause_or_note(annotator, task, by=by, reason=reason)
    return Voided(sum(judgment.kind == Judgment.ANSWER for judgment in own), reopened)
