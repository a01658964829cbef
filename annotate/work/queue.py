"""The queue: finds the leases that annotators hold, assigns units and sheets, and returns units.

assignment.py selects and leases the units.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.core import stages
from annotate.core.refusals import NotFound, Refusal
from annotate.kinds import Answer
from annotate.models import Annotator, Lease, Task, Unit
from annotate.work import judgments
from annotate.work.assignment import (
    close,
    first_heads,
    free_place,
    head_ids,
    lease_locked,
    lease_next,
    leases_of,
    new_lease,
)
from annotate.work.backlog import clear_count
from annotate.work.eligible import filter_disturbing, with_free_place
from annotate.work.permit import Permit, acting
from corpora.database.statements import update_one

# Maximum number of posts on a sheet.
SHEET = 20
# The condition of Lease.is_answerable, for queries.
WANTED = Q(again=True) | Q(instead_of=None, unit__stage=stages.QUEUED) | Q(instead_of__stage=stages.QUEUED)


# --- open leases (read-only)


Queues = Collection[str] | None
L = TypeVar("L", bound=Lease | None)


def open_leases(annotator: Annotator, task: Task, queues: Queues = None) -> QuerySet[Lease]:
    """Return an annotator's running leases in a task.

    queues: only leases in these queues; None for all queues.
    """
    running = Lease.objects.filter(annotator=annotator, unit__task=task, closed_at=None, expires_at__gt=timezone.now())
    running = running if queues is None else running.filter(queue__in=list(queues))
    return running.filter(WANTED).select_related("unit__item")


def open_lease(annotator: Annotator, task: Task, queues: Queues = None) -> Lease | None:
    """Return the annotator's open lease that is not part of a sheet, or None."""
    return _with_task(open_leases(annotator, task, queues).filter(sheet=False).first(), task)


def open_sheet(annotator: Annotator, task: Task, queues: Queues = None) -> list[Lease]:
    """Return the leases of the annotator's open sheet, in draw order."""
    leases = open_leases(annotator, task, queues).filter(sheet=True)
    return [_with_task(lease, task) for lease in leases.order_by("unit__position")]


def find_lease(annotator: Annotator, task: Task, lease_id: int) -> Lease | None:
    """Return the annotator's lease with this primary key, even if it has expired; None if there is no such lease."""
    leases = Lease.objects.filter(pk=lease_id, annotator=annotator, unit__task=task)
    return _with_task(leases.select_related("unit__item").first(), task)


def _with_task(lease: L, task: Task) -> L:
    """Set the task of a lease's unit, to avoid querying it again."""
    if isinstance(lease, Lease):
        lease.unit.task = task
    return lease


# --- assigning units


def take(annotator: Annotator, task: Task) -> Lease | None:
    """Lease the next unit to the annotator, or return the lease that they already hold.

    Returns None if no unit is available. Each attempt is a separate transaction. Otherwise, two annotators who each
    hold a lock could deadlock.
    """
    while True:
        with acting(annotator.user, task.name) as permit:
            lease = lease_next(permit)
            if lease:
                return lease
            heads = first_heads(permit, 1, head_ids) if permit.task.is_open else []
            if not heads:
                clear_count(annotator, task)
                return None
        # Other transactions are judging or assigning all of these units. Wait for the first one, which may still have a
        # free place afterwards.
        with acting(annotator.user, task.name) as permit:
            head = Unit.objects.filter(pk=heads[0][0], language__in=permit.queues).queued().select_related("item")
            head = filter_disturbing(head, takes_disturbing=permit.annotator.takes_disturbing)
            unit = head.select_for_update(of=("self",)).first()
            lease = open_lease(permit.annotator, permit.task, permit.queues)
            lease = lease or (lease_locked(unit, permit) if unit else None)
            if lease:
                return lease


def take_sheet(annotator: Annotator, task: Task, size: int = SHEET) -> list[Lease]:
    """Lease a sheet of up to `size` units that ask about the same language, or return the open sheet."""
    with acting(annotator.user, task.name) as permit:
        return lease_sheet(permit, size)


def lease_sheet(permit: Permit, size: int = SHEET) -> list[Lease]:
    """Like `take_sheet`, within the annotator's transaction.

    All units are leased in one transaction, so that a second tab shows the whole sheet. Locking many units can't cause
    a deadlock, because units that others have locked are skipped.
    """
    annotator, task = permit.annotator, permit.task
    if leases := open_sheet(annotator, task, permit.queues):
        return leases
    size = size if permit.left is None else min(size, permit.left)
    # Look up enough units for several annotators who start a sheet at the same time.
    heads = first_heads(permit, 8 * size, head_ids) if task.is_open else []
    first = Unit.objects.filter(pk__in=[pk for (pk,) in heads])
    first = filter_disturbing(first, takes_disturbing=annotator.takes_disturbing)
    units = with_free_place(first).order_by("position")
    taken: list[Lease] = []
    for language_asked in dict.fromkeys(units.values_list("asked", flat=True)):
        free = units.filter(asked=language_asked).select_for_update(of=("self",), skip_locked=True)
        tried_ids: list[int] = []
        while (missing := size - len(taken)) > 0:
            locked = list(free.exclude(pk__in=tried_ids).select_related("item")[:missing])
            taken += [lease for unit in locked if (lease := lease_locked(unit, permit, sheet=True))]
            tried_ids += [unit.pk for unit in locked]
            # Others may have taken some of these units after the statement began, so lock more units.
            if len(locked) < missing:
                break
        if taken:
            break
    close_open(annotator, task, taken)
    return open_sheet(annotator, task, permit.queues)


def lease_again(unit: Unit, permit: Permit, earlier_lease: Lease) -> Lease:
    """Lease a unit again to an annotator who has just undone their judgment of it. The caller has locked the unit.

    If all places are taken, a queued unit's redundancy is increased by one. The new lease has the earlier lease's queue
    and round, wherever the unit is now.

    A gold answer replaces the same unit of work as before if that unit is still queued. Otherwise, it replaces the next
    queued unit, if there is one. Gold answers and units of work run the same statements.

    earlier_lease: the lease of the undone judgment.
    """
    heads = first_heads(permit, 1, head_ids)
    candidates = Unit.objects.filter(
        Q(pk=earlier_lease.instead_of_id or unit.pk) | Q(pk=heads[0][0] if heads else unit.pk)
    )
    waiting = [
        candidate
        for candidate in candidates.select_related("item")
        if candidate.stage == stages.QUEUED and not candidate.honeypot
    ]
    work = unit
    if unit.honeypot and waiting:
        work = min(waiting, key=lambda candidate: candidate.pk != earlier_lease.instead_of_id)
    leases = leases_of(unit.pk)
    if not unit.honeypot:
        free_place(unit, leases)  # closes expired leases
    held = {lease.place for lease in leases if lease.place is not None}
    if unit.stage == stages.QUEUED and len(held) >= unit.redundancy:
        unit.redundancy = len(held) + 1
    update_one(unit, "redundancy", keep=not unit.honeypot)
    times = sum(lease.annotator_id == permit.annotator.pk for lease in leases)
    return new_lease(
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


def judge_sheet(
    annotator: Annotator, task: Task, answers: Mapping[int, Answer | None], active_seconds: float | None = None
) -> list[Refusal]:
    """Judge the units of a sheet. Returns an error for each judgment that was refused, and saves all other judgments.

    Each judgment has its own transaction, so a refused judgment does not affect the rest.

    answers: the answer for each lease, by primary key; None to skip the unit.
    active_seconds: working time on the whole sheet, divided equally among its units.
    """
    seconds_per_answer = None if active_seconds is None else active_seconds / len(answers)
    refused = []
    for lease_id, answer in answers.items():
        try:
            with acting(annotator.user, task.name) as permit:
                judgments.close(permit, lease_id, answer, seconds_per_answer)
        except Refusal as refusal:
            refused.append(refusal)
    return refused


# --- returning units


def close_open(annotator: Annotator, task: Task, leases_to_keep: Iterable[Lease] = ()) -> None:
    """Return the annotator's open units in the task to their queues, except for `leases_to_keep`. See `close`."""
    open_now = Lease.objects.filter(annotator=annotator, unit__task=task, closed_at=None)
    close(open_now, leases_to_keep, "released")


def release_all(annotator: Annotator, task: Task) -> None:
    """Return all of the annotator's open units in the task to their queues, without judging them."""
    with acting(annotator.user, task.name):
        close_open(annotator, task)


@transaction.atomic
def release(annotator: Annotator, lease_id: int) -> None:
    """Return a unit to its queue without judging it. Idempotent.

    Raise NotFound if the annotator has no such lease.
    """
    closed = Lease.objects.filter(pk=lease_id, annotator=annotator, closed_at=None).update(
        closed_at=timezone.now(), place=None, outcome="released"
    )
    if not closed and not Lease.objects.filter(pk=lease_id, annotator=annotator).exists():
        raise NotFound(_("You do not have this item."))
