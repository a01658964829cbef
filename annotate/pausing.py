"""Who is given no more work of a task: by its rule on gold answers, or by a manager, who also lifts that and voids.

The rule and what it does to people of any accuracy is in annotate/core/pausing.py.
"""

from django.db import transaction
from django.utils import timezone

from annotate import honeypots
from annotate.core.pausing import Rule, pauses
from annotate.errors import InvalidAnswer, Paused
from annotate.models import Annotator, Judgment, Pause, Task, Unit
from annotate.queue import close_others, one_at_a_time
from annotate.routing import reopen

PAUSED = "Your work in this task is paused, and the manager has been told. What you answered before is kept."


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
    """Give an annotator no more work of a task. Who is paused already stays so."""
    if not reason.strip():
        raise InvalidAnswer("Say in a few words why, so that others can follow the decision.")
    one_at_a_time(annotator)
    return running(annotator, task) or _pause(
        annotator, task, *_known(annotator, task), by=by, reason=reason.strip()[:200]
    )


@transaction.atomic
def lift(found: Pause, *, by) -> None:
    """Let an annotator go on; what counts against them from now on are the known answers from now on."""
    Pause.objects.filter(pk=found.pk, lifted_at=None).update(lifted_at=timezone.now(), lifted_by=by)


@transaction.atomic
def void(annotator: Annotator, task: Task, *, by, reason: str) -> int:
    """Void all of an annotator's answers in a task, pause them, and reopen every unit that rests on the answers.

    The judgments are kept and marked, and they are never given the same units again. Returns how many units went back
    to the queue. Run twice, the second time finds nothing.
    """
    pause(annotator, task, by=by, reason=reason)
    live = Judgment.objects.filter(annotator=annotator, unit__task=task, lease__isnull=False, voided_at=None)
    # In one order, and nobody else holds one unit while waiting for another.
    units = Unit.objects.filter(pk__in=live.values("unit")).order_by("pk")
    now, reopened = timezone.now(), 0
    for unit in units.select_for_update(of=("self",), no_key=True).select_related("task"):
        own = unit.judgments.filter(annotator=annotator, voided_at=None, lease__isnull=False)
        unit.leases.filter(judgment__in=own).update(place=None, outcome="voided")
        own.update(voided_at=now, voided_by=by)
        before = unit.stage
        reopen(unit, by)
        reopened += unit.stage != before
    return reopened
