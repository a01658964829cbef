"""Managers' interventions (pausing annotators, lifting pauses, voiding answers), and consent to sensitive work."""

from collections import Counter, defaultdict
from datetime import datetime
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Greatest
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.core import stages
from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.models import Annotator, Consent, Judgment, Lease, Pause, Task, Unit
from annotate.models.work import Judgments
from annotate.work.backlog import clear_count
from annotate.work.permit import Permit, acting, current_pause, permit_of
from annotate.work.queue import close_open
from annotate.work.routing import is_decided_by_remaining, reopen

REASON = 200  # characters


def stop(permit: Permit, right: int, answers: int, **details: Any) -> Pause:
    """Pause an annotator and return their open units.

    right: number of units with a known answer that they have answered correctly since their last pause was lifted.
    answers: number of units with a known answer that they have answered since then.
    details: the manager (`by`) and the `reason`; both are omitted for an automatic pause.
    """
    annotator, task = permit.annotator, permit.task
    at = timezone.now()
    new_pause = Pause.objects.create(annotator=annotator, task=task, right=right, asked=answers, at=at, **details)
    close_open(annotator, task)
    return new_pause


@transaction.atomic
def pause(annotator: Annotator, task: Task, *, by: User | None, reason: str) -> Pause:
    """Pause an annotator in a task. If they are already paused, the reason is added to that pause."""
    reason = reason.strip()
    if not reason:
        raise InvalidAnswer("Enter a short reason, so that others can follow the decision.")
    if "\x00" in reason:
        raise InvalidAnswer("The reason contains a NUL character. Please remove it.")
    if len(reason) > REASON:
        raise InvalidAnswer(f"The reason is longer than {REASON} characters. Please shorten it.")
    annotator.lock()
    ongoing = current_pause(annotator, task)
    if ongoing is None:
        permit = permit_of(annotator, task)
        right, answers = next(filter(None, (control.score(permit) for control in task.hooks["score"])), (0, 0))
        return stop(permit, right, answers, by=by, reason=reason)
    if not f"; {ongoing.reason}".endswith(f"; {reason}"):
        ongoing.reason = "; ".join(filter(None, [ongoing.reason, reason]))
        ongoing.save(update_fields=["reason"])
    return ongoing


@transaction.atomic
def lift(pause: Pause, *, by: User | None) -> None:
    """Lift a pause. Only answers given from now on can lead to another automatic pause."""
    Pause.objects.filter(pk=pause.pk, lifted_at=None).update(lifted_at=timezone.now(), lifted_by=by)


class VoidResult(NamedTuple):
    """The result of voiding answers.

    answers: number of answers voided.
    reopened: number of units that returned to their queues.
    """

    answers: int
    reopened: int


def _voidable(annotator: Annotator, task: Task) -> Judgments:
    """Return the judgments that voiding affects: answers, and skips, because they may have exhausted a unit.

    Flags are left out, because a careless annotator may still be right that an item is disturbing.
    """
    judgments = Judgment.objects.live().filter(annotator=annotator, unit__task=task)
    return judgments.filter(kind__in=[Judgment.ANSWER, Judgment.SKIP])


def _depends_on(unit: Unit, judgment: Judgment) -> bool:
    """Return whether a unit must be reopened if a judgment on it is voided.

    True if the judgment is an answer, or a skip in the round that ended because too many annotators skipped.
    """
    if judgment.kind == Judgment.ANSWER:
        return True
    if unit.stage not in (stages.ADJUDICATION, stages.DISCARDED):
        return False
    assert judgment.lease is not None
    if judgment.lease.round != unit.round:
        return False
    last = unit.transitions.last()
    assert last is not None
    # If a manager rerouted the unit for lack of readers, the transition has no judgment.
    return last.event == "exhausted" and last.judgment_id is not None


def preview_void(annotator: Annotator, task: Task) -> dict[str, int]:
    """Count what would change if an annotator's judgments were voided now. Returns a dict with these keys:

    answers: answers that would be voided.
    known: number of these answers that are to hidden gold items.
    skips: skips that would be voided.
    reopened: units that would return to their queues.
    settled: units that would be decided by their remaining answers.
    waiting: units still in their queues that would lose a judgment.
    decided: units that would keep an adjudicator's decision.
    reused: units of other tasks whose labels were copied from units that would lose an answer.
    """
    judgments = _voidable(annotator, task)
    by_unit = {judgment.unit_id: judgment for judgment in judgments.of_work().select_related("lease")}
    units = Unit.objects.work().filter(pk__in=judgments.values("unit")).order_by()
    decided = Judgment.objects.live().decisions().filter(unit=OuterRef("pk"))
    remaining: dict[int, list[str]] = defaultdict(list)
    other_answers = Judgment.objects.live().answers().filter(unit__in=units.order_by())
    for pk, label in other_answers.exclude(annotator=annotator).order_by("pk").values_list("unit", "label"):
        remaining[pk].append(label)
    counts: Counter[str] = Counter()
    annotated: QuerySet[Any] = units.annotate(decided=Exists(decided))
    for unit in annotated:
        unit.task = task  # avoid a query for each unit
        if not _depends_on(unit, by_unit[unit.pk]):
            continue
        if unit.decided:
            counts["decided"] += 1
        elif is_decided_by_remaining(unit, remaining[unit.pk]):
            counts["settled"] += 1
        else:
            counts["waiting" if unit.stage == stages.QUEUED else "reopened"] += 1
    answered = units.filter(pk__in=judgments.answers().values("unit"), label__gt="")
    return {
        "answers": judgments.answers().count(),
        "known": judgments.answers().filter(unit__honeypot=True).count(),
        "skips": judgments.filter(kind=Judgment.SKIP).count(),
        **{outcome: counts[outcome] for outcome in ("reopened", "settled", "waiting", "decided")},
        "reused": Unit.objects.filter(reused_from__in=answered.filter(~Exists(decided))).count(),
    }


@transaction.atomic
def void(annotator: Annotator, task: Task, *, by: User | None, reason: str) -> VoidResult:
    """Void all answers and skips of an annotator in a task, and pause the annotator.

    Every unit that depends on these judgments is reopened. The judgments are kept but marked as void, and their units
    are never assigned to the annotator again. Idempotent.
    """
    annotator.lock()
    # Lock the units ordered by primary key. No other transaction waits for one unit while holding the lock of another,
    # so this can't deadlock. The annotator is locked too, and can't judge a unit in the meantime.
    units = Unit.objects.filter(pk__in=_voidable(annotator, task).values("unit")).order_by("pk")
    locked_units = {unit.pk: unit for unit in units.select_for_update(of=("self",), no_key=True).select_related("task")}
    judgments = [
        judgment for judgment in _voidable(annotator, task).select_related("lease") if judgment.unit_id in locked_units
    ]
    Lease.objects.filter(pk__in=[judgment.lease_id for judgment in judgments]).update(place=None, outcome="voided")
    voided = Judgment.objects.filter(pk__in=[judgment.pk for judgment in judgments])
    voided.update(voided_at=timezone.now(), voided_by=by)
    reopened = 0
    for judgment in judgments:
        unit = locked_units[judgment.unit_id]
        stage_before = unit.stage
        if _depends_on(unit, judgment):
            reopen(unit, by)
        reopened += stage_before != stages.QUEUED == unit.stage
    # Pause the annotator last. This closes leases without locking their units, and other transactions that wait for the
    # units need these leases too.
    pause(annotator, task, by=by, reason=reason)
    clear_count(annotator, task)
    return VoidResult(sum(judgment.kind == Judgment.ANSWER for judgment in judgments), reopened)


# --- consent to sensitive work; permit.py enforces it


def consented_at(annotator: Annotator, task: Task) -> datetime | None:
    """Return when the annotator consented to a task's work; None if they haven't, or have withdrawn their consent."""
    consents = Consent.objects.filter(annotator=annotator, task=task, withdrawn_at=None)
    return consents.values_list("at", flat=True).first()


def agree(annotator: Annotator, task: str) -> None:
    """Record an annotator's consent to a task's work. Idempotent.

    task: task name.

    Raise NotFound if the task is not sensitive.
    """
    with acting(annotator.user, task) as permit:
        check_sensitive(permit.task)
        Consent.objects.get_or_create(
            annotator=annotator, task=permit.task, withdrawn_at=None, defaults={"at": timezone.now()}
        )


def withdraw(annotator: Annotator, task: str) -> None:
    """Withdraw an annotator's consent and return their open units. Their answers remain. Idempotent."""
    with acting(annotator.user, task) as permit:
        check_sensitive(permit.task)
        consents = Consent.objects.filter(annotator=annotator, task=permit.task, withdrawn_at=None)
        # The withdrawal must not precede the consent, even if the clock was set back in between.
        consents.update(withdrawn_at=Greatest("at", timezone.now()))
        close_open(annotator, permit.task)


def check_sensitive(task: Task) -> None:
    """Raise NotFound if the task needs no consent."""
    if not task.kind.sensitive:
        raise NotFound(_("This task does not require your agreement."))
