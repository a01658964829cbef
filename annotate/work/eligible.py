"""Units that an annotator may be given. queue.py decides their order and assigns them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.db.models import BooleanField, Count, Exists, F, Func, OuterRef, Q, QuerySet, Subquery, TextField
from django.db.models.functions import Coalesce
from django.utils import timezone

from annotate.core import stages
from annotate.models import Judgment, Lease, Transition, Unit
from annotate.models.work import Units
from annotate.work.permit import Permit
from corpora.models import Item

# --- texts seen before
#
# A hidden unit (a decoy, a gold answer or an audited post) is not given to annotators who have seen its text before,
# because they could recognize the text and look up their earlier answer.

# Texts are looked up by their first characters, with the index item_begins of corpora.
BEGINS = 32  # characters
TEXTS = 500  # maximum number of texts per query
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
# The query goes from the text to its items, then to their units and their leases, because there are few of each. The
# arrays force PostgreSQL to keep this order, regardless of its statistics.
_AMONG = {"sqlite": {"among": "IN ", "end": ""}, "postgresql": {"among": "= ANY(ARRAY", "end": ")"}}


def seen_sql(unit: str, person: str, vendor: str) -> str:
    """Return an SQL condition that is true if a unit is hidden and the annotator was shown its text in another unit.

    The other unit may be in any task or corpus.

    unit: name or alias of the unit's table.
    person: primary key of the annotator, or a placeholder for it.
    vendor: vendor of the database.
    """
    return f"({_SEEN.format(unit=unit, person=person, **_AMONG[vendor])})"


class Seen(Func):
    """The condition of `seen_sql` as a database function of the primary keys of unit and annotator."""

    output_field = BooleanField()

    # Django 5 expects lists of values, whereas the stub has the tuples of Django 6.
    def as_sql(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, list[Any]]:  # type: ignore[override]
        (unit, _), (person, values) = map(compiler.compile, self.get_source_expressions())
        return seen_sql(unit.rpartition(".")[0], person, connection.vendor), list(values)


def shown_before(units: Units) -> Iterator[tuple[int, int]]:
    """Yield each hidden unit with each annotator who was shown its text in another unit, as pairs of primary keys.

    Hidden units are decoys, gold answers and audited posts. The result is that of `Seen`, for all annotators at once.
    """
    hidden: dict[str, list[int]] = defaultdict(list)
    chosen = units.exclude(known_answer="", audited=False).order_by()
    for unit, text in chosen.values_list("pk", "item__text"):
        hidden[text].append(unit)
    texts = list(hidden)
    for start in range(0, len(texts), TEXTS):
        batch = texts[start : start + TEXTS]
        begin = Func("text", 1, BEGINS, function="SUBSTR", output_field=TextField())
        begins = {text[:BEGINS] for text in batch}
        same = Item.objects.alias(begin=begin).filter(begin__in=begins, text__in=batch).order_by()
        leases = Lease.objects.filter(unit__item__in=same).order_by()
        for unit, text, annotator in leases.values_list("unit_id", "unit__item__text", "annotator_id").distinct():
            yield from ((other, annotator) for other in hidden[text] if other != unit)


def waiting(permit: Permit) -> Units:
    """Return the units of work that wait in the annotator's queues and that the annotator has not judged.

    Units that have no free place are included.
    """
    return in_own_queues(permit).work().queued()


def in_own_queues(permit: Permit) -> Units:
    """Return the units in the annotator's queues that the annotator may still judge, including honeypots, at any stage.

    Units that the annotator has judged are excluded. So are disturbing units, unless the annotator accepts them.
    """
    units, person = permit.task.units.filter(language__in=list(permit.queues)), permit.annotator
    preferences = {"may_have_seen": person.has_seen_answers, "takes_disturbing": person.takes_disturbing}
    return unjudged_by(units, person.pk, **preferences)


# Adjudicators could read the answers to a unit while it waited for adjudication.
_REOPENED = Transition.objects.filter(event="reopened", from_stage=stages.ADJUDICATION)
IS_REOPENED = Exists(_REOPENED.filter(unit=OuterRef("pk")))


def unjudged_by(units: Units, annotator: Any, *, may_have_seen: bool, takes_disturbing: bool) -> Units:
    """Return the units that an annotator may still judge, in any queue.

    The arguments are plain values, so that the query can be a prepared statement.

    annotator: primary key of the annotator, or a placeholder for it.
    """
    judged = Judgment.objects.binding().filter(unit=OuterRef("pk"), annotator=annotator)
    remaining = units.filter(~Exists(judged), ~Seen("pk", annotator))
    remaining = not_left_to_others(remaining, takes_disturbing=takes_disturbing)
    return remaining.filter(~IS_REOPENED) if may_have_seen else remaining


def not_left_to_others(units: Units, *, takes_disturbing: bool) -> Units:
    """Return the units, except for disturbing units if the annotator does not accept them."""
    return units if takes_disturbing else units.filter(disturbing=False)


def beyond(permits: Sequence[Permit]) -> Q:
    """Return a condition for the units that `unjudged_by` excludes because of judgments and reopenings.

    permits: permits of one annotator.

    The condition finds these units by their few judgments and transitions instead of checking each unit.
    """
    judged = Judgment.objects.binding().filter(annotator=permits[0].annotator)
    gone = Q(pk__in=judged.order_by().values("unit"))
    if permits[0].annotator.has_seen_answers:
        gone |= Q(pk__in=_REOPENED.order_by().values("unit"))
    return gone


def with_free_place(units: Units) -> Units:
    """Return the units with a free place, which is a place that neither an answer nor a running lease holds."""
    current_time = timezone.now()
    holding = Lease.objects.filter(place__isnull=False).filter(
        Q(closed_at__isnull=False) | Q(expires_at__gt=current_time)
    )
    stand_ins = Lease.objects.filter(closed_at=None, expires_at__gt=current_time)
    held = _number(holding, "unit") + _number(stand_ins, "instead_of")
    return units.annotate(held=held).filter(held__lt=F("redundancy"))


def _number(leases: QuerySet[Lease], field: str) -> Coalesce:
    """Return an expression for the number of leases per unit."""
    counts = (
        leases.filter(**{field: OuterRef("pk")}).order_by().values(field).annotate(number=Count("pk")).values("number")
    )
    return Coalesce(Subquery(counts), 0)


# --- gold answers that replace a unit of work: how long a gold answer waits, and for whom
#
# A random draw gives a gold answer to an annotator in place of a unit. If the annotator returns the gold answer or lets
# it expire, it replaces the unit for everybody else: the next annotator gets the gold answer and is not asked about the
# unit. The gold answer waits as long as the unit would wait if it had received the same answers.


def is_over(unit: Unit, gold: int, leases: Iterable[Lease]) -> bool:
    """Return whether a gold answer no longer waits, because it has all the answers or skips that the unit would need.

    unit: the unit that the gold answer replaces.
    gold: primary key of the gold answer's unit.
    leases: leases of the unit and of all gold answers that replaced it.
    """
    relevant = [lease for lease in leases if lease.unit_id in (unit.pk, gold)]
    skips = sum(lease.outcome == "skipped" and lease.round == unit.round for lease in relevant)
    return skips >= unit.task.skip_limit or len(_who_answered(relevant)) >= unit.redundancy


def answered_instead(unit: Unit, gold: int, leases: Iterable[Lease]) -> int:
    """Return the number of annotators who answered the gold answer but not the unit."""
    listed = list(leases)
    of_unit = [lease for lease in listed if lease.unit_id == unit.pk]
    return len(_who_answered(lease for lease in listed if lease.unit_id == gold) - _who_answered(of_unit))


def _who_answered(leases: Iterable[Lease]) -> set[int]:
    return {lease.annotator_id for lease in leases if lease.outcome == "answered"}
