"""Handing units out: take, release, and what an annotator has open."""

from datetime import timedelta

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from annotate.core import stages
from annotate.errors import NotFound
from annotate.models import Annotator, Judgment, Lease, Task, Unit
from annotate.routing import Routes, queues_of


def open_lease(annotator: Annotator, task: Task) -> Lease | None:
    """The lease that the annotator holds in the task, if any; reads only."""
    return (
        Lease.objects.filter(annotator=annotator, unit__task=task, closed_at=None, expires_at__gt=timezone.now())
        .filter(unit__stage=stages.QUEUED)
        .select_related("unit__item", "unit__task")
        .first()
    )


def waiting(annotator: Annotator, task: Task) -> QuerySet[Unit]:
    """Units in the annotator's queues that they have not judged, whether or not a place is free."""
    judged = Judgment.objects.filter(unit=OuterRef("pk"), annotator=annotator, voided_at=None)
    queues = list(queues_of(annotator, task, Routes.load()))
    return task.units.filter(~Exists(judged), stage=stages.QUEUED, language__in=queues)


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


@transaction.atomic
def take(annotator: Annotator, task: Task) -> Lease | None:
    """Lease the next unit to the annotator, or give back the one they already hold; None if there is none."""
    # One hand-out at a time for each person: two tabs show the same unit.
    Annotator.objects.select_for_update().get(pk=annotator.pk)
    if lease := open_lease(annotator, task):
        return lease
    if not task.is_open:
        return None
    now = timezone.now()
    # What they held before has expired, or went on without them.
    Lease.objects.filter(annotator=annotator, unit__task=task, closed_at=None).update(
        closed_at=now, place=None, outcome="expired"
    )
    units = with_free_place(waiting(annotator, task)).order_by("position")
    while unit := units.select_for_update(skip_locked=True, of=("self",)).first():
        if lease := lease_locked(unit, annotator):
            return lease
    return None


def lease_locked(unit: Unit, annotator: Annotator) -> Lease | None:
    """Lease a unit whose row the caller has just locked; None if its last place went meanwhile.

    Counted in a statement of its own: under READ COMMITTED the statement that locked the row may have counted before
    another transaction, for which it waited, took the place.
    """
    if unit.judgments.filter(annotator=annotator, voided_at=None).exists():
        return None
    place = free_place(unit)
    if place is None:
        return None
    now = timezone.now()
    return Lease.objects.create(
        unit=unit,
        annotator=annotator,
        place=place,
        round=unit.round,
        queue=unit.language,
        opened_at=now,
        expires_at=now + timedelta(minutes=unit.task.lease_minutes),
    )


def free_place(unit: Unit) -> int | None:
    """The lowest place that nobody holds; leases that have run out are closed on the way. The unit is locked."""
    now = timezone.now()
    unit.leases.filter(closed_at=None, expires_at__lte=now).update(closed_at=now, place=None, outcome="expired")
    held = set(unit.leases.filter(place__isnull=False).values_list("place", flat=True))
    return next((place for place in range(1, unit.redundancy + 1) if place not in held), None)


@transaction.atomic
def release(annotator: Annotator, lease_id: int) -> None:
    """Give a unit back unjudged. Giving it back twice, or after it expired, changes nothing."""
    closed = Lease.objects.filter(pk=lease_id, annotator=annotator, closed_at=None).update(
        closed_at=timezone.now(), place=None, outcome="released"
    )
    if not closed and not Lease.objects.filter(pk=lease_id, annotator=annotator).exists():
        raise NotFound("You have not been given such a unit.")
