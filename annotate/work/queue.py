"""Handing units out: take, release, and what an annotator has open."""

from collections.abc import Iterable
from datetime import timedelta
from itertools import count
from pathlib import Path

from django.db import connection, transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce
from django.utils import timezone

from annotate.core import stages
from annotate.core.refusals import NotFound
from annotate.models import Annotator, Judgment, Lease, Task, Transition, Unit
from annotate.quality import honeypots
from annotate.quality.sides import keep_side
from annotate.work.permit import Permit, acting
from annotate.work.tally import Tally, tally_of

# The first units of one queue that a person may be given; several of them are put together into one statement.
_HEADS = "\n".join(
    line
    for line in (Path(__file__).parent / "sql" / "heads.sql").read_text(encoding="utf-8").splitlines()
    if not line.lstrip().startswith("--")
)
# More units than others are likely to have locked at one moment.
HEADS = 32
# As many posts as a person can look over at a time.
SHEET = 20


# --- what somebody has open


def open_leases(annotator: Annotator, task: Task) -> QuerySet[Lease]:
    """The leases that an annotator holds in a task and that still run; reads only."""
    running = Lease.objects.filter(annotator=annotator, unit__task=task, closed_at=None, expires_at__gt=timezone.now())
    return running.filter(unit__stage=stages.QUEUED).select_related("unit__item")


def open_lease(annotator: Annotator, task: Task) -> Lease | None:
    """The lease that is open by itself and not on a sheet, if any; reads only."""
    return _of(open_leases(annotator, task).filter(sheet=False).first(), task)


def open_sheet(annotator: Annotator, task: Task) -> list[Lease]:
    """The leases of the open sheet, in the order of the draw; reads only."""
    return [_of(lease, task) for lease in open_leases(annotator, task).filter(sheet=True).order_by("unit__position")]


def leased(annotator: Annotator, task: Task, lease_id: int) -> Lease | None:
    """A lease that the annotator was given in the task, whether or not it has run out; reads only."""
    own = Lease.objects.filter(pk=lease_id, annotator=annotator, unit__task=task)
    return _of(own.select_related("unit__item").first(), task)


def _of(lease: Lease | None, task: Task) -> Lease | None:
    """The lease with the task that the caller has, so that it is not read again."""
    if lease:
        lease.unit.task = task
    return lease


# --- what somebody may be given


def waiting(permit: Permit) -> QuerySet[Unit]:
    """Units in the annotator's queues that they have not judged, whether or not a place is free; no honeypots."""
    return in_own_queues(permit).work().queued()


def in_own_queues(permit: Permit) -> QuerySet[Unit]:
    """Units that the annotator may still judge, honeypots among them, whatever stage they are at."""
    return unjudged(permit).filter(language__in=list(permit.queues))


def unjudged(permit: Permit, units: QuerySet[Unit] | None = None) -> QuerySet[Unit]:
    """Units that the annotator has not judged, whatever queue or stage they are in; among these units, or all of the
    task.
    """
    judged = Judgment.objects.binding().filter(unit=OuterRef("pk"), annotator=permit.annotator)
    found = (permit.task.units.all() if units is None else units).filter(~Exists(judged))
    if permit.annotator.adjudicates:
        # An adjudicator could read there what others had answered.
        reopened = Transition.objects.filter(unit=OuterRef("pk"), event="reopened", from_stage=stages.ADJUDICATION)
        found = found.filter(~Exists(reopened))
    return found


def with_free_place(units: QuerySet[Unit]) -> QuerySet[Unit]:
    """The units that have a place which neither an answer nor a running lease holds."""
    held = (
        Lease.objects.filter(unit=OuterRef("pk"), place__isnull=False)
        .filter(Q(closed_at__isnull=False) | Q(expires_at__gt=timezone.now()))
        .order_by()
        .values("unit")
        .annotate(held=Count("pk"))
        .values("held")
    )
    return units.annotate(held=Coalesce(Subquery(held), 0)).filter(held__lt=F("redundancy"))


def _heads(permit: Permit, number: int = HEADS) -> tuple[str, list]:
    """SQL and parameters of the first units of all the annotator's queues: (id, language, position), `number` of each.

    One arm for each queue, since the index gives the order within one only: the cost does not grow with what waits.
    """
    # In the form that the database's driver takes, past the ORM.
    now, own = connection.ops.adapt_datetimefield_value(timezone.now()), permit.annotator
    parameters: list = []
    for queue in permit.queues:
        parameters += [permit.task.pk, queue, own.pk, own.adjudicates, now, number]
    arms = (f"SELECT * FROM ({_HEADS}) AS queue{place}" for place in range(len(permit.queues)))  # noqa: S608
    return " UNION ALL ".join(arms), parameters


def _locked_head(permit: Permit) -> Unit | None:
    """Lock and return the first unit of all the annotator's queues, in the order of the draw, that nobody has locked;
    None if there is none. That order tells nothing of votes.
    """
    sql, parameters = _heads(permit)
    ids = RawSQL(f"SELECT id FROM ({sql}) AS heads", parameters)  # noqa: S608, S611 - made of heads.sql alone
    heads = Unit.objects.filter(pk__in=ids).order_by("position")
    return heads.select_for_update(of=("self",), skip_locked=True).select_related("item").first()


def _head_ids(permit: Permit, number: int = HEADS) -> list[tuple[int, str]]:
    """(Unit, queue) of the same, in the order of the draw."""
    if not permit.queues:
        return []
    sql, parameters = _heads(permit, number)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id, language FROM ({sql}) AS heads ORDER BY position", parameters)  # noqa: S608
        return cursor.fetchall()


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
            heads = _head_ids(permit, 1) if permit.task.is_open else []
        if not heads:
            return None
        # All of them are being judged or handed out at this moment: wait for the first, which may have another place.
        with acting(annotator, task.name) as permit:
            unit = Unit.objects.select_related("item").select_for_update(of=("self",)).filter(pk=heads[0][0]).first()
            if unit and unit.stage == stages.QUEUED and unit.language in permit.queues:
                lease = open_lease(permit.annotator, permit.task) or lease_locked(unit, permit)
                if lease:
                    return lease


def hand_out(permit: Permit, held: Iterable[Lease] | None = None, tally: Tally | None = None) -> Lease | None:
    """The same without waiting for anybody, in the transaction in which the annotator acts.

    It is also None if others have locked everything that could be handed out. held: the leases that the annotator has
    open in the task, and tally: what they have done in it, if the caller has read these.
    """
    annotator, task = permit.annotator, permit.task
    if held is None:
        held = Lease.objects.filter(annotator=annotator, unit__task=task, closed_at=None).select_related("unit__item")
    held = list(held)
    now = timezone.now()
    for lease in held:
        if not lease.sheet and lease.expires_at > now and lease.unit.stage == stages.QUEUED:
            return _of(lease, task)
    unit = _next(permit, tally) if task.is_open and permit.queues else None
    lease = lease_locked(unit, permit) if unit else None
    # The units that they held before have expired, or moved on without them.
    close(held, [lease] if lease else [], "expired")
    return lease


def _next(permit: Permit, tally: Tally | None) -> Unit | None:
    """Lock and return the unit to give next; None if there is none, or others have locked all."""
    task = permit.task
    if not task.gold_share:
        return _locked_head(permit)
    heads = _head_ids(permit)
    if not heads:
        return None
    # The statements are the same whether or not a gold answer is due, so that no timing tells one from work.
    language = heads[0][1]
    pots = unjudged(permit).filter(honeypot=True, language=language).order_by().values_list("item_id", "pk")
    hidden = honeypots.in_order(permit, dict(pots))
    due = hidden if honeypots.is_due(permit, language, tally or tally_of(permit)) else []
    units = {
        unit.pk: unit
        for unit in Unit.objects.filter(pk__in=due[:1] or [pk for pk, _ in heads[:1]])
        .select_for_update(of=("self",), skip_locked=True)
        .select_related("item")
    }
    if units:
        return next(iter(units.values()))
    # Somebody else has locked it at this moment, so any other that nobody has locked is taken.
    for pk in (*due[1:], *(pk for pk, _ in heads)):
        locked = Unit.objects.filter(pk=pk).select_for_update(of=("self",), skip_locked=True)
        if unit := locked.select_related("item").first():
            return unit
    return None


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
    if leases := open_sheet(annotator, task):
        return leases
    # Enough for several people who begin a sheet at the same moment.
    heads = [pk for pk, _ in _head_ids(permit, 8 * size)] if task.is_open else []
    units = with_free_place(Unit.objects.filter(pk__in=heads)).order_by("position")
    taken: list[Lease] = []
    for asked in dict.fromkeys(units.values_list("asked", flat=True)):
        locked = units.filter(asked=asked).select_related("item").select_for_update(of=("self",), skip_locked=True)
        taken = [lease for unit in locked[:size] if (lease := lease_locked(unit, permit, sheet=True))]
        if taken:
            break
    close_others(taken, annotator, task, "released")
    return open_sheet(annotator, task)


def lease_locked(unit: Unit, permit: Permit, *, sheet: bool = False) -> Lease | None:
    """Lease a unit whose row the caller has just locked; None if its last place was taken meanwhile.

    Places are counted in a separate statement: under READ COMMITTED the statement that locked the row may have counted
    before another transaction, for which it waited, took the place.
    """
    unit.task = permit.task
    leases = list(unit.leases.select_related("judgment"))
    now = timezone.now()
    for lease in leases:
        own = lease.annotator_id == permit.annotator.pk
        if own and lease.outcome == "answered" and _stands(lease):
            return None
        if own and lease.closed_at is None and lease.expires_at > now:
            # They hold it already in the other mode (on a sheet, or one by one); in this mode it is handed out anew.
            _give_back([lease], "released")
    place = free_place(unit, leases)
    if place is None:
        return None
    keep_side(unit, permit.annotator)
    # Read after the earlier leases were closed, so that this one does not begin before they end.
    opened = timezone.now()
    return Lease.objects.create(
        unit=unit,
        annotator=permit.annotator,
        place=place,
        round=unit.round,
        queue=unit.language,
        sheet=sheet,
        opened_at=opened,
        expires_at=opened + timedelta(minutes=permit.task.lease_minutes),
    )


def _stands(lease: Lease) -> bool:
    judgment = getattr(lease, "judgment", None)
    return judgment is not None and judgment.voided_at is None


def free_place(unit: Unit, leases: Iterable[Lease]) -> int | None:
    """The lowest place that nobody holds; leases that have run out are closed on the way.

    leases: all leases of the unit, as they are now; the caller has locked the unit.
    """
    now = timezone.now()
    _give_back([lease for lease in leases if lease.closed_at is None and lease.expires_at <= now], "expired")
    held = {lease.place for lease in leases if lease.place is not None}
    # Counted, since a unit whose answers were voided may have places beyond its redundancy held by others.
    return next(place for place in count(1) if place not in held) if len(held) < unit.redundancy else None


# --- giving back


def _give_back(leases: list[Lease], outcome: str) -> None:
    """Close leases whose units' rows the caller has locked."""
    if leases:
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
        raise NotFound("You have not been given such a unit.")
