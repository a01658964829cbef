"""The queue: assigning units to annotators, returning them, and the leases that annotators hold."""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import timedelta
from typing import Any

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
from corpora.database.statements import insert_one, prepared, update_one

# Returns what is shown in place of a unit, from all its leases and the annotator's own leases among them.
PlaceOf = Callable[[list[Lease], list[Lease]], Place]
# Greatest number of posts on a sheet.
SHEET = 20
# Units tried over all queues: more than others are likely to have locked at one moment. A process handles one request
# at a time, which locks the unit that is answered and the next one.
HEADS = 16
# Least and greatest number of other answers after which annotators see again a unit that they returned, or work that a
# gold answer replaced.
BACK_AFTER = (10, 40)
# Lease.is_wanted as a condition.
WANTED = Q(again=True) | Q(instead_of=None, unit__stage=stages.QUEUED) | Q(instead_of__stage=stages.QUEUED)


# --- open leases


Queues = Collection[str] | None


def open_leases(annotator: Annotator, task: Task, queues: Queues = None) -> QuerySet[Lease]:
    """Return an annotator's running leases in a task. Read-only.

    queues: queues that count, None for all.
    """
    running = Lease.objects.filter(annotator=annotator, unit__task=task, closed_at=None, expires_at__gt=timezone.now())
    running = running if queues is None else running.filter(queue__in=list(queues))
    return running.filter(WANTED).select_related("unit__item")


def open_lease(annotator: Annotator, task: Task, queues: Queues = None) -> Lease | None:
    """Return the open lease of a single unit, not of a sheet, if there is one. Read-only."""
    return _of(open_leases(annotator, task, queues).filter(sheet=False).first(), task)


def open_sheet(annotator: Annotator, task: Task, queues: Queues = None) -> list[Lease]:
    """Return the leases of the open sheet, in the order of the draw. Read-only."""
    leases = open_leases(annotator, task, queues).filter(sheet=True)
    return [_of(lease, task) for lease in leases.order_by("unit__position")]


def leased(annotator: Annotator, task: Task, lease_id: int) -> Lease | None:
    """Return a lease of the annotator in the task, whether or not it has expired. Read-only."""
    own = Lease.objects.filter(pk=lease_id, annotator=annotator, unit__task=task)
    return _of(own.select_related("unit__item").first(), task)


def _of(lease: Lease | None, task: Task) -> Lease | None:
    """Set the task of a lease's unit, so that it is not read again."""
    if lease:
        lease.unit.task = task
    return lease


# --- the first units of an annotator's queues, in the order of the draw, which reveals nothing about votes


# Query for the first units of one queue that an annotator may be given. Several are combined into one statement.
_HEADS = {vendor: sql("heads").replace("{seen}", seen_sql("unit", "%s", vendor)) for vendor in ("sqlite", "postgresql")}
# Condition that a unit is among the first of some queues, in the form in which each database looks up each queue by its
# index. The index provides the order within a queue, so the cost does not grow with the number of waiting units. The
# array makes PostgreSQL look up units by primary key, whatever its statistics suggest.
_FIRST = f"WITH put_off AS MATERIALIZED ({sql('put_off')}) SELECT head.id FROM "  # noqa: S608 - of heads.sql alone
_IS_HEAD = {
    "sqlite": f"annotate_unit.id IN ({_FIRST} json_each(%s) AS queue "
    f"CROSS JOIN annotate_unit AS head ON head.id IN ({_HEADS['sqlite']}))",
    "postgresql": f"annotate_unit.id = ANY(ARRAY({_FIRST} jsonb_array_elements_text(%s::jsonb) AS queue(value) "
    f"CROSS JOIN LATERAL ({_HEADS['postgresql']}) AS head))",
}


def _heads(permit: Permit, number: int, find: Callable[..., list[Any]]) -> list[Any]:
    """Return the first `number` units of each of the annotator's queues.

    Units that the annotator returned recently are left out, unless nothing else is left.

    find: _locked_head or _head_ids.
    """
    now, own = timezone.now(), permit.annotator
    task = [permit.task.pk, own.takes_disturbing, own.pk, own.pk, own.adjudicates]
    for put_off in (True, False) if permit.queues else ():
        aside = [own.pk, put_off, now, own.pk, BACK_AFTER[1], own.pk, put_off]
        if found := find(*aside, json.dumps(permit.queues), *task, now, now, number):
            return found
    return []


@prepared
def _locked_head(*values) -> QuerySet[Unit]:
    """Return the first unit that nobody has locked."""
    return _first(values).select_for_update(of=("self",), skip_locked=True).select_related("item")[:1]


@prepared
def _head_ids(*values) -> QuerySet[Unit]:
    return _first(values).values_list("pk")


def _first(values: Sequence[Any]) -> QuerySet[Unit]:
    is_head = RawSQL(_IS_HEAD[connection.vendor], values, BooleanField())  # noqa: S611 - made of heads.sql alone
    return Unit.objects.filter(is_head).order_by("position")


# --- assigning units


def take(annotator: Annotator, task: Task) -> Lease | None:
    """Lease the next unit to the annotator, or return the lease they already hold; None if there is nothing to lease.

    Each attempt is a separate transaction. Otherwise an annotator who waits for a unit while holding another could be
    waiting for somebody who waits for them.
    """
    while True:
        with acting(annotator.user, task.name) as permit:
            lease = hand_out(permit)
            if lease:
                return lease
            heads = _heads(permit, 1, _head_ids) if permit.task.is_open else []
            if not heads:
                # Count the backlog again.
                Backlog.objects.filter(annotator=annotator, task=task).delete()
                return None
        # All these units are being judged or assigned right now: wait for the first, which may have another place.
        with acting(annotator.user, task.name) as permit:
            head = Unit.objects.filter(pk=heads[0][0], language__in=permit.queues).queued().select_related("item")
            head = not_left_to_others(head, takes_disturbing=permit.annotator.takes_disturbing)
            unit = head.select_for_update(of=("self",)).first()
            lease = open_lease(permit.annotator, permit.task, permit.queues) or (unit and lease_locked(unit, permit))
            if lease:
                return lease


def hand_out(permit: Permit, held: Iterable[Lease] | None = None) -> Lease | None:
    """Lease the next unit within the annotator's transaction, without waiting for locks.

    Returns the lease that they already hold, if there is one; None if there is nothing to lease or others have locked
    everything.

    permit: the annotator's permit.
    held: the annotator's open leases in the task, if already read.
    """
    annotator, task = permit.annotator, permit.task
    if held is None:
        held = _held(annotator.pk, task.pk)
    held = list(held)
    now = timezone.now()
    for lease in held:
        # An answer in a queue that is no longer theirs would be refused again and again.
        if not lease.sheet and lease.expires_at > now and lease.is_wanted and lease.queue in permit.queues:
            return _of(lease, task)
    lease = None
    if task.is_open and permit.queues:
        # Enough units of each queue to find one that nobody has locked; one where nobody else can lock any.
        skips = connection.features.has_select_for_update_skip_locked
        for unit in _heads(permit, -(-HEADS // len(permit.queues)) if skips else 1, _locked_head):
            # The unit may have moved on, or been flagged as disturbing, before it was locked.
            is_theirs = unit.language in permit.queues and (annotator.takes_disturbing or not unit.disturbing)
            lease = lease_locked(unit, permit) if is_theirs and unit.stage == stages.QUEUED else None
    if held:
        # Their earlier units have expired or moved on without them.
        close(held, [lease] if lease else [], "expired")
    return lease


@prepared
def _held(annotator, task) -> QuerySet[Lease]:
    open_ = Lease.objects.filter(annotator=annotator, unit__task=task, closed_at=None)
    return open_.select_related("unit__item", "instead_of")


def take_sheet(annotator: Annotator, task: Task, size: int = SHEET) -> list[Lease]:
    """Lease up to `size` units that ask about one language, or return the sheet that is already open."""
    with acting(annotator.user, task.name) as permit:
        return hand_out_sheet(permit, size)


def hand_out_sheet(permit: Permit, size: int = SHEET) -> list[Lease]:
    """Lease a sheet within the annotator's transaction, or return the open one.

    All units are leased in one transaction, so that another tab gets the whole sheet. It can lock many units because it
    skips those that others have locked.
    """
    annotator, task = permit.annotator, permit.task
    if leases := open_sheet(annotator, task, permit.queues):
        return leases
    # Enough for several people who start a sheet at the same moment.
    heads = _heads(permit, 8 * size, _head_ids) if task.is_open else []
    found = Unit.objects.filter(pk__in=[pk for (pk,) in heads])
    found = not_left_to_others(found, takes_disturbing=annotator.takes_disturbing)
    units = with_free_place(found).order_by("position")
    taken: list[Lease] = []
    for asked in dict.fromkeys(units.values_list("asked", flat=True)):
        locked = units.filter(asked=asked).select_related("item").select_for_update(of=("self",), skip_locked=True)
        taken = [lease for unit in locked[:size] if (lease := lease_locked(unit, permit, sheet=True))]
        if taken:
            break
    close_others(taken, annotator, task, "released")
    return open_sheet(annotator, task, permit.queues)


def lease_locked(unit: Unit, permit: Permit, *, sheet: bool = False) -> Lease | None:
    """Lease a unit of work that the caller has just locked, or the unit that a control puts in its place.

    The statements are the same in both cases, so that timing does not reveal the replacement. On a sheet, nothing is
    replaced.

    Places are counted in a separate statement: under READ COMMITTED, the statement that locked the row may have counted
    before another transaction, for which it waited, took the place.

    Returns None if the last place was taken meanwhile.
    """
    unit.task = permit.task
    places = [] if sheet else [control.place(unit, permit) for control in permit.task.controls]
    leases = _leases(unit.pk)
    now = timezone.now()
    own = [lease for lease in leases if lease.annotator_id == permit.annotator.pk]
    for lease in own:
        judgment = getattr(lease, "judgment", None)
        if lease.unit_id == unit.pk and lease.outcome == "answered" and judgment and judgment.voided_at is None:
            return None
        if lease.closed_at is None and lease.expires_at > now:
            # They hold it already in the other mode (on a sheet or singly), so it is assigned anew in this mode.
            _give_back([lease], "released")
    number = free_place(unit, leases)
    if number is None:
        return None
    how = {"round": unit.round, "queue": unit.language, "sheet": sheet}
    place = next(filter(None, places), None)
    if place is None:
        return _open(unit, unit, permit, number, times=len(own), **how)
    found = place(leases, own)
    # Read in every case, so that a replacement takes no additional statement.
    [shown] = _shown(found.shown)
    shown.task = permit.task
    return _open(shown, unit, permit, number, times=len(own), **how, **found.how)


@prepared
def _shown(key) -> QuerySet[Unit]:
    return Unit.objects.filter(pk=key).select_related("item").order_by()


def _open(shown: Unit, work: Unit, permit: Permit, place: int, *, times: int, **how: Any) -> Lease:
    """Create the lease.

    times: number of times that the annotator was given the unit of work before.
    """
    for control in permit.task.controls:
        control.shown(shown, permit.annotator)
    is_work = shown.pk == work.pk
    least, most = BACK_AFTER
    lot = secret_lot(permit.task.secret, "back after", f"{permit.annotator.pseudonym} {work.item.key} {times}")
    # Read after the earlier leases were closed, so that this one does not start before they end.
    opened = timezone.now()
    lease = Lease(
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


def open_again(unit: Unit, permit: Permit, before: Lease) -> Lease:
    """Lease a unit again whose answer the annotator has just taken back. The caller has locked it.

    They get a place in addition to those that others hold, so a waiting unit may then ask for one more answer. They
    answer in the queue and round of the earlier lease, wherever the unit is now.

    A gold answer replaces the same unit of work as before if that is waiting, otherwise the next one, or none if there
    is none. The statements are the same for both.

    unit: the unit.
    permit: the annotator's permit.
    before: the lease of that answer.
    """
    heads = _heads(permit, 1, _head_ids)
    found = Unit.objects.filter(Q(pk=before.instead_of_id or unit.pk) | Q(pk=heads[0][0] if heads else unit.pk))
    waiting = [each for each in found.select_related("item") if each.stage == stages.QUEUED and not each.honeypot]
    work = unit
    if unit.honeypot and waiting:
        work = min(waiting, key=lambda each: each.pk != before.instead_of_id)
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
        round=before.round,
        queue=before.queue,
        again=True,
        in_place=before.in_place,
        sheet=False,
        times=times,
    )


@prepared
def _leases(unit) -> QuerySet[Lease]:
    """Return all leases of a unit of work, and those of gold answers that replaced it."""
    return Lease.objects.filter(Q(unit=unit) | Q(instead_of=unit)).select_related("judgment")


def free_place(unit: Unit, leases: Iterable[Lease], *, stand_in: int | None = None) -> int | None:
    """Return the lowest free place, None if there is none. Expired leases are closed.

    unit: the unit, locked by the caller.
    leases: all current leases of the unit.
    stand_in: gold answer that is to replace the unit; its answers then hold places too.
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
    # Gaps are possible: after a voiding, others may hold places beyond the unit's redundancy.
    return min(set(range(1, len(held) + 2)) - held) if number < unit.redundancy else None


# --- returning units


def _give_back(leases: list[Lease], outcome: str) -> None:
    """Close leases whose units' rows the caller has locked."""
    now = timezone.now()
    Lease.objects.filter(pk__in=[lease.pk for lease in leases]).update(closed_at=now, place=None, outcome=outcome)
    for lease in leases:
        lease.closed_at, lease.place, lease.outcome = now, None, outcome


def close_others(kept: Iterable[Lease], annotator: Annotator, task: Task, outcome: str) -> None:
    """Close the annotator's open leases in the task except those to keep."""
    others = Lease.objects.filter(annotator=annotator, unit__task=task, closed_at=None)
    close(others, kept, outcome)


def close(leases: Iterable[Lease], kept: Iterable[Lease], outcome: str) -> None:
    """Close open leases of one annotator, except those to keep.

    This is the last step and does not wait, since these rows change without their units' locks: two returning
    annotators who are given each other's units would wait for one another. A transaction that has locked such a row is
    about to close it.
    """
    stay = {lease.pk for lease in kept}
    others = [lease.pk for lease in leases if lease.pk not in stay]
    if not others:
        return
    open_still = Lease.objects.filter(pk__in=others, closed_at=None).select_for_update(skip_locked=True, of=("self",))
    found = list(open_still.values_list("pk", flat=True))
    Lease.objects.filter(pk__in=found).update(closed_at=timezone.now(), place=None, outcome=outcome)


def release_all(annotator: Annotator, task: Task) -> None:
    """Return all units that the annotator has open in the task, without judging them."""
    with acting(annotator.user, task.name):
        close_others([], annotator, task, "released")


@transaction.atomic
def release(annotator: Annotator, lease_id: int) -> None:
    """Return a unit without judging it. Returning it twice, or after it expired, changes nothing."""
    closed = Lease.objects.filter(pk=lease_id, annotator=annotator, closed_at=None).update(
        closed_at=timezone.now(), place=None, outcome="released"
    )
    if not closed and not Lease.objects.filter(pk=lease_id, annotator=annotator).exists():
        raise NotFound(_("You have not been given such a unit."))
