"""Units that an annotator may be given. queue.py decides their order and assigns them."""

from collections.abc import Iterable
from typing import Any

from django.db.models import BooleanField, Count, Exists, F, Func, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from annotate.core import stages
from annotate.models import Annotator, Judgment, Lease, Transition, Unit
from annotate.work.permit import Permit

# --- texts seen before
#
# A hidden unit is not given to annotators who have seen its text. They could recognize a decoy, a gold answer or an
# audited post and find it among their own answers.

# Texts are looked up by their first characters, with the index item_begins of corpora.
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
# The query goes from the text to its items, their units and their leases, each few. The arrays make PostgreSQL keep
# that order, whatever its statistics suggest.
_AMONG = {"sqlite": {"among": "IN ", "end": ""}, "postgresql": {"among": "= ANY(ARRAY", "end": ")"}}


def seen_sql(unit: str, person: str, vendor: str) -> str:
    """Return an SQL condition: a hidden unit has a text that the annotator was shown as another unit.

    The other unit may be in any task or corpus.

    unit: the unit's table.
    person: primary key of the annotator, or a placeholder for it.
    vendor: vendor of the database.
    """
    return f"({_SEEN.format(unit=unit, person=person, **_AMONG[vendor])})"


class Seen(Func):
    """The condition of `seen_sql` as a database function of the primary keys of unit and annotator."""

    output_field = BooleanField()

    def as_sql(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, list[Any]]:
        (unit, _), (person, values) = map(compiler.compile, self.get_source_expressions())
        return seen_sql(unit.rpartition(".")[0], person, connection.vendor), list(values)


def waiting(permit: Permit) -> QuerySet[Unit]:
    """Return queued units of work in the annotator's queues that they have not judged, with or without a free place."""
    return in_own_queues(permit).work().queued()


def in_own_queues(permit: Permit) -> QuerySet[Unit]:
    """Return units in the annotator's queues that they may still judge, at any stage, including honeypots."""
    return unjudged(permit).filter(language__in=list(permit.queues))


def unjudged(permit: Permit, units: QuerySet[Unit] | None = None) -> QuerySet[Unit]:
    """Return units in any queue and stage that the annotator may still judge.

    Units they have judged are left out, and disturbing units unless they accept these.

    permit: the annotator's permit for the task.
    units: units to choose from, None for all of the task.
    """
    found, own = permit.task.units.all() if units is None else units, permit.annotator
    return unjudged_by(found, own.pk, adjudicates=own.adjudicates, takes_disturbing=own.takes_disturbing)


def unjudged_by(units: QuerySet[Unit], annotator: Any, *, adjudicates: bool, takes_disturbing: bool) -> QuerySet[Unit]:
    """Return the units of `unjudged` as a query for prepared statements.

    annotator: primary key of the annotator, or a placeholder for it.
    """
    judged = Judgment.objects.binding().filter(unit=OuterRef("pk"), annotator=annotator)
    found = units.filter(~Exists(judged), ~Seen("pk", annotator))
    found = not_left_to_others(found, takes_disturbing=takes_disturbing)
    if adjudicates:
        # As an adjudicator, they could have read the answers there.
        reopened = Transition.objects.filter(unit=OuterRef("pk"), event="reopened", from_stage=stages.ADJUDICATION)
        found = found.filter(~Exists(reopened))
    return found


def not_left_to_others(units: QuerySet[Unit], *, takes_disturbing: bool) -> QuerySet[Unit]:
    """Return the units, without disturbing ones unless the annotator accepts these."""
    return units if takes_disturbing else units.filter(disturbing=False)


def beyond(annotator: Annotator) -> Q:
    """Return a condition for the units that `unjudged` leaves out because of judgments and reopenings.

    It starts from these few rows instead of from the units.
    """
    gone = Q(pk__in=Judgment.objects.binding().filter(annotator=annotator).order_by().values("unit"))
    if annotator.adjudicates:
        reopened = Transition.objects.filter(event="reopened", from_stage=stages.ADJUDICATION)
        gone |= Q(pk__in=reopened.order_by().values("unit"))
    return gone


def may_be_given(permit: Permit, unit: Unit) -> bool:
    return in_own_queues(permit).filter(pk=unit.pk).exists()


def with_free_place(units: QuerySet[Unit]) -> QuerySet[Unit]:
    """Return units with a place that no answer and no running lease holds."""
    now = timezone.now()
    kept = Lease.objects.filter(place__isnull=False).filter(Q(closed_at__isnull=False) | Q(expires_at__gt=now))
    stand_ins = Lease.objects.filter(closed_at=None, expires_at__gt=now)
    held = _number(kept, "unit") + _number(stand_ins, "instead_of")
    return units.annotate(held=held).filter(held__lt=F("redundancy"))


def _number(leases: QuerySet[Lease], of: str) -> Coalesce:
    """Return the number of leases per unit, as an expression."""
    own = leases.filter(**{of: OuterRef("pk")}).order_by().values(of).annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(own), 0)


# --- gold answers in place of a unit of work: how long each waits there, and for whom
#
# A random draw gives a gold answer to one annotator, before the unit that it replaces. If they return it or let it
# expire, it replaces the unit for everybody else: the next annotator in line gets the gold answer and is not asked
# about the unit. It waits as long as the unit itself would if its answers had been given to the unit.


def is_over(unit: Unit, gold: int, leases: Iterable[Lease]) -> bool:
    """Return whether a gold answer has all the answers or skips that the unit it replaces asks for.

    leases: leases of the unit and of all gold answers that replaced it.
    """
    said = [each for each in leases if each.unit_id in (unit.pk, gold)]
    skips = sum(each.outcome == "skipped" and each.round == unit.round for each in said)
    return skips >= unit.task.skip_limit or len(_who_answered(said)) >= unit.redundancy


def answered_instead(unit: Unit, gold: int, leases: Iterable[Lease]) -> int:
    """Return the number of annotators who answered the gold answer but not the unit."""
    listed = list(leases)
    of_unit = [each for each in listed if each.unit_id == unit.pk]
    return len(_who_answered(each for each in listed if each.unit_id == gold) - _who_answered(of_unit))


def _who_answered(leases: Iterable[Lease]) -> set[int]:
    return {each.annotator_id for each in leases if each.outcome == "answered"}
