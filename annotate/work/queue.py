"""Handing units out: take, release, and what an annotator has open."""

from collections.abc import Callable, Collection, Iterable
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.core import stages
from annotate.core.refusals import NotFound
from annotate.kinds.control import Place
from annotate.models import Annotator, Backlog, Lease, Task, Unit
from annotate.work.eligible import (
    BACK_AFTER,
    answered_instead,
    head_ids,
    in_queues,
    is_over,
    lock_head,
    not_left_to_others,
    with_free_place,
)
from annotate.work.permit import Permit, acting
from corpora.database.statements import insert_one, prepared, update_one

# What is shown at the place of a unit, by all its leases and those of one person among them.
PlaceOf = Callable[[list[Lease], list[Lease]], Place]
# As many posts as a person can look over at a time.
SHEET = 20
# Lease.is_wanted as a condition.
WANTED = Q(again=True) | Q(instead_of=None, unit__stage=stages.QUEUED) | Q(instead_of__stage=stages.QUEUED)


# --- what somebody has open


Queues = Collection[str] | None


def open_leases(annotator: Annotator, task: Task, queues: Queues = None) -> QuerySet[Lease]:
    """The leases that an annotator holds in a task and that still run; reads only.

    queues: those in which the annotator may work now, if only what was handed out there counts.
    """
    running = Lease.objects.filter(annotator=annotator, unit__task=task, closed_at=None, expires_at__gt=timezone.now())
    running = running if queues is None else running.filter(queue__in=list(queues))
    return running.filter(WANTED).select_related("unit__item")


def open_lease(annotator: Annotator, task: Task, queues: Queues = None) -> Lease | None:
    """The lease that is open by itself and not on a sheet, if any; reads only."""
    return _of(open_leases(annotator, task, queues).filter(sheet=False).first(), task)


def open_sheet(annotator: Annotator, task: Task, queues: Queues = None) -> list[Lease]:
    """The leases of the open sheet, in the order of the draw; reads only."""
    leases = open_leases(annotator, task, queues).filter(sheet=True)
    return [_of(lease, task) for lease in leases.order_by("unit__position")]


def leased(annotator: Annotator, task: Task, lease_id: int) -> Lease | None:
    """A lease that the annotator was given in the task, whether or not it has run out; reads only."""
    own = Lease.objects.filter(pk=lease_id, annotator=annotator, unit__task=task)
    return _of(own.select_related("unit__item").first(), task)


def _of(lease: Lease | None, task: Task) -> Lease | None:
    """The lease with the task that the caller has, so that it is not read again."""
    if lease:
        lease.unit.task = task
    return lease


# --- handing out


def take(annotator: Annotator, task: Task) -> Lease | None:
    """Lease the next unit to the annotator, or return the lease they already hold; None if there is nothing to lease.

    Each try is a separate transaction: somebody who waited for a unit while holding another that was tried in vain
    could end up waiting for somebody who waits for them.
    """
    while True:
        with acting(annotator, task.name) as permit:
            lease = hand_out(permit)
            if lease:
                return lease
            heads = head_ids(permit, 1) if permit.task.is_open else []
            if not heads:
                # What is kept of how much waits for them is counted again.
                Backlog.objects.filter(annotator=annotator, task=task).delete()
                return None
        # All of them are being judged or handed out at this moment: wait for the first, which may have another place.
        with acting(annotator, task.name) as permit:
            unit = in_queues(permit, heads[0]).select_for_update(of=("self",)).first()
            lease = open_lease(permit.annotator, permit.task, permit.queues) or (give(unit, permit) if unit else None)
            if lease:
                return lease


def hand_out(permit: Permit, held: Iterable[Lease] | None = None) -> Lease | None:
    """The same without waiting for anybody, in the transaction in which the annotator acts.

    It is also None if others have locked everything that could be handed out. held: the leases that the annotator has
    open in the task, if the caller has read these.
    """
    annotator, task = permit.annotator, permit.task
    if held is None:
        held = _held(annotator.pk, task.pk)
    held = list(held)
    now = timezone.now()
    for lease in held:
        # What they may not answer any more would be refused again and again.
        if not lease.sheet and lease.expires_at > now and lease.is_wanted and lease.queue in permit.queues:
            return _of(lease, task)
    lease = _give_next(permit) if task.is_open and permit.queues else None
    if held:
        # The units that they held before have expired, or moved on without them.
        close(held, [lease] if lease else [], "expired")
    return lease


@prepared
def _held(annotator, task) -> QuerySet[Lease]:
    open_ = Lease.objects.filter(annotator=annotator, unit__task=task, closed_at=None)
    return open_.select_related("unit__item", "instead_of")


def _give_next(permit: Permit) -> Lease | None:
    """Lease what comes next; None if there is nothing, or others have locked all."""
    own = permit.annotator
    for put_off in (True, False):
        for unit in lock_head(permit, put_off=put_off):
            # What was found may have moved on before it was locked, or been found disturbing.
            is_theirs = unit.language in permit.queues and (own.takes_disturbing or not unit.disturbing)
            return give(unit, permit) if unit.stage == stages.QUEUED and is_theirs else None
    return None


def give(unit: Unit, permit: Permit) -> Lease | None:
    """Lease a unit of work that the caller has locked, or what a control has put in its place; None if the last place
    was taken meanwhile.

    The statements are the same in either case, so that no timing tells what was put there from work.
    """
    places = [place for control in permit.task.controls if (place := control.place(unit, permit))]
    return lease_locked(unit, permit, place=places[0] if places else None)


def take_sheet(annotator: Annotator, task: Task, size: int = SHEET) -> list[Lease]:
    """Lease up to `size` units that ask about one language, or return the sheet that is open already."""
    with acting(annotator, task.name) as permit:
        return hand_out_sheet(permit, size)


def hand_out_sheet(permit: Permit, size: int = SHEET) -> list[Lease]:
    """The same in the transaction in which the annotator acts.

    All of them are leased in one transaction, so that another tab gets the whole sheet. It may lock many units because
    it waits for none: it leaves out those that somebody else has locked.
    """
    annotator, task = permit.annotator, permit.task
    if leases := open_sheet(annotator, task, permit.queues):
        return leases
    # Enough for several people who begin a sheet at the same moment.
    heads = head_ids(permit, 8 * size) if task.is_open else []
    found = not_left_to_others(Unit.objects.filter(pk__in=heads), takes_disturbing=annotator.takes_disturbing)
    units = with_free_place(found).order_by("position")
    taken: list[Lease] = []
    for asked in dict.fromkeys(units.values_list("asked", flat=True)):
        locked = units.filter(asked=asked).select_related("item").select_for_update(of=("self",), skip_locked=True)
        taken = [lease for unit in locked[:size] if (lease := lease_locked(unit, permit, sheet=True))]
        if taken:
            break
    close_others(taken, annotator, task, "released")
    return open_sheet(annotator, task, permit.queues)


def lease_locked(unit: Unit, permit: Permit, *, sheet: bool = False, place: PlaceOf | None = None) -> Lease | None:
    """Lease a unit whose row the caller has just locked; None if its last place was taken meanwhile.

    place: what is shown at the place of the unit, by all its leases and the annotator's own among them.

    Places are counted in a separate statement: under READ COMMITTED the statement that locked the row may have counted
    before another transaction, for which it waited, took the place.
    """
    unit.task = permit.task
    leases = _leases(unit.pk)
    now = timezone.now()
    own = [lease for lease in leases if lease.annotator_id == permit.annotator.pk]
    for lease in own:
        if lease.unit_id == unit.pk and lease.outcome == "answered" and _stands(lease):
            return None
        if lease.closed_at is None and lease.expires_at > now:
            # They hold it already in the other mode (on a sheet, or one by one); in this mode it is handed out anew.
            _give_back([lease], "released")
    number = free_place(unit, leases)
    if number is None:
        return None
    how = {"round": unit.round, "queue": unit.language, "sheet": sheet}
    if place is None:
        return _open(unit, unit, permit, number, times=len(own), **how)
    found = place(leases, own)
    # Read in any case, so that what stands in place of work takes no statement more.
    [shown] = _shown(found.shown)
    shown.task = permit.task
    return _open(shown, unit, permit, number, times=len(own), **how, **found.how)


@prepared
def _shown(key) -> QuerySet[Unit]:
    return Unit.objects.filter(pk=key).select_related("item").order_by()


def _open(shown: Unit, work: Unit, permit: Permit, place: int, *, times: int, **how: Any) -> Lease:
    """times: how often the annotator was given the unit of work before."""
    for control in permit.task.controls:
        control.shown(shown, permit.annotator)
    is_work = shown.pk == work.pk
    least, most = BACK_AFTER
    lot = permit.task.lots("back after", f"{permit.annotator.pseudonym} {work.item.key} {times}")
    # Read after the earlier leases were closed, so that this one does not begin before they end.
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
    """Lease a unit whose answer the annotator has just taken back; the caller has locked it. They have a place besides
    those that others hold, so a unit that waits may then ask for one answer more.

    before: the lease of that answer. They answer again as in its queue and round, wherever the unit is by now.

    A gold answer stands for the same unit of work as before, while that waits; else for what comes next; by itself
    where nothing is left to come. The statements are the same for both.
    """
    heads = head_ids(permit, 1)
    found = Unit.objects.filter(Q(pk=before.instead_of_id or unit.pk) | Q(pk=next(iter(heads), unit.pk)))
    waiting = [each for each in found.select_related("item") if each.stage == stages.QUEUED and not each.honeypot]
    work = unit
    if unit.honeypot and waiting:
        work = min(waiting, key=lambda each: each.pk != before.instead_of_id)
    leases = _leases(unit.pk)
    if not unit.honeypot:
        _give_back_run_out(leases)
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


def _stands(lease: Lease) -> bool:
    judgment = getattr(lease, "judgment", None)
    return judgment is not None and judgment.voided_at is None


@prepared
def _leases(unit) -> QuerySet[Lease]:
    """All leases of a unit of work, and those of gold answers that stood for it."""
    return Lease.objects.filter(Q(unit=unit) | Q(instead_of=unit)).select_related("judgment")


def free_place(unit: Unit, leases: Iterable[Lease], *, stand_in: int | None = None) -> int | None:
    """The lowest place that nobody holds; leases that have run out are closed on the way.

    leases: all leases of the unit, as they are now; the caller has locked the unit. stand_in: a gold answer that is
    to stand for the unit, whose answers then hold places too.
    """
    _give_back_run_out(leases)
    held = {lease.place for lease in leases if lease.place is not None}
    number = len(held) + sum(lease.instead_of_id == unit.pk and lease.closed_at is None for lease in leases)
    if stand_in is not None:
        if is_over(unit, stand_in, leases):
            return None
        number += answered_instead(unit, stand_in, leases)
    # The lowest that is free: a unit whose answers were voided may have places beyond its redundancy held by others.
    return min(set(range(1, len(held) + 2)) - held) if number < unit.redundancy else None


# --- giving back


def _give_back_run_out(leases: Iterable[Lease]) -> None:
    now = timezone.now()
    if run_out := [lease for lease in leases if lease.closed_at is None and lease.expires_at <= now]:
        _give_back(run_out, "expired")


def _give_back(leases: list[Lease], outcome: str) -> None:
    """Close leases whose units' rows the caller has locked."""
    now = timezone.now()
    Lease.objects.filter(pk__in=[lease.pk for lease in leases]).update(closed_at=now, place=None, outcome=outcome)
    for lease in leases:
        lease.closed_at, lease.place, lease.outcome = now, None, outcome


def close_others(kept: Iterable[Lease], annotator: Annotator, task: Task, outcome: str) -> None:
    """Close what the annotator has open in the task besides these leases."""
    others = Lease.objects.filter(annotator=annotator, unit__task=task, closed_at=None)
    close(others, kept, outcome)


def close(leases: Iterable[Lease], kept: Iterable[Lease], outcome: str) -> None:
    """Close these open leases of one annotator, except those to be kept.

    This is the last step and waits for nobody, since these rows are changed without their units' locks: two people who
    come back and are given each other's units would wait for one another. A transaction that has locked such a row is
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
    """Give back unjudged whatever the annotator has open in the task."""
    with acting(annotator, task.name):
        close_others([], annotator, task, "released")


@transaction.atomic
def release(annotator: Annotator, lease_id: int) -> None:
    """Give a unit back unjudged. Giving it back twice, or after it expired, changes nothing."""
    closed = Lease.objects.filter(pk=lease_id, annotator=annotator, closed_at=None).update(
        closed_at=timezone.now(), place=None, outcome="released"
    )
    if not closed and not Lease.objects.filter(pk=lease_id, annotator=annotator).exists():
        raise NotFound(_("You have not been given such a unit."))
