"""Which units an annotator may be given, and which of them come first. How they are handed out is in queue.py."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection
from django.db.models import BooleanField, Count, Exists, F, Func, OuterRef, Q, QuerySet, Subquery
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce
from django.utils import timezone

from annotate.core import stages
from annotate.models import Annotator, Judgment, Lease, Transition, Unit
from annotate.work.permit import Permit
from annotate.work.sql import sql
from corpora.database.statements import prepared

# --- Texts that a person has seen before: hidden units with such a text are kept from them. Otherwise they would know a
# decoy, a gold answer or an audited post, and could find it among their own answers.

# Texts are looked up by how they begin: the index item_begins of corpora.
BEGINS = 32  # characters
_SEEN = """
({unit}.known_answer <> '' OR {unit}.audited OR 0 < (
    SELECT COUNT(*) FROM annotate_unit AS copy WHERE copy.copy_of_id = {unit}.id AND copy.audited
)) AND 0 < (
    SELECT COUNT(*)
    FROM annotate_lease AS own
    WHERE own.annotator_id = {person}
      AND own.unit_id <> {unit}.id
      AND own.unit_id {among}(
          SELECT seen.id
          FROM annotate_unit AS seen
          WHERE seen.item_id {among}(
              SELECT same.id
              FROM corpora_item AS same
              WHERE SUBSTR(same.text, 1, 32) = (
                  SELECT SUBSTR(shown.text, 1, 32) FROM corpora_item AS shown WHERE shown.id = {unit}.item_id
              )
                AND same.text = (SELECT shown.text FROM corpora_item AS shown WHERE shown.id = {unit}.item_id)
          ){end}
      ){end}
)
"""
# From the text to its items, their units and the leases on them, which are few each. Arrays have PostgreSQL go that
# way, whatever it believes of the sizes of tables.
_AMONG = {"sqlite": {"among": "IN ", "end": ""}, "postgresql": {"among": "= ANY(ARRAY", "end": ")"}}


def seen_sql(unit: str, person: str, vendor: str) -> str:
    """Whether a hidden unit has a text that the person was shown as another unit, in whatever task or corpus.

    unit: its table; person: the key of the annotator, or a place for it; vendor: of the database.
    """
    return f"({_SEEN.format(unit=unit, person=person, **_AMONG[vendor])})"


class Seen(Func):
    """The same as a condition on units, of the unit's key and the person's."""

    output_field = BooleanField()

    def as_sql(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, list[Any]]:
        (unit, _), (person, values) = map(compiler.compile, self.get_source_expressions())
        return seen_sql(unit.rpartition(".")[0], person, connection.vendor), list(values)


# --- the order in which units are given

# The first units of one queue that a person may be given; several of them are put together into one statement.
_HEADS = {vendor: sql("heads").replace("{seen}", seen_sql("unit", "%s", vendor)) for vendor in ("sqlite", "postgresql")}
_PUT_OFF = sql("put_off")
# Together more units than others are likely to have locked at one moment: a process does one act at a time, which locks
# the unit that is answered and the next.
HEADS = 16
# After how many other answers of theirs, at least and at most, people are given again what they gave back, and the work
# for which a gold answer stood.
BACK_AFTER = (10, 40)


def waiting(permit: Permit) -> QuerySet[Unit]:
    """Units in the annotator's queues that they have not judged, whether or not a place is free; no honeypots."""
    return in_own_queues(permit).work().queued()


def in_own_queues(permit: Permit) -> QuerySet[Unit]:
    """Units that the annotator may still judge, honeypots among them, whatever stage they are at."""
    return unjudged(permit).filter(language__in=list(permit.queues))


def unjudged(permit: Permit, units: QuerySet[Unit] | None = None) -> QuerySet[Unit]:
    """Units that the annotator has not judged, and does not leave to others because these found them disturbing,
    whatever queue or stage they are in; among these units, or all of the task.
    """
    found, own = permit.task.units.all() if units is None else units, permit.annotator
    return unjudged_by(found, own.pk, adjudicates=own.adjudicates, takes_disturbing=own.takes_disturbing)


def unjudged_by(units: QuerySet[Unit], annotator: Any, *, adjudicates: bool, takes_disturbing: bool) -> QuerySet[Unit]:
    """`unjudged`, for statements that are built once: annotator may be what stands in them for the person's key."""
    judged = Judgment.objects.binding().filter(unit=OuterRef("pk"), annotator=annotator)
    found = units.filter(~Exists(judged), ~Seen("pk", annotator))
    found = not_left_to_others(found, takes_disturbing=takes_disturbing)
    if adjudicates:
        # An adjudicator could read there what others had answered.
        reopened = Transition.objects.filter(unit=OuterRef("pk"), event="reopened", from_stage=stages.ADJUDICATION)
        found = found.filter(~Exists(reopened))
    return found


def not_left_to_others(units: QuerySet[Unit], *, takes_disturbing: bool) -> QuerySet[Unit]:
    """The units, without those that people found disturbing if the person does not take such work."""
    return units if takes_disturbing else units.filter(disturbing=False)


def beyond(annotator: Annotator) -> Q:
    """The units that `unjudged` leaves out because of what the annotator or adjudicators did, found by that, and not by
    the units.
    """
    gone = Q(pk__in=Judgment.objects.binding().filter(annotator=annotator).order_by().values("unit"))
    if annotator.adjudicates:
        reopened = Transition.objects.filter(event="reopened", from_stage=stages.ADJUDICATION)
        gone |= Q(pk__in=reopened.order_by().values("unit"))
    return gone


def may_be_given(permit: Permit, unit: Unit) -> bool:
    return in_own_queues(permit).filter(pk=unit.pk).exists()


def with_free_place(units: QuerySet[Unit]) -> QuerySet[Unit]:
    """The units that have a place which neither an answer nor a running lease holds."""
    now = timezone.now()
    kept = Lease.objects.filter(place__isnull=False).filter(Q(closed_at__isnull=False) | Q(expires_at__gt=now))
    stand_ins = Lease.objects.filter(closed_at=None, expires_at__gt=now)
    held = _number(kept, "unit") + _number(stand_ins, "instead_of")
    return units.annotate(held=held).filter(held__lt=F("redundancy"))


def _number(leases: QuerySet[Lease], of: str) -> Coalesce:
    """How many of the leases are of each unit."""
    own = leases.filter(**{of: OuterRef("pk")}).order_by().values(of).annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(own), 0)


# Whether a unit is among the first ones of some queues, by what each database has to ask something of each of them. So
# the index gives the order in a queue, and the cost does not grow with what waits. An array has PostgreSQL look the
# units up by their keys, whatever it believes of the sizes of tables.
_FIRST = f"WITH put_off AS MATERIALIZED ({_PUT_OFF}) SELECT head.id FROM "  # noqa: S608 - of heads.sql alone
_IS_HEAD = {
    "sqlite": f"annotate_unit.id IN ({_FIRST} json_each(%s) AS queue "
    f"CROSS JOIN annotate_unit AS head ON head.id IN ({_HEADS['sqlite']}))",
    "postgresql": f"annotate_unit.id = ANY(ARRAY({_FIRST} jsonb_array_elements_text(%s::jsonb) AS queue(value) "
    f"CROSS JOIN LATERAL ({_HEADS['postgresql']}) AS head))",
}


def _of_heads(permit: Permit, number: int, *, put_off: bool) -> list[Any]:
    """The first units of all the annotator's queues, `number` of each.

    put_off: without those that they gave back and are not to be given again yet.
    """
    now, own = timezone.now(), permit.annotator
    task = [permit.task.pk, own.takes_disturbing, own.pk, own.pk, own.adjudicates]
    aside = [own.pk, put_off, now, own.pk, BACK_AFTER[1], own.pk, put_off]
    return [*aside, json.dumps(list(permit.queues)), *task, now, now, number]


def lock_head(permit: Permit, *, put_off: bool) -> list[Unit]:
    """Lock the first unit of all the annotator's queues, in the order of the draw, that nobody has locked; empty if
    there is none. That order tells nothing of votes. put_off: as in _of_heads.
    """
    # As many units of each queue that one is found which nobody has locked: one where nobody else can have locked any.
    skips = connection.features.has_select_for_update_skip_locked
    number = -(-HEADS // len(permit.queues)) if skips else 1
    return _locked_head(*_of_heads(permit, number, put_off=put_off))


@prepared
def _locked_head(*said) -> QuerySet[Unit]:
    return _first(said).select_for_update(of=("self",), skip_locked=True).select_related("item")[:1]


@prepared
def _first_ids(*said) -> QuerySet[Unit]:
    return _first(said).values_list("pk")


def _first(said: Sequence[Any]) -> QuerySet[Unit]:
    """said: of _of_heads."""
    is_head = RawSQL(_IS_HEAD[connection.vendor], said, BooleanField())  # noqa: S611 - made of heads.sql alone
    return Unit.objects.filter(is_head).order_by("position")


def head_ids(permit: Permit, number: int) -> list[int]:
    """The first units in the order of the draw, `number` of each queue; if nothing else is left, those that were put
    off. They are not locked.
    """
    for put_off in (True, False) if permit.queues else ():
        if found := _first_ids(*_of_heads(permit, number, put_off=put_off)):
            return [pk for (pk,) in found]
    return []


def in_queues(permit: Permit, unit: int) -> QuerySet[Unit]:
    """The unit, as long as it waits in a queue of the annotator."""
    found = Unit.objects.filter(pk=unit, language__in=list(permit.queues)).queued().select_related("item")
    return not_left_to_others(found, takes_disturbing=permit.annotator.takes_disturbing)


# --- Gold answers that stand for a unit of work: how long each of them waits there, and for whom.
#
# The lot gives a gold answer to one person, before the unit for which it stands. Once they give it back or let it run
# out, it takes the place of that unit for everybody else: the next person who comes there is given the gold answer
# and is not asked about the unit. It waits there as long as the unit itself would, had its answers been given to the
# unit.


def is_over(unit: Unit, gold: int, leases: Iterable[Lease]) -> bool:
    """Whether a gold answer has as many answers or skips as the unit for which it stands asks for.

    leases: those of the unit and of all gold answers that stood for it.
    """
    said = [each for each in leases if each.unit_id in (unit.pk, gold)]
    skips = sum(each.outcome == "skipped" and each.round == unit.round for each in said)
    return skips >= unit.task.skip_limit or len(_who_answered(said)) >= unit.redundancy


def answered_instead(unit: Unit, gold: int, leases: Iterable[Lease]) -> int:
    """How many people have answered the gold answer and not the unit."""
    listed = list(leases)
    of_unit = [each for each in listed if each.unit_id == unit.pk]
    return len(_who_answered(each for each in listed if each.unit_id == gold) - _who_answered(of_unit))


def _who_answered(leases: Iterable[Lease]) -> set[int]:
    return {each.annotator_id for each in leases if each.outcome == "answered"}
