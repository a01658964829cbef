"""Handing units out: take, release, and what an annotator has open."""

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

# What is shown at the place of a unit, by all its leases and those of one person among them.
PlaceOf = Callable[[list[Lease], list[Lease]], Place]
# As many posts as a person can look over at a time.
SHEET = 20
# Together more units than others are likely to have locked at one moment: a process does one act at a time, which locks
# the unit that is answered and the next.
HEADS = 16
# After how many other answers of theirs, at least and at most, people are given again what they gave back, and the work
# for which a gold answer stood.
BACK_AFTER = (10, 40)
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


# --- the first units of a person's queues, in the order of the draw, which tells nothing of votes


# The first units of one queue that a person may be given; several of them are put together into one statement.
_HEADS = {vendor: sql("heads").replace("{seen}", seen_sql("unit", "%s", vendor)) for vendor in ("sqlite", "postgresql")}
# Whether a unit is among the first ones of some queues, in the way in which each database looks up each queue. So the
# index gives the order in a queue, and the cost does not grow with what waits. An array has PostgreSQL look the units
# up by their keys, whatever it believes of the sizes of tables.
_FIRST = f"WITH put_off AS MATERIALIZED ({sql('put_off')}) SELECT head.id FROM "  # noqa: S608 - of heads.sql alone
_IS_HEAD = {
    "sqlite": f"annotate_unit.id IN ({_FIRST} json_each(%s) AS queue "
    f"CROSS JOIN annotate_unit AS head ON head.id IN ({_HEADS['sqlite']}))",
    "postgresql": f"annotate_unit.id = ANY(ARRAY({_FIRST} jsonb_array_elements_text(%s::jsonb) AS queue(value) "
    f"CROSS JOIN LATERAL ({_HEADS['postgresql']}) AS head))",
}


def _heads(permit: Permit, number: int, find: Callable[..., list[Any]]) -> list[Any]:
    """The first units of all the annotator's queues, `number` of each, without those that they gave back and are not
    to be given again yet; if nothing else is left, those. find: _locked_head or _head_ids.
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
    """The first that nobody has locked."""
    return _first(values).select_for_update(of=("self",), skip_locked=True).select_related("item")[:1]


@prepared
def _head_ids(*values) -> QuerySet[Unit]:
    return _first(values).values_list("pk")


def _first(values: Sequence[Any]) -> QuerySet[Unit]:
    is_head = RawSQL(_IS_HEAD[connection.vendor], values, BooleanField())  # noqa: S611 - made of heads.sql alone
    return Unit.objects.filter(is_head).order_by("position")


# --- handing out


def take(annotator: Annotator, task: Task) -> Lease | None:
    """Lease the next unit to the annotator, or return the lease they already hold; None if there is nothing to lease.

    Each try is a separate transaction: somebody who waited for a unit while holding another that was tried in vain
    could end up waiting for somebody who waits for them.
    """
    while True:
        with acting(annotator.user, task.name) as permit:
            lease = hand_out(permit)
            if lease:
                return lease
            heads = _heads(permit, 1, _head_ids) if permit.task.is_open else []
            if not heads:
                # What is kept of how much waits for them is counted again.
                Backlog.objects.filter(annotator=annotator, task=task).delete()
                return None
        # All of them are being judged or handed out at this moment: wait for the first, which may have another place.
        with acting(annotator.user, task.name) as permit:
            head = Unit.objects.filter(pk=heads[0][0], language__in=permit.queues).queued().select_related("item")
            head = not_left_to_others(head, takes_disturbing=permit.annotator.takes_disturbing)
            unit = head.select_for_update(of=("self",)).first()
            lease = open_lease(permit.annotator, permit.task, permit.queues) or (unit and lease_locked(unit, permit))
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
    lease = None
    if task.is_open and permit.queues:
        # As many units of each queue that one is found which nobody has locked: one where nobody else can lock any.
        skips = connection.features.has_select_for_update_skip_locked
        for unit in _heads(permit, -(-HEADS // len(permit.queues)) if skips else 1, _locked_head):
            # What was found may have moved on before it was locked, or been found disturbing.
            is_theirs = unit.language in permit.queues and (annotator.takes_disturbing or not unit.disturbing)
            lease = lease_locked(unit, permit) if is_theirs and unit.stage == stages.QUEUED else None
    if held:
        # The units that they held before have expired, or moved on without them.
        close(held, [lease] if lease else [], "expired")
    return lease


@prepared
def _held(annotator, task) -> QuerySet[Lease]:
    open_ = Lease.objects.filter(annotator=annotator, unit__task=task, closed_at=None)
    return open_.select_related("unit__item", "instead_of")


def take_sheet(annotator: Annotator, task: Task, size: int = SHEET) -> list[Lease]:
    """Lease up to `size` units that ask about one language, or return the sheet that is open already."""
    with acting(annotator.user, task.name) as permit:
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
    """Lease a unit of work whose row the caller has just locked, or what a control has put in its place; None if its
    last place was taken meanwhile.

    The statements are the same in either case, so that no timing tells what was put there from work. Nothing is put in
    the place of a unit on a sheet.

    Places are counted in a separate statement: under READ COMMITTED the statement that locked the row may have counted
    before another transaction, for which it waited, took the place.
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
            # They hold it already in the other mode (on a sheet, or one by one); in this mode it is handed out anew.
            _give_back([lease], "released")
    number = free_place(unit, leases)
    if number is None:
        return None
    how = {"round": unit.round, "queue": unit.language, "sheet": sheet}
    place = next(filter(None, places), None)
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
    lot = secret_lot(permit.task.secret, "back after", f"{permit.annotator.pseudonym} {work.item.key} {times}")
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
    heads = _heads(permit, 1, _head_ids)
    found = Unit.objects.filter(Q(pk=before.instead_of_id or unit.pk) | Q(pk=heads[0][0] if heads else unit.pk))
    waiting = [each for each in found.select_related("item") if each.stage == stages.QUEUED and not each.honeypot]
    work = unit
    if unit.honeypot and waiting:
        work = min(waiting, key=lambda each: each.pk != before.instead_of_id)
    leases = _leases(unit.pk)
    if not unit.honeypot:
        free_place(unit, leases)  # which closes what has run out
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
    """All leases of a unit of work, and those of gold answers that stood for it."""
    return Lease.objects.filter(Q(unit=unit) | Q(instead_of=unit)).select_related("judgment")


def free_place(unit: Unit, leases: Iterable[Lease], *, stand_in: int | None = None) -> int | None:
    """The lowest place that nobody holds; leases that have run out are closed on the way.

    leases: all leases of the unit, as they are now; the caller has locked the unit. stand_in: a gold answer that is
    to stand for the unit, whose answers then hold places too.
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
    # The lowest that is free: a unit whose answers were voided may have places beyond its redundancy held by others.
    return min(set(range(1, len(held) + 2)) - held) if number < unit.redundancy else None


# --- giving back


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
    with acting(annotator.user, task.name):
        close_others([], annotator, task, "released")


@transaction.atomic
def release(annotator: Annotator, lease_id: int) -> None:
    """Give a unit back unjudged. Giving it back twice, or after it expired, changes nothing."""
    closed = Lease.objects.filter(pk=lease_id, annotator=annotator, closed_at=None).update(
        closed_at=timezone.now(), place=None, outcome="released"
    )
    if not closed and not Lease.objects.filter(pk=lease_id, annotator=annotator).exists():
        raise NotFound(_("You have not been given such a unit."))
