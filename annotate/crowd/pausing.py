"""Who is given no more work of a task: by its rule on gold answers, or by a manager, who also lifts that and voids.

The rule and what it does to people of any accuracy is in annotate/core/pausing.py.
"""

from typing import NamedTuple

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from annotate.core import stages
from annotate.core.pausing import Rule, pauses
from annotate.crowd import honeypots
from annotate.errors import InvalidAnswer, Paused
from annotate.models import Annotator, Judgment, Lease, Pause, Task, Unit
from annotate.queue import close_others, one_at_a_time
from annotate.routing import reopen

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
    reason = reason.strip()
    if not reason:
        raise InvalidAnswer("Say in a few words why, so that others can follow the decision.")
    one_at_a_time(annotator)
    found = running(annotator, task)
    if found is None:
        return _pause(annotator, task, *_known(annotator, task), by=by, reason=reason[:REASON])
    if reason not in found.reason:
        found.reason = "; ".join(filter(None, [found.reason, reason]))[:REASON]
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


def _answers(annotator: Annotator, task: Task) -> QuerySet[Judgment]:
    """What voiding takes; skips are no answers, and no label rests on them."""
    return Judgment.objects.filter(annotator=annotator, unit__task=task, kind=Judgment.ANSWER, voided_at=None)


def would_void(annotator: Annotator, task: Task) -> dict[str, int]:
    """What voiding would do now: answers, gold answers among them; units that would be reopened, that wait already,
    that keep an adjudicator's decision; and units of other tasks that took their label from those reopened.
    """
    own = _answers(annotator, task)
    units = Unit.objects.filter(pk__in=own.values("unit"), honeypot=False).order_by()
    decided = Judgment.objects.filter(unit=OuterRef("pk"), voided_at=None, kind__in=DECISIONS)
    reopened = units.filter(~Exists(decided)).exclude(stage=stages.QUEUED)
    return {
        "answers": own.count(),
        "known": own.filter(unit__honeypot=True).count(),
        "reopened": reopened.count(),
        "waiting": units.filter(stage=stages.QUEUED).count(),
        "decided": units.filter(Exists(decided)).count(),
        "reused": Unit.objects.filter(reused_from__in=reopened).count(),
    }


@transaction.atomic
def void(annotator: Annotator, task: Task, *, by, reason: str) -> Voided:
    """Void all of an annotator's answers in a task, pause them, and reopen every unit that rests on the answers.

    The judgments are kept and marked, and they are never given the same units again. Run twice, the second time finds
    nothing.
    """
    pause(annotator, task, by=by, reason=reason)
    # In one order; nobody else holds one unit while waiting for another. None is added, as the annotator is locked.
    units = Unit.objects.filter(pk__in=_answers(annotator, task).values("unit")).order_by("pk")
    found = list(units.select_for_update(of=("self",), no_key=True).select_related("task"))
    own = list(_answers(annotator, task).values_list("pk", "lease_id"))
    Lease.objects.filter(pk__in=[lease for _, lease in own]).update(place=None, outcome="voided")
    Judgment.objects.filter(pk__in=[judgment for judgment, _ in own]).update(voided_at=timezone.now(), voided_by=by)
    reopened = 0
    for unit in found:
        before = unit.stage
        reopen(unit, by)
        reopened += unit.stage != before
    return Voided(len(own), reopened)
