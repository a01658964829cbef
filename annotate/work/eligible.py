"""Units that an annotator may be given, and their number. assignment.py assigns them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import BooleanField, Count, Exists, F, Func, OuterRef, Q, QuerySet, Subquery, TextField
from django.db.models.functions import Coalesce
from django.utils import timezone

from annotate.core import stages
from annotate.kinds.control import QualityControl
from annotate.models import Annotator, Backlog, Judgment, Lease, Transition, Unit
from annotate.models.work import Units
from annotate.work.permit import Permit, midnight
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


# --- the backlog of an annotator, counted exactly; backlog.py keeps the counts


OUTCOME = ("answered", "skipped", "flagged")


def count_backlogs(permits: Sequence[Permit]) -> list[Backlog]:
    """Count the backlogs of one annotator."""
    annotator, tasks = permits[0].annotator, [permit.task.pk for permit in permits]
    left: dict[int, Counter[tuple[str, bool]]] = {task: Counter() for task in tasks}
    for (task, language, is_hidden), number in _units(permits).items():
        left[task][language, is_hidden] = number
    judgments = Judgment.objects.live().filter(annotator=annotator, unit__task__in=tasks, lease__isnull=False)
    rows = judgments.filter(answered_at__gte=midnight()).order_by().values_list("unit__task", "kind")
    done: dict[int, Counter[str]] = {task: Counter() for task in tasks}
    for task, kind, number in rows.annotate(Count("pk")):
        done[task][kind] = number
    coming, aside = _coming(permits), _aside(permits)
    return [
        _backlog(permit, left[permit.task.pk], coming, aside[permit.task.pk], done[permit.task.pk])
        for permit in permits
    ]


def _coming(permits: Sequence[Permit]) -> Callable[[Permit, Counter[str], Counter[str]], int]:
    """Return a function that estimates how many hidden units an annotator will still get in a task.

    The function takes the permit, the number of units of work in each queue, and the number of hidden units in each
    queue. It counts only hidden units that come before the last unit of work.
    """
    of_control: dict[QualityControl, list[Permit]] = {}
    for permit in permits:
        for control in permit.task.hooks["coming"]:
            of_control.setdefault(control, []).append(permit)
    counts = {control: control.coming(own_permits) for control, own_permits in of_control.items()}
    return lambda permit, *units: sum(counts[control](permit, *units) for control in permit.task.hooks["coming"])


def _units(permits: Sequence[Permit]) -> Counter[tuple[int, str, bool]]:
    """Count the units in an annotator's queues that the annotator has not judged.

    The keys of the result are (task, language, whether the unit is a honeypot) tuples.
    """
    # Tasks with the same queues share a condition, because Django takes long to build one for each of many tasks.
    tasks_of: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for permit in permits:
        tasks_of[tuple(permit.read_queues)].append(permit.task.pk)
    anywhere = Q(pk=None)
    for queues, tasks in tasks_of.items():
        anywhere |= Q(task__in=tasks, language__in=queues)
    queued = Unit.objects.queued().filter(anywhere).order_by()
    annotator = permits[0].annotator
    left = _by_queue(queued, annotator)
    # Subtract the units that the annotator has judged, which are few, instead of checking each waiting unit. A million
    # units may be waiting.
    gone = beyond(permits)
    # These tasks may have hidden units, which are not given to people who have seen the text. A task of records has
    # hidden units only if it has gold answers.
    all_tasks = [permit.task for permit in permits]
    if hiding := [task.pk for task in all_tasks if task.gold_share or not task.kind.routing.waits]:
        gone |= Q(task__in=hiding) & Q(Seen("pk", annotator.pk))
    left.subtract(_by_queue(queued.filter(gone), annotator))
    return left


def _by_queue(units: QuerySet[Unit], annotator: Annotator) -> Counter[tuple[int, str, bool]]:
    """Count units by queue. Units that were flagged as disturbing count only if the annotator accepts them."""
    counts: Counter[tuple[int, str, bool]] = Counter()
    rows = units.values_list("task", "language", "honeypot", "disturbing").annotate(Count("pk"))
    for *queue, disturbing, number in rows:
        if annotator.takes_disturbing or not disturbing:
            counts[tuple(queue)] += number
    return counts


@dataclass
class _Aside:
    """Numbers of units per queue that are counted separately, because an annotator has received them before.

    The random draw of gold answers does not apply to these units.

    work: units of work that the annotator returned or has open.
    gold: gold answers that the annotator returned or has open and that are not counted under `work`.
    used: gold answers that the draw can no longer give to the annotator.
    replaced: units of work that the annotator is not asked about, because they answered a gold answer instead.
    """

    work: Counter[str] = field(default_factory=Counter)
    gold: Counter[str] = field(default_factory=Counter)
    used: Counter[str] = field(default_factory=Counter)
    replaced: Counter[str] = field(default_factory=Counter)


def _aside(permits: Sequence[Permit]) -> dict[int, _Aside]:
    """Return the _Aside of each task for one annotator.

    A gold answer that the annotator returned counts as long as it waits for this annotator, like a unit of work.
    """
    annotator, now = permits[0].annotator, timezone.now()
    tasks = {permit.task.pk: permit.task for permit in permits}
    with_gold = [pk for pk, task in tasks.items() if task.gold_share]
    leases_of_annotator = Lease.objects.filter(annotator=annotator, unit__task__in=tasks).order_by("pk")
    returned = Q(outcome__in=Lease.RETURNED, unit__task__in=with_gold)
    replaced = Q(in_place=True, outcome__in=OUTCOME)
    leases = list(
        leases_of_annotator.filter(Q(closed_at=None) | returned | replaced).select_related("unit", "instead_of")
    )
    aside_by_task = {task: _Aside() for task in tasks}
    running = [lease for lease in leases if lease.closed_at is None and lease.expires_at > now]
    on_screen = {lease.unit.task_id: lease for lease in running if lease.is_wanted}
    for task, lease in on_screen.items():
        _add(aside_by_task[task], lease, waits=lease.work.stage == stages.QUEUED)
    rest = [lease for lease in leases if lease not in on_screen.values()]
    if rest:
        _add_returned(aside_by_task, rest, {lease.work.pk for lease in on_screen.values()}, permits)
    return aside_by_task


def _add(aside: _Aside, lease: Lease, *, waits: bool) -> None:
    """Count a lease that is on the annotator's screen.

    waits: whether the unit of work behind the lease is in a queue.
    """
    is_work = lease.instead_of_id is None or lease.in_place
    (aside.work if is_work and waits else aside.gold)[lease.work.language] += 1
    if lease.unit.honeypot:
        aside.used[lease.unit.language] += 1


def _add_returned(
    aside_by_task: dict[int, _Aside],
    leases: list[Lease],
    open_now: set[int],
    permits: Sequence[Permit],
) -> None:
    """Count leases that one annotator returned or let expire, and gold answers that they answered in place of work.

    leases: these leases, oldest first.
    open_now: units of work behind the leases that are on the annotator's screen.
    """
    units = Unit.objects.queued().filter(pk__in={pk for lease in leases for pk in (lease.unit_id, lease.work.pk)})
    tasks, annotator = {permit.task.pk: permit.task for permit in permits}, permits[0].annotator
    preferences = {"may_have_seen": annotator.has_seen_answers, "takes_disturbing": annotator.takes_disturbing}
    theirs = {unit.pk: unit for unit in unjudged_by(units.order_by(), annotator.pk, **preferences)}
    leases_by_unit: dict[int, list[Lease]] = {}
    stood_for = [lease.instead_of_id for lease in leases if lease.instead_of_id in theirs]
    for lease in Lease.objects.filter(Q(unit__in=stood_for) | Q(instead_of__in=stood_for)).order_by():
        leases_by_unit.setdefault(lease.instead_of_id or lease.unit_id, []).append(lease)
    replaced = {lease.instead_of_id: lease for lease in leases if lease.outcome in OUTCOME}
    for unit in theirs.keys() & replaced.keys():
        aside_by_task[theirs[unit].task_id].replaced[theirs[unit].language] += 1
    golds = {lease.unit_id for lease in leases if lease.unit.honeypot and lease.unit_id in theirs}
    for gold in golds:
        aside_by_task[theirs[gold].task_id].used[theirs[gold].language] += 1
    for lease in {lease.work.pk: lease for lease in leases if lease.outcome not in OUTCOME}.values():
        work = theirs.get(lease.work.pk)
        if work is None or work.pk in open_now or work.pk in replaced:
            continue
        work.task = tasks[work.task_id]
        if lease.instead_of_id is None:
            aside_by_task[work.task_id].work[work.language] += 1
        elif lease.unit_id in golds and not is_over(work, lease.unit_id, leases_by_unit[work.pk]):
            kind = aside_by_task[work.task_id].work if lease.in_place else aside_by_task[work.task_id].gold
            kind[work.language] += 1


def _backlog(
    permit: Permit,
    left: Counter[tuple[str, bool]],
    coming: Callable[[Permit, Counter[str], Counter[str]], int],
    aside: _Aside,
    done: Counter[str],
) -> Backlog:
    def count(queues: Iterable[str]) -> int:
        work = Counter({queue: left[queue, False] - aside.replaced[queue] for queue in queues})
        if not work.total():
            # If no other work is left, the annotator is asked about the replaced units too.
            work = Counter({queue: left[queue, False] for queue in queues})
        by_lot = Counter({queue: max(0, number - aside.work[queue]) for queue, number in work.items()})
        pool = Counter({queue: left[queue, True] - aside.used[queue] for queue in queues})
        return work.total() + sum(aside.gold[queue] for queue in queues) + coming(permit, by_lot, pool)

    behind = {
        language: count([queue])
        for language in permit.majors
        if (queue := permit.routes.queue_in(language)) in permit.read_queues and queue not in permit.queues
    }
    return Backlog(
        annotator=permit.annotator,
        task=permit.task,
        waiting=count(permit.queues),
        behind_tests=behind,
        queues=list(permit.queues),
        day=midnight().date(),
        answered=done[Judgment.ANSWER],
        skipped=done[Judgment.SKIP],
        counted_at=timezone.now(),
    )
