"""Which units an annotator may be given. Which of them come first, and how they are handed out, is in queue.py."""

from collections.abc import Iterable
from typing import Any

from django.db.models import BooleanField, Count, Exists, F, Func, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from annotate.core import stages
from annotate.models import Annotator, Judgment, Lease, Transition, Unit
from annotate.work.permit import Permit

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
