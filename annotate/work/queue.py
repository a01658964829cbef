"""The queue: assigning units to annotators, taking units back, and the leases that annotators hold."""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from django.db import connection, transaction
from django.db.models import BooleanField, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.core import stages
from annotate.core.draws.hash_order import secret_lot
from annotate.core.refusals import NotFound
from annotate.kinds.control import Place
from annotate.models import Annotator, Backlog, Lease, Task, Unit
from annotate.work.eligible import answered_instead, is_over, not_left_to_others, seen_sql, with_free_place
from annotate.work.permit import Permit, acting
from annotate.work.sql import sql
from corpora.database.statements import insert_one, new_row, prepared, update_one

# Function that returns the unit to show in place of another one. Its arguments are all leases of the replaced unit, and
# the annotator's own leases among them.
PlaceOf = Callable[[list[Lease], list[Lease]], Place]
# Maximum number of posts on a sheet.
SHEET = 20
# Number of units that are tried in all queues together. Others are unlikely to lock this many at the same time, because
# each process handles one request at a time and locks only the answered unit and the next one.
HEADS = 16
# A unit that an annotator returned, or that a gold answer replaced, comes back to the annotator after a random number
# of other answers between these limits.
BACK_AFTER = (10, 40)
# The condition of Lease.is_wanted for use in queries.
WANTED = Q(again=True) | Q(instead_of=None, unit__stage=stages.QUEUED) | Q(instead_of__stage=stages.QUEUED)


# --- open leases; these functions change nothing


Queues = Collection[str] | None
L = TypeVar("L", bound=Lease | None)


def open_leases(annotator: Annotator, task: Task, queues: Queues = None) -> QuerySet[Lease]:
    """Return an annotator's running leases in a task.

    queues: only leases in these queues are returned; None for all queues.
    """
    running = Lease.objects.filter(annotator=annotator, unit__task=task, closed_at=None, expires_at__gt=timezone.now())
    running = running if queues is None else running.filter(queue__in=list(queues))
    return running.filter(WANTED).select_related("unit__item")


def open_lease(annotator: Annotator, task: Task, queues: Queues = None) -> Lease | None:
    """Return the annotator's open lease, except for leases on a sheet, or None if there is none."""
    return _of(open_leases(annotator, task, queues).filter(sheet=False).first(), task)


def open_sheet(annotator: Annotator, task: Task, queues: Queues = None) -> list[Lease]:
    """Return the leases of the annotator's open sheet, in the order of the draw."""
    leases = open_leases(annotator, task, queues).filter(sheet=True)
    return [_of(lease, task) for lease in leases.order_by("unit__position")]


def leased(annotator: Annotator, task: Task, lease_id: int) -> Lease | None:
    """Return the annotator's lease with this key in the task, even if it has expired; None if it does not exist."""
    leases = Lease.objects.filter(pk=lease_id, annotator=annotator, unit__task=task)
    return _of(leases.select_related("unit__item").first(), task)


def _of(lease: L, task: Task) -> L:
    """Set the task of a lease's unit, so that the task is not read from the database again."""
    if isinstance(lease, Lease):
        lease.unit.task = task
    return lease


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


def _heads(permit: Permit, number: int, find: Callable[..., list[Any]]) -> list[Any]:
    """Return the first `number` units of each of the annotator's queues.

    Units that the annotator returned recently are excluded, unless there are no other units.

    find: the query to run, either _locked_head or _head_ids.
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
def _head_ids(*values: Any) -> QuerySet[Unit, tuple[int]]:
    return _first(values).values_list("pk")


def _first(values: Sequence[Any]) -> QuerySet[Unit]:
    is_head = RawSQL(_IS_HEAD[connection.vendor], values, BooleanField())  # noqa: S611 - made of heads.sql alone
    return Unit.objects.filter(is_head).order_by("position")


# --- assigning units


def take(annotator: Annotator, task: Task) -> Lease | None:
    """Lease the next unit to the annotator, or return the lease that they already hold.

    Returns None if there is nothing to lease. Each attempt is a separate transaction. Otherwise, two annotators who
    each hold a lock could wait for each other.
    """
    while True:
        with acting(annotator.user, task.name) as permit:
            lease = hand_out(permit)
            if lease:
                return lease
            heads = _heads(permit, 1, _head_ids) if permit.task.is_open else []
            if not heads:
                # Delete the cached count, so that the backlog is counted again.
                Backlog.objects.filter(annotator=annotator, task=task).delete()
                return None
        # Other transactions are judging or assigning all of these units. Wait for the first unit, which may then have a
        # free place.
        with acting(annotator.user, task.name) as permit:
            head = Unit.objects.filter(pk=heads[0][0], language__in=permit.queues).queued().select_related("item")
            head = not_left_to_others(head, takes_disturbing=permit.annotator.takes_disturbing)
            unit = head.select_for_update(of=("self",)).first()
            lease = open_lease(permit.annotator, permit.task, permit.queues)
            lease = lease or (lease_locked(unit, permit) if unit else None)
            if lease:
                return lease


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
        if not earlier.sheet and earlier.expires_at > now and earlier.is_wanted and earlier.queue in permit.queues:
            return _of(earlier, task)
    lease: Lease | None = None
    if task.is_open and permit.queues:
        # Try enough units of each queue to find one that nobody has locked. If the database has no row locks, one unit
        # is enough.
        skips = connection.features.has_select_for_update_skip_locked
        for unit in _heads(permit, -(-HEADS // len(permit.queues)) if skips else 1, _locked_head):
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


def take_sheet(annotator: Annotator, task: Task, size: int = SHEET) -> list[Lease]:
    """Lease a sheet of up to `size` units that ask about the same language, or return the sheet that is open."""
    with acting(annotator.user, task.name) as permit:
        return hand_out_sheet(permit, size)


def hand_out_sheet(permit: Permit, size: int = SHEET) -> list[Lease]:
    """Lease a sheet within the annotator's transaction, or return the open one.

    All units are leased in one transaction, so that a second tab shows the whole sheet. Locking many units does not
    cause a deadlock, because the transaction skips units that others have locked.
    """
    annotator, task = permit.annotator, permit.task
    if leases := open_sheet(annotator, task, permit.queues):
        return leases
    size = size if permit.left is None else min(size, permit.left)
    # Look up enough units for several people who start a sheet at the same time.
    heads = _heads(permit, 8 * size, _head_ids) if task.is_open else []
    first = Unit.objects.filter(pk__in=[pk for (pk,) in heads])
    first = not_left_to_others(first, takes_disturbing=annotator.takes_disturbing)
    units = with_free_place(first).order_by("position")
    taken: list[Lease] = []
    for language_asked in dict.fromkeys(units.values_list("asked", flat=True)):
        free = units.filter(asked=language_asked).select_for_update(of=("self",), skip_locked=True)
        tried: list[int] = []
        while (missing := size - len(taken)) > 0:
            locked = list(free.exclude(pk__in=tried).select_related("item")[:missing])
            taken += [lease for unit in locked if (lease := lease_locked(unit, permit, sheet=True))]
            tried += [unit.pk for unit in locked]
            # Others may have taken some of these units after the statement began. Lock further units in their place.
            if len(locked) < missing:
                break
        if taken:
            break
    close_open(annotator, task, taken)
    return open_sheet(annotator, task, permit.queues)


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
    leases = _leases(unit.pk)
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
        return _open(unit, unit, permit, number, times=len(own_leases), **how)
    placed = place(leases, own_leases)
    # Read the unit even if it is the unit of work, so that both cases run the same statements.
    [shown_unit] = _shown(placed.shown)
    shown_unit.task = permit.task
    return _open(shown_unit, unit, permit, number, times=len(own_leases), **how, **placed.how)


@prepared
def _shown(key: int) -> QuerySet[Unit]:
    return Unit.objects.filter(pk=key).select_related("item").order_by()


def _open(shown: Unit, work: Unit, permit: Permit, place: int, *, times: int, **how: Any) -> Lease:
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


def open_again(unit: Unit, permit: Permit, earlier_lease: Lease) -> Lease:
    """Lease a unit again to an annotator who has just undone their answer to it. The caller has locked the unit.

    The annotator gets a place in addition to the places of others, so a waiting unit may need one more answer
    afterwards. The new lease is for the queue and round of the earlier lease, regardless of where the unit is now.

    A gold answer replaces the same unit of work as before if that unit still waits, and otherwise the next waiting
    unit, if there is one. Gold answers and units of work run the same statements.

    unit: the unit.
    permit: the annotator's permit.
    earlier_lease: the lease of the answer that was undone.
    """
    heads = _heads(permit, 1, _head_ids)
    candidates = Unit.objects.filter(
        Q(pk=earlier_lease.instead_of_id or unit.pk) | Q(pk=heads[0][0] if heads else unit.pk)
    )
    waiting = [
        unit_ for unit_ in candidates.select_related("item") if unit_.stage == stages.QUEUED and not unit_.honeypot
    ]
    work = unit
    if unit.honeypot and waiting:
        work = min(waiting, key=lambda each: each.pk != earlier_lease.instead_of_id)
    leases = _leases(unit.pk)
    if not unit.honeypot:
        free_place(unit, leases)  # closes expired leases
    held = {lease.place for lease in leases if lease.place is not None}
    if unit.stage == stages.QUEUED and len(held) >= unit.redundancy:
        unit.redundancy = len(held) + 1
    update_one(unit, "redundancy", keep=not unit.honeypot)
    times = sum(lease.annotator_id == permit.annotator.pk for lease in leases)
    return _open(
        unit,
        work,
        permit,
        min(set(range(1, len(held) + 2)) - held),
        round=earlier_lease.round,
        queue=earlier_lease.queue,
        again=True,
        in_place=earlier_lease.in_place,
        sheet=False,
        times=times,
    )


@prepared
def _leases(unit: int) -> QuerySet[Lease]:
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
        if is_over(unit, stand_in, leases):
            return None
        number += answered_instead(unit, stand_in, leases)
    # Places need not be consecutive. After answers were voided, others may hold places beyond the unit's redundancy.
    return min(set(range(1, len(held) + 2)) - held) if number < unit.redundancy else None


# --- returning units


def _give_back(leases: list[Lease], outcome: str) -> None:
    """Close leases. The caller has locked the rows of their units."""
    now = timezone.now()
    Lease.objects.filter(pk__in=[lease.pk for lease in leases]).update(closed_at=now, place=None, outcome=outcome)
    for lease in leases:
        lease.closed_at, lease.place, lease.outcome = now, None, outcome


def close_open(annotator: Annotator, task: Task, leases_to_keep: Iterable[Lease] = ()) -> None:
    """Return the annotator's open units in the task to the queues, except for leases to keep. See `close`."""
    open_now = Lease.objects.filter(annotator=annotator, unit__task=task, closed_at=None)
    close(open_now, leases_to_keep, "released")


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


def release_all(annotator: Annotator, task: Task) -> None:
    """Return all of the annotator's open units in the task to the queues, without judging them."""
    with acting(annotator.user, task.name):
        close_open(annotator, task)


@transaction.atomic
def release(annotator: Annotator, lease_id: int) -> None:
    """Return a unit to its queue without judging it. If the lease is already closed, nothing changes."""
    closed = Lease.objects.filter(pk=lease_id, annotator=annotator, closed_at=None).update(
        closed_at=timezone.now(), place=None, outcome="released"
    )
    if not closed and not Lease.objects.filter(pk=lease_id, annotator=annotator).exists():
        raise NotFound(_("You do not have this item."))
