"""Assignment: finds the first units of an annotator's queues and leases them to the annotator."""

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

# A function that selects which unit to show when a unit of work is next. It takes two lists: all leases of the unit of
# work, and the annotator's own leases of it.
PlaceOf = Callable[[list[Lease], list[Lease]], Place]
# Number of units to try to lock, across all queues. It is unlikely that all of them are locked by others, because each
# process handles one request at a time and locks only the answered unit and the next one.
HEADS = 16
# A unit that an annotator returned, or that a gold answer replaced, is assigned to the annotator again after a random
# number of other answers within this range.
BACK_AFTER = (10, 40)


# --- the first units of an annotator's queues; units are in draw order, because this order does not reveal votes


# Subquery for the first units of one queue. A single statement runs it for all of an annotator's queues.
_HEADS = {vendor: sql("heads").replace("{seen}", seen_sql("unit", "%s", vendor)) for vendor in ("sqlite", "postgresql")}
# Condition that a unit is among the first units of its queue. It is written so that each database reads each queue in
# order from an index, so the cost does not grow with the length of the queue. The array forces PostgreSQL to look up
# units by primary key, regardless of its statistics.
_FIRST = f"WITH put_off AS MATERIALIZED ({sql('put_off')}) SELECT head.id FROM "  # noqa: S608 - of heads.sql alone
_IS_HEAD = {
    "sqlite": f"annotate_unit.id IN ({_FIRST} json_each(%s) AS queue "
    f"CROSS JOIN annotate_unit AS head ON head.id IN ({_HEADS['sqlite']}))",
    "postgresql": f"annotate_unit.id = ANY(ARRAY({_FIRST} jsonb_array_elements_text(%s::jsonb) AS queue(value) "
    f"CROSS JOIN LATERAL ({_HEADS['postgresql']}) AS head))",
}


def first_heads(permit: Permit, number: int, find: Callable[..., list[Any]]) -> list[Any]:
    """Return the first `number` units of each of the annotator's queues.

    Units that the annotator returned recently are left out, unless there are no others.

    find: the query to run, either _lock_head or head_ids.
    """
    now, annotator = timezone.now(), permit.annotator
    parameters = [permit.task.pk, annotator.takes_disturbing, annotator.pk, annotator.pk, annotator.has_seen_answers]
    for put_off in (True, False) if permit.queues else ():
        put_off_values = [annotator.pk, put_off, now, annotator.pk, BACK_AFTER[1], annotator.pk, put_off]
        if heads := find(*put_off_values, json.dumps(permit.queues), *parameters, now, now, number):
            return heads
    return []


@prepared
def _lock_head(*values: Any) -> QuerySet[Unit]:
    """Lock and return the first unit that no other transaction has locked."""
    return _select_heads(values).select_for_update(of=("self",), skip_locked=True).select_related("item")[:1]


@prepared
def head_ids(*values: Any) -> QuerySet[Unit, tuple[int]]:
    """Return the primary keys of the first units, without locking the units."""
    return _select_heads(values).values_list("pk")


def _select_heads(values: Sequence[Any]) -> QuerySet[Unit]:
    is_head = RawSQL(_IS_HEAD[connection.vendor], values, BooleanField())  # noqa: S611 - made of heads.sql alone
    return Unit.objects.filter(is_head).order_by("position")


# --- assigning units


def lease_next(permit: Permit, held: Iterable[Lease] | None = None) -> Lease | None:
    """Lease the next unit to an annotator. This never waits for locks. The caller has locked the annotator's row.

    Returns the annotator's current lease if there is one, and None if no unit is available or all are locked by others.

    permit: the annotator's permit.
    held: the annotator's open leases in the task; None to query them.
    """
    annotator, task = permit.annotator, permit.task
    if held is None:
        held = _query_held(annotator.pk, task.pk)
    held = list(held)
    now = timezone.now()
    for earlier in held:
        # Skip a lease from a queue that is no longer open to the annotator, because any answer would be refused.
        if not earlier.sheet and earlier.expires_at > now and earlier.is_answerable and earlier.queue in permit.queues:
            earlier.unit.task = task
            return earlier
    lease: Lease | None = None
    if task.is_open and permit.queues:
        # Try several units of each queue, because others may have locked the first few. If the database doesn't lock
        # rows, one unit is enough.
        skips = connection.features.has_select_for_update_skip_locked
        for unit in first_heads(permit, -(-HEADS // len(permit.queues)) if skips else 1, _lock_head):
            # The unit may have been moved or flagged as disturbing just before it was locked.
            is_theirs = unit.language in permit.queues and (annotator.takes_disturbing or not unit.disturbing)
            lease = lease_locked(unit, permit) if is_theirs and unit.stage == stages.QUEUED else None
    if held:
        # The annotator's earlier leases have expired, or their units were moved without the annotator's answer.
        close(held, [lease] if lease else [], "expired")
    return lease


@prepared
def _query_held(annotator: int, task: int) -> QuerySet[Lease]:
    open_leases = Lease.objects.filter(annotator=annotator, unit__task=task, closed_at=None)
    return open_leases.select_related("unit__item", "instead_of")


def lease_locked(unit: Unit, permit: Permit, *, sheet: bool = False) -> Lease | None:
    """Lease a unit of work that the caller has locked, or the unit that a control shows in its place.

    Returns None if the last place was taken in the meantime. The same statements run whether or not a control replaces
    the unit, so that response times do not reveal a replacement.

    Places are counted in a separate statement after the row is locked. Under READ COMMITTED, the locking statement may
    have waited for another transaction, and would miss a place taken by that transaction.

    sheet: whether the unit is leased as part of a sheet, where no unit is replaced.
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
            # The annotator already holds the unit in the other mode (in or outside a sheet). Lease it in this mode.
            _close_locked([lease], "released")
    number = free_place(unit, leases)
    if number is None:
        return None
    how = {"round": unit.round, "queue": unit.language, "sheet": sheet}
    place = next(filter(None, places), None)
    if place is None:
        return new_lease(unit, unit, permit, number, times=len(own_leases), **how)
    placed = place(leases, own_leases)
    # Query the unit even if it is the unit of work, so that both cases run the same statements.
    [shown_unit] = _query_shown(placed.shown)
    shown_unit.task = permit.task
    return new_lease(shown_unit, unit, permit, number, times=len(own_leases), **how, **placed.how)


@prepared
def _query_shown(key: int) -> QuerySet[Unit]:
    return Unit.objects.filter(pk=key).select_related("item").order_by()


def new_lease(shown: Unit, work: Unit, permit: Permit, place: int, *, times: int, **how: Any) -> Lease:
    """Create and save a lease.

    shown: the unit that the annotator sees.
    work: the unit of work, which differs from `shown` if a control replaced it.
    place: the place on the unit of work that the lease holds.
    times: how many times the unit of work has already been assigned to the annotator.
    how: values of other fields of the lease.
    """
    for control in permit.task.hooks["shown"]:
        control.shown(shown, permit.annotator)
    is_work = shown.pk == work.pk
    least, most = BACK_AFTER
    digest = secret_lot(permit.task.secret, "back after", f"{permit.annotator.pseudonym} {work.item.key} {times}")
    # Get the time only now, after earlier leases were closed, so that this lease doesn't start before they end.
    opened = timezone.now()
    lease = new_row(
        Lease,
        unit=shown,
        instead_of=None if is_work else work,
        annotator=permit.annotator,
        place=place if is_work else None,
        back_after=least + int(digest, 16) % (most - least + 1),
        opened_at=opened,
        expires_at=opened + timedelta(minutes=permit.task.kind.lease_minutes),
        **how,
    )
    insert_one(lease)
    return lease


@prepared
def leases_of(unit: int) -> QuerySet[Lease]:
    """Return all leases of a unit of work and of the gold answers that replaced it."""
    return Lease.objects.filter(Q(unit=unit) | Q(instead_of=unit)).select_related("judgment")


def free_place(unit: Unit, leases: Iterable[Lease], *, stand_in: int | None = None) -> int | None:
    """Close the expired leases of a unit and return its lowest free place, or None if no place is free.

    unit: the unit, locked by the caller.
    leases: the result of `leases_of` for the unit.
    stand_in: primary key of a gold answer that replaces the unit; answers to this gold answer then hold places too.
    """
    now = timezone.now()
    if expired := [lease for lease in leases if lease.closed_at is None and lease.expires_at <= now]:
        _close_locked(expired, "expired")
    held = {lease.place for lease in leases if lease.place is not None}
    number = len(held) + sum(lease.instead_of_id == unit.pk and lease.closed_at is None for lease in leases)
    if stand_in is not None:
        if is_gold_complete(unit, stand_in, leases):
            return None
        number += count_gold_only(unit, stand_in, leases)
    # Places may have gaps. After answers were voided, the remaining places may exceed the unit's redundancy.
    return min(set(range(1, len(held) + 2)) - held) if number < unit.redundancy else None


# --- returning units


def _close_locked(leases: list[Lease], outcome: str) -> None:
    """Close leases whose units the caller has locked."""
    now = timezone.now()
    Lease.objects.filter(pk__in=[lease.pk for lease in leases]).update(closed_at=now, place=None, outcome=outcome)
    for lease in leases:
        lease.closed_at, lease.place, lease.outcome = now, None, outcome


def close(leases: Iterable[Lease], leases_to_keep: Iterable[Lease], outcome: str) -> None:
    """Close an annotator's open leases, except for `leases_to_keep`.

    This must be the last step of a transaction, because it changes leases without locking their units. It skips locked
    leases instead of waiting. Otherwise, two annotators who are assigned each other's returned units would deadlock.
    Skipping a lease is safe, because the transaction that has locked it is about to close it.
    """
    kept_ids = {lease.pk for lease in leases_to_keep}
    to_close = [lease.pk for lease in leases if lease.pk not in kept_ids]
    if not to_close:
        return
    still_open = Lease.objects.filter(pk__in=to_close, closed_at=None).select_for_update(skip_locked=True, of=("self",))
    open_ids = list(still_open.values_list("pk", flat=True))
    Lease.objects.filter(pk__in=open_ids).update(closed_at=timezone.now(), place=None, outcome=outcome)
