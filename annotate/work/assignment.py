"""Assignment of units: the first units of an annotator's queues, and the leases with which they are handed out."""

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

from django.db import connection
from django.db.models import BooleanField, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.utils import timezone

from annotate.core import stages
from annotate.core.draws.hash_order import secret_lot
from annotate.kinds.control import Place
from annotate.models import Lease, Unit
from annotate.work.eligible import count_gold_only, is_gold_complete, seen_sql
from annotate.work.permit import Permit
from annotate.work.sql import sql
from corpora.database.statements import insert_one, new_row, prepared

# Function that returns the unit to show in place of another one. Its arguments are all leases of the replaced unit, and
# the annotator's own leases among them.
PlaceOf = Callable[[list[Lease], list[Lease]], Place]
# Number of units that are tried in all queues together. Others are unlikely to lock this many at the same time, because
# each process handles one request at a time and locks only the answered unit and the next one.
HEADS = 16
# A unit that an annotator returned, or that a gold answer replaced, comes back to the annotator after a random number
# of other answers between these limits.
BACK_AFTER = (10, 40)


# --- the first units of an annotator's queues, in the order of the draw, which does not reveal votes


# Query for the first units in a queue that an annotator may receive. One statement runs it for several queues.
_HEADS = {vendor: sql("heads").replace("{seen}", seen_sql("unit", "%s", vendor)) for vendor in ("sqlite", "postgresql")}
# Condition that a unit is among the first units of some queues. It is written so that each database finds the units of
# each queue with an index. The index is in the order of the queue, so the cost does not grow with the number of waiting
# units. The array forces PostgreSQL to look up units by primary key, regardless of its statistics.
_FIRST = f"WITH put_off AS MATERIALIZED ({sql('put_off')}) SELECT head.id FROM "  # noqa: S608 - of heads.sql alone
_IS_HEAD = {
    "sqlite": f"annotate_unit.id IN ({_FIRST} json_each(%s) AS queue "
    f"CROSS JOIN annotate_unit AS head ON head.id IN ({_HEADS['sqlite']}))",
    "postgresql": f"annotate_unit.id = ANY(ARRAY({_FIRST} jsonb_array_elements_text(%s::jsonb) AS queue(value) "
    f"CROSS JOIN LATERAL ({_HEADS['postgresql']}) AS head))",
}


def first_heads(permit: Permit, number: int, find: Callable[..., list[Any]]) -> list[Any]:
    """Return the first `number` units of each of the annotator's queues.

    Units that the annotator returned recently are excluded, unless there are no other units.

    find: the query to run, either _locked_head or head_ids.
    """
    now, annotator = timezone.now(), permit.annotator
    task = [permit.task.pk, annotator.takes_disturbing, annotator.pk, annotator.pk, annotator.has_seen_answers]
    for put_off in (True, False) if permit.queues else ():
        aside = [annotator.pk, put_off, now, annotator.pk, BACK_AFTER[1], annotator.pk, put_off]
        if heads := find(*aside, json.dumps(permit.queues), *task, now, now, number):
            return heads
    return []


@prepared
def _locked_head(*values: Any) -> QuerySet[Unit]:
    """Lock and return the first unit that nobody else has locked."""
    return _first(values).select_for_update(of=("self",), skip_locked=True).select_related("item")[:1]


@prepared
def head_ids(*values: Any) -> QuerySet[Unit, tuple[int]]:
    return _first(values).values_list("pk")


def _first(values: Sequence[Any]) -> QuerySet[Unit]:
    is_head = RawSQL(_IS_HEAD[connection.vendor], values, BooleanField())  # noqa: S611 - made of heads.sql alone
    return Unit.objects.filter(is_head).order_by("position")


# --- assigning units


def hand_out(permit: Permit, held: Iterable[Lease] | None = None) -> Lease | None:
    """Lease the next unit within the annotator's transaction, without waiting for locks.

    If the annotator already holds a lease, that lease is returned. Returns None if there is nothing to lease, or if
    others have locked all units.

    permit: the annotator's permit.
    held: the annotator's open leases in the task, None if they have not been read yet.
    """
    annotator, task = permit.annotator, permit.task
    if held is None:
        held = _held(annotator.pk, task.pk)
    held = list(held)
    now = timezone.now()
    for earlier in held:
        # Ignore a lease in a queue in which the annotator may no longer work, because any answer would be refused.
        if not earlier.sheet and earlier.expires_at > now and earlier.is_answerable and earlier.queue in permit.queues:
            earlier.unit.task = task
            return earlier
    lease: Lease | None = None
    if task.is_open and permit.queues:
        # Try enough units of each queue to find one that nobody has locked. If the database has no row locks, one unit
        # is enough.
        skips = connection.features.has_select_for_update_skip_locked
        for unit in first_heads(permit, -(-HEADS // len(permit.queues)) if skips else 1, _locked_head):
            # The unit may have moved on, or been flagged as disturbing, before it was locked.
            is_theirs = unit.language in permit.queues and (annotator.takes_disturbing or not unit.disturbing)
            lease = lease_locked(unit, permit) if is_theirs and unit.stage == stages.QUEUED else None
    if held:
        # The annotator's earlier leases have expired, or the leased units have moved on without an answer.
        close(held, [lease] if lease else [], "expired")
    return lease


@prepared
def _held(annotator: int, task: int) -> QuerySet[Lease]:
    open_ = Lease.objects.filter(annotator=annotator, unit__task=task, closed_at=None)
    return open_.select_related("unit__item", "instead_of")


def lease_locked(unit: Unit, permit: Permit, *, sheet: bool = False) -> Lease | None:
    """Lease a unit of work that the caller has just locked, or the unit that a quality control puts in its place.

    The statements are the same in both cases, so that the duration does not reveal the replacement. On a sheet, no unit
    is replaced.

    Places are counted in a separate statement after the row was locked. Under READ COMMITTED, the statement that locks
    the row may have waited for another transaction, and would not count a place taken in that transaction.

    Returns None if the last place was taken in the meantime.
    """
    unit.task = permit.task
    places = [] if sheet else [control.place(unit, permit) for control in permit.task.hooks["place"]]
    leases = leases_of(unit.pk)
    now = timezone.now()
    own_leases = [lease for lease in leases if lease.annotator_id == permit.annotator.pk]
    for lease in own_leases:
        judgment = getattr(lease, "judgment", None)
        if lease.unit_id == unit.pk and lease.outcome == "answered" and judgment and judgment.voided_at is None:
            return None
        if lease.closed_at is None and lease.expires_at > now:
            # The annotator already holds the unit in the other mode (on a sheet or alone), so assign it in this mode.
            _give_back([lease], "released")
    number = free_place(unit, leases)
    if number is None:
        return None
    how = {"round": unit.round, "queue": unit.language, "sheet": sheet}
    place = next(filter(None, places), None)
    if place is None:
        return new_lease(unit, unit, permit, number, times=len(own_leases), **how)
    placed = place(leases, own_leases)
    # Read the unit even if it is the unit of work, so that both cases run the same statements.
    [shown_unit] = _shown(placed.shown)
    shown_unit.task = permit.task
    return new_lease(shown_unit, unit, permit, number, times=len(own_leases), **how, **placed.how)


@prepared
def _shown(key: int) -> QuerySet[Unit]:
    return Unit.objects.filter(pk=key).select_related("item").order_by()


def new_lease(shown: Unit, work: Unit, permit: Permit, place: int, *, times: int, **how: Any) -> Lease:
    """Create a lease.

    shown: the unit that the annotator sees.
    work: the unit of work, which differs from `shown` if a quality control replaced it.
    place: place that the lease holds on the unit of work.
    times: how many times the annotator has already received the unit of work.
    """
    for control in permit.task.hooks["shown"]:
        control.shown(shown, permit.annotator)
    is_work = shown.pk == work.pk
    least, most = BACK_AFTER
    lot = secret_lot(permit.task.secret, "back after", f"{permit.annotator.pseudonym} {work.item.key} {times}")
    # Read the time after earlier leases were closed, so that this lease does not start before they end.
    opened = timezone.now()
    lease = new_row(
        Lease,
        unit=shown,
        instead_of=None if is_work else work,
        annotator=permit.annotator,
        place=place if is_work else None,
        back_after=least + int(lot, 16) % (most - least + 1),
        opened_at=opened,
        expires_at=opened + timedelta(minutes=permit.task.kind.lease_minutes),
        **how,
    )
    insert_one(lease)
    return lease


@prepared
def leases_of(unit: int) -> QuerySet[Lease]:
    """Return all leases of a unit of work, and all leases of gold answers that replaced it."""
    return Lease.objects.filter(Q(unit=unit) | Q(instead_of=unit)).select_related("judgment")


def free_place(unit: Unit, leases: Iterable[Lease], *, stand_in: int | None = None) -> int | None:
    """Close the expired leases of a unit and return its lowest free place, or None if no place is free.

    unit: the unit, locked by the caller.
    leases: all current leases of the unit.
    stand_in: primary key of a gold answer that replaces the unit. Answers to it then hold places too.
    """
    now = timezone.now()
    if run_out := [lease for lease in leases if lease.closed_at is None and lease.expires_at <= now]:
        _give_back(run_out, "expired")
    held = {lease.place for lease in leases if lease.place is not None}
    number = len(held) + sum(lease.instead_of_id == unit.pk and lease.closed_at is None for lease in leases)
    if stand_in is not None:
        if is_gold_complete(unit, stand_in, leases):
            return None
        number += count_gold_only(unit, stand_in, leases)
    # Places need not be consecutive. After answers were voided, others may hold places beyond the unit's redundancy.
    return min(set(range(1, len(held) + 2)) - held) if number < unit.redundancy else None


# --- returning units


def _give_back(leases: list[Lease], outcome: str) -> None:
    """Close leases. The caller has locked the rows of their units."""
    now = timezone.now()
    Lease.objects.filter(pk__in=[lease.pk for lease in leases]).update(closed_at=now, place=None, outcome=outcome)
    for lease in leases:
        lease.closed_at, lease.place, lease.outcome = now, None, outcome


def close(leases: Iterable[Lease], leases_to_keep: Iterable[Lease], outcome: str) -> None:
    """Close open leases of one annotator, except for leases to keep.

    This must be the last step of a transaction, because it changes leases without locking their units. It does not wait
    for locked leases. Otherwise, two annotators who receive each other's returned units would wait for each other.
    Skipping a locked lease is safe, because the transaction that has locked it is about to close it.
    """
    stay = {lease.pk for lease in leases_to_keep}
    to_close = [lease.pk for lease in leases if lease.pk not in stay]
    if not to_close:
        return
    open_still = Lease.objects.filter(pk__in=to_close, closed_at=None).select_for_update(skip_locked=True, of=("self",))
    open_ids = list(open_still.values_list("pk", flat=True))
    Lease.objects.filter(pk__in=open_ids).update(closed_at=timezone.now(), place=None, outcome=outcome)
