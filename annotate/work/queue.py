"""Handing units out: take, release, and what an annotator has open."""

from collections.abc import Iterable
from datetime import timedelta
from itertools import count

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from annotate.core import stages
from annotate.core.refusals import NotFound
from annotate.models import Annotator, Judgment, Lease, Task, Transition, Unit
from annotate.quality.honeypots import due
from annotate.work.routing import Routes, binding, queues_of


def _open_leases(annotator: Annotator, task: Task, *, sheet: bool) -> QuerySet[Lease]:
    return (
        Lease.objects.filter(annotator=annotator, unit__task=task, closed_at=None, expires_at__gt=timezone.now())
        .filter(unit__stage=stages.QUEUED, sheet=sheet)
        .select_related("unit__item", "unit__task")
    )


def open_lease(annotator: Annotator, task: Task) -> Lease | None:
    """The lease that the annotator holds in the task, if any; reads only."""
    return _open_leases(annotator, task, sheet=False).first()


def leased(annotator: Annotator, task: Task, lease_id: int) -> Lease | None:
    """A lease that the annotator was given in the task, whether or not it has run out; reads only."""
    own = Lease.objects.filter(pk=lease_id, annotator=annotator, unit__task=task)
    return own.select_related("unit__item", "unit__task").first()


def open_sheet(annotator: Annotator, task: Task) -> list[Lease]:
    """The leases of the sheet that the annotator holds in the task, in the order of the draw; reads only."""
    return list(_open_leases(annotator, task, sheet=True).order_by("unit__position"))


def waiting(annotator: Annotator, task: Task) -> QuerySet[Unit]:
    """Units in the annotator's queues that they have not judged, whether or not a place is free; no honeypots."""
    return in_own_queues(annotator, task).filter(stage=stages.QUEUED, honeypot=False)


def in_own_queues(annotator: Annotator, task: Task) -> QuerySet[Unit]:
    """Units that the annotator may still judge, honeypots among them, whatever stage they are at."""
    queues = list(queues_of(annotator, task, Routes.load()))
    return unjudged(annotator, task).filter(language__in=queues)


def unjudged(annotator: Annotator, task: Task) -> QuerySet[Unit]:
    """Units of the task that the annotator has not judged, whatever queue or stage they are in."""
    judged = Judgment.objects.filter(binding(), unit=OuterRef("pk"), annotator=annotator)
    units = task.units.filter(~Exists(judged))
    if annotator.adjudicates:
        # They could read there what others had answered.
        reopened = Transition.objects.filter(unit=OuterRef("pk"), event="reopened", from_stage=stages.ADJUDICATION)
        units = units.filter(~Exists(reopened))
    return units


def with_free_place(units: QuerySet[Unit]) -> QuerySet[Unit]:
    """Those of them of which not every place is held by an answer or by a lease that still runs."""
    held = (
        Lease.objects.filter(unit=OuterRef("pk"), place__isnull=False)
        .filter(Q(closed_at__isnull=False) | Q(expires_at__gt=timezone.now()))
        .order_by()
        .values("unit")
        .annotate(held=Count("pk"))
        .values("held")
    )
    return units.annotate(held=Coalesce(Subquery(held), 0)).filter(held__lt=F("redundancy"))


def take(annotator: Annotator, task: Task) -> Lease | None:
    """Lease the next unit to the annotator, or give back the one they already hold; None if there is none.

    Each try is a transaction of its own: who waits for a unit while holding another that was tried in vain would in
    the end wait for somebody who waits for them.
    """
    if lease := open_lease(annotator, task):
        return lease
    while task.is_open and (heads := _heads(annotator, task)):
        # Where all of them are being judged or handed out this moment, wait for the first: it may have another place.
        if lease := _try(annotator, task, heads, wait=False) or _try(annotator, task, heads[:1], wait=True):
            return lease
    with transaction.atomic():
        one_at_a_time(annotator)
        lease = open_lease(annotator, task)
        # What they held before has expired, or went on without them.
        close_others([lease] if lease else [], annotator, task, "expired")
        return lease


@transaction.atomic
def _try(annotator: Annotator, task: Task, heads: list[int], *, wait: bool) -> Lease | None:
    """Lease the first of these units that nobody has locked, or give back what another tab has leased meanwhile."""
    one_at_a_time(annotator)
    if lease := open_lease(annotator, task):
        return lease
    units = with_free_place(waiting(annotator, task)).filter(pk__in=heads).order_by("position")
    unit = units.select_for_update(of=("self",), skip_locked=not wait).first()
    if unit and (honeypot := due(annotator, task, unit.language, unjudged(annotator, task))):
        unit = honeypot
    lease = lease_locked(unit, annotator) if unit else None
    if lease:
        close_others([lease], annotator, task, "expired")
    return lease


# As many posts as one looks over at a time.
SHEET = 20


@transaction.atomic
def take_sheet(annotator: Annotator, task: Task, size: int = SHEET) -> list[Lease]:
    """Lease up to `size` units that ask about one language, or give back the sheet that is open already.

    All of them in one transaction, so that another tab is given the whole sheet. It may hold many units, since it
    waits for none: what somebody else has locked is theirs.
    """
    one_at_a_time(annotator)
    if leases := open_sheet(annotator, task):
        return leases
    # Enough for several people who begin a sheet at one moment.
    heads = _heads(annotator, task, 8 * size) if task.is_open else []
    units = with_free_place(waiting(annotator, task)).filter(pk__in=heads).order_by("position")
    taken: list[Lease] = []
    for asked in dict.fromkeys(units.values_list("asked", flat=True)):
        locked = units.filter(asked=asked).select_for_update(of=("self",), skip_locked=True)[:size]
        taken = [lease for unit in locked if (lease := lease_locked(unit, annotator, sheet=True))]
        if taken:
            break
    close_others(taken, annotator, task, "released")
    return open_sheet(annotator, task)


# More than are likely to be locked by others at one moment.
HEADS = 32


def _heads(annotator: Annotator, task: Task, count: int = HEADS) -> list[int]:
    """The first units of all the annotator's queues, in the order of the draw: whose turn it is tells nothing of votes.

    A question for each queue, since the index gives the order within one only.
    """
    units = with_free_place(waiting(annotator, task))
    heads = []
    for queue in queues_of(annotator, task, Routes.load()):
        heads += units.filter(language=queue).order_by("position").values_list("position", "pk")[:count]
    return [pk for _, pk in sorted(heads)]


def one_at_a_time(annotator: Annotator) -> None:
    """Of two requests of one person the second waits here: two tabs show the same unit.

    no_key: or else an answer, which names the annotator and has its unit locked, would wait as well.
    """
    Annotator.objects.select_for_update(no_key=True).get(pk=annotator.pk)


def close_others(kept: Iterable[Lease], annotator: Annotator, task: Task, outcome: str) -> None:
    """Close what the annotator has open in the task besides these leases.

    The last step, and without waiting, since these rows are changed without their units' locks: two who come back
    and are given each other's units would wait for one another. Who has such a row locked is about to close it.
    """
    others = Lease.objects.filter(annotator=annotator, unit__task=task, closed_at=None)
    others = others.exclude(pk__in=[lease.pk for lease in kept])
    found = [lease.pk for lease in others.select_for_update(skip_locked=True, of=("self",))]
    Lease.objects.filter(pk__in=found).update(closed_at=timezone.now(), place=None, outcome=outcome)


def lease_locked(unit: Unit, annotator: Annotator, *, sheet: bool = False) -> Lease | None:
    """Lease a unit whose row the caller has just locked; None if its last place went meanwhile.

    Counted in a statement of its own: under READ COMMITTED the statement that locked the row may have counted before
    another transaction, for which it waited, took the place.
    """
    if unit.judgments.filter(annotator=annotator, voided_at=None).exists():
        return None
    now = timezone.now()
    # Theirs already, in the other mode: on a sheet, or one by one. In this one it is handed out anew.
    held = unit.leases.filter(annotator=annotator, closed_at=None, expires_at__gt=now)
    held.update(closed_at=now, place=None, outcome="released")
    place = free_place(unit)
    if place is None:
        return None
    return Lease.objects.create(
        unit=unit,
        annotator=annotator,
        place=place,
        round=unit.round,
        queue=unit.language,
        sheet=sheet,
        opened_at=now,
        expires_at=now + timedelta(minutes=unit.task.lease_minutes),
    )


def free_place(unit: Unit) -> int | None:
    """The lowest place that nobody holds; leases that have run out are closed on the way. The unit is locked."""
    now = timezone.now()
    unit.leases.filter(closed_at=None, expires_at__lte=now).update(closed_at=now, place=None, outcome="expired")
    held = set(unit.leases.filter(place__isnull=False).values_list("place", flat=True))
    # Counted, since a unit whose answers were voided may have places beyond its redundancy held by others.
    return next(place for place in count(1) if place not in held) if len(held) < unit.redundancy else None


@transaction.atomic
def release_all(annotator: Annotator, task: Task) -> None:
    """Give back unjudged whatever the annotator has open in the task."""
    one_at_a_time(annotator)
    close_others([], annotator, task, "released")


@transaction.atomic
def release(annotator: Annotator, lease_id: int) -> None:
    """Give a unit back unjudged. Giving it back twice, or after it expired, changes nothing."""
    closed = Lease.objects.filter(pk=lease_id, annotator=annotator, closed_at=None).update(
        closed_at=timezone.now(), place=None, outcome="released"
    )
    if not closed and not Lease.objects.filter(pk=lease_id, annotator=annotator).exists():
        raise NotFound("You have not been given such a unit.")
