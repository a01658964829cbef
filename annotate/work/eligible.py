"""Selects and counts the units that may be assigned to an annotator. assignment.py assigns them."""

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
# A hidden unit (a decoy, a gold answer or an audited post) is never assigned to annotators who have already seen its
# text. They could recognize the text and look up their earlier answer.

# Texts are looked up by their first characters, using the index item_begins of corpora.
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
# The query starts at the text and proceeds to its items, units and leases, because each text has few of them. The
# arrays force PostgreSQL to keep this order, regardless of its statistics.
_AMONG = {"sqlite": {"among": "IN ", "end": ""}, "postgresql": {"among": "= ANY(ARRAY", "end": ")"}}


def seen_sql(unit: str, person: str, vendor: str) -> str:
    """Return an SQL condition that selects hidden units whose text the annotator has seen in another unit.

    The other unit may belong to any task or corpus.

    unit: name or alias of the unit's table.
    person: the annotator's primary key, or a placeholder for it.
    vendor: database vendor, "sqlite" or "postgresql".
    """
    return f"({_SEEN.format(unit=unit, person=person, **_AMONG[vendor])})"


class Seen(Func):
    """The condition of `seen_sql` as a database function. Takes the primary keys of a unit and an annotator."""

    output_field = BooleanField()

    # Django 5 expects a list of values, but the stubs already declare Django 6's tuples.
    def as_sql(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, list[Any]]:  # type: ignore[override]
        (unit, _), (person, values) = map(compiler.compile, self.get_source_expressions())
        return seen_sql(unit.rpartition(".")[0], person, connection.vendor), list(values)


def shown_before(units: Units) -> Iterator[tuple[int, int]]:
    """Yield (unit, annotator) primary keys for each hidden unit whose text the annotator has seen in another unit.

    This evaluates `Seen` for all annotators at once. Hidden units are decoys, gold answers and audited posts.
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


def waiting_units(permit: Permit) -> Units:
    """Return the units of work in the annotator's queues that the annotator has not judged.

    Units without a free place are included.
    """
    return in_own_queues(permit).work().queued()


def in_own_queues(permit: Permit) -> Units:
    """Return the units in the annotator's queues that the annotator can still judge, whatever their stage.

    Honeypots are included. Judged units are excluded, and so are disturbing units unless the annotator has opted in.
    """
    units, person = permit.task.units.filter(language__in=list(permit.queues)), permit.annotator
    preferences = {"may_have_seen": person.has_seen_answers, "takes_disturbing": person.takes_disturbing}
    return unjudged_by(units, person.pk, **preferences)


# Transitions that reopened a unit in adjudication, where adjudicators could already see the answers to it.
_REOPENED = Transition.objects.filter(event="reopened", from_stage=stages.ADJUDICATION)
IS_REOPENED = Exists(_REOPENED.filter(unit=OuterRef("pk")))


def unjudged_by(units: Units, annotator: Any, *, may_have_seen: bool, takes_disturbing: bool) -> Units:
    """Return the units that an annotator may still judge, in any queue.

    The arguments are plain values, so that the query can be a prepared statement.

    annotator: the annotator's primary key, or a placeholder for it.
    may_have_seen: whether to exclude reopened units, because the annotator could have seen the answers to them.
    takes_disturbing: whether the annotator has opted in to disturbing units.
    """
    judged = Judgment.objects.binding().filter(unit=OuterRef("pk"), annotator=annotator)
    remaining = units.filter(~Exists(judged), ~Seen("pk", annotator))
    remaining = filter_disturbing(remaining, takes_disturbing=takes_disturbing)
    return remaining.filter(~IS_REOPENED) if may_have_seen else remaining


def filter_disturbing(units: Units, *, takes_disturbing: bool) -> Units:
    """Exclude disturbing units, unless the annotator has opted in to them."""
    return units if takes_disturbing else units.filter(disturbing=False)


def judged_or_reopened(permits: Sequence[Permit]) -> Q:
    """Return a condition for the units that `unjudged_by` excludes because they were judged or reopened.

    The condition starts from the judgments and transitions, which are few, so the database need not check every unit.

    permits: permits of one annotator.
    """
    judged = Judgment.objects.binding().filter(annotator=permits[0].annotator)
    excluded = Q(pk__in=judged.order_by().values("unit"))
    if permits[0].annotator.has_seen_answers:
        excluded |= Q(pk__in=_REOPENED.order_by().values("unit"))
    return excluded


def with_free_place(units: Units) -> Units:
    """Return the units with a free place, i.e. one that is held by neither an answer nor a running lease."""
    current_time = timezone.now()
    holding = Lease.objects.filter(place__isnull=False).filter(
        Q(closed_at__isnull=False) | Q(expires_at__gt=current_time)
    )
    stand_ins = Lease.objects.filter(closed_at=None, expires_at__gt=current_time)
    held = _count_per_unit(holding, "unit") + _count_per_unit(stand_ins, "instead_of")
    return units.annotate(held=held).filter(held__lt=F("redundancy"))


def _count_per_unit(leases: QuerySet[Lease], field: str) -> Coalesce:
    """Return an expression that counts a unit's leases.

    field: the lease's foreign key to the unit.
    """
    counts = (
        leases.filter(**{field: OuterRef("pk")}).order_by().values(field).annotate(number=Count("pk")).values("number")
    )
    return Coalesce(Subquery(counts), 0)


# --- gold answers that replace a unit of work: how long they stay available, and to whom
#
# A random draw assigns a gold answer to an annotator in place of a unit. If the annotator returns the gold answer or
# lets the lease expire, the gold answer replaces the unit for everyone else: the next annotator gets the gold answer
# and isn't asked about the unit. The gold answer stays available until it has the answers that the unit would need.


def is_gold_complete(unit: Unit, gold: int, leases: Iterable[Lease]) -> bool:
    """Return whether a gold answer has all the answers or skips that the unit it replaces would need.

    unit: the unit that the gold answer replaces.
    gold: primary key of the gold answer's unit.
    leases: leases of the unit and of all gold answers that replaced it.
    """
    relevant = [lease for lease in leases if lease.unit_id in (unit.pk, gold)]
    skips = sum(lease.outcome == "skipped" and lease.round == unit.round for lease in relevant)
    return skips >= unit.task.skip_limit or len(_annotators_of(relevant)) >= unit.redundancy


def count_gold_only(unit: Unit, gold: int, leases: Iterable[Lease]) -> int:
    """Count the annotators who answered the gold answer but not the unit that it replaced. See `is_gold_complete`."""
    listed = list(leases)
    of_unit = [lease for lease in listed if lease.unit_id == unit.pk]
    return len(_annotators_of(lease for lease in listed if lease.unit_id == gold) - _annotators_of(of_unit))


def _annotators_of(leases: Iterable[Lease]) -> set[int]:
    return {lease.annotator_id for lease in leases if lease.outcome == "answered"}


# --- exact counts of an annotator's backlog; backlog.py caches them


OUTCOME = ("answered", "skipped", "flagged")


def count_backlogs(permits: Sequence[Permit]) -> list[Backlog]:
    """Count an annotator's backlog in each task. The returned rows are not saved.

    permits: the annotator's permits, one for each task.
    """
    annotator, tasks = permits[0].annotator, [permit.task.pk for permit in permits]
    remaining: dict[int, Counter[tuple[str, bool]]] = {task: Counter() for task in tasks}
    for (task, language, is_hidden), number in _count_unjudged(permits).items():
        remaining[task][language, is_hidden] = number
    judgments = Judgment.objects.live().filter(annotator=annotator, unit__task__in=tasks, lease__isnull=False)
    rows = judgments.filter(answered_at__gte=midnight()).order_by().values_list("unit__task", "kind")
    done_today: dict[int, Counter[str]] = {task: Counter() for task in tasks}
    for task, kind, number in rows.annotate(Count("pk")):
        done_today[task][kind] = number
    estimate_hidden, reassigned = _hidden_estimator(permits), _count_reassigned(permits)
    return [
        _build_backlog(
            permit, remaining[permit.task.pk], estimate_hidden, reassigned[permit.task.pk], done_today[permit.task.pk]
        )
        for permit in permits
    ]


def _hidden_estimator(permits: Sequence[Permit]) -> Callable[[Permit, Counter[str], Counter[str]], int]:
    """Return a function that estimates how many hidden units an annotator will still get in a task.

    The function takes the permit and two counts by queue: units of work and hidden units. It ignores hidden units that
    would come after the last unit of work.
    """
    of_control: dict[QualityControl, list[Permit]] = {}
    for permit in permits:
        for control in permit.task.hooks["coming"]:
            of_control.setdefault(control, []).append(permit)
    counts = {control: control.coming(own_permits) for control, own_permits in of_control.items()}
    return lambda permit, *units: sum(counts[control](permit, *units) for control in permit.task.hooks["coming"])


def _count_unjudged(permits: Sequence[Permit]) -> Counter[tuple[int, str, bool]]:
    """Count the units in an annotator's queues that the annotator has not judged.

    The keys of the result are (task, language, is_honeypot) tuples.
    """
    # Tasks with the same queues share a condition, because Django is slow at building one for each of many tasks.
    tasks_of: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for permit in permits:
        tasks_of[tuple(permit.read_queues)].append(permit.task.pk)
    anywhere = Q(pk=None)
    for queues, tasks in tasks_of.items():
        anywhere |= Q(task__in=tasks, language__in=queues)
    queued = Unit.objects.queued().filter(anywhere).order_by()
    annotator = permits[0].annotator
    remaining = _count_by_queue(queued, annotator)
    # Subtract the few units that the annotator has judged, because checking up to a million queued units is too slow.
    excluded = judged_or_reopened(permits)
    # Also subtract hidden units whose text the annotator has seen. Any task of posts may have hidden units. A task of
    # records has them only if it has gold answers.
    all_tasks = [permit.task for permit in permits]
    if tasks_with_hidden := [task.pk for task in all_tasks if task.gold_share or not task.kind.routing.waits]:
        excluded |= Q(task__in=tasks_with_hidden) & Q(Seen("pk", annotator.pk))
    remaining.subtract(_count_by_queue(queued.filter(excluded), annotator))
    return remaining


def _count_by_queue(units: QuerySet[Unit], annotator: Annotator) -> Counter[tuple[int, str, bool]]:
    """Count units by queue. Units flagged as disturbing count only if the annotator has opted in to them."""
    counts: Counter[tuple[int, str, bool]] = Counter()
    rows = units.values_list("task", "language", "honeypot", "disturbing").annotate(Count("pk"))
    for *queue, disturbing, number in rows:
        if annotator.takes_disturbing or not disturbing:
            counts[tuple(queue)] += number
    return counts


@dataclass
class _Reassigned:
    """Counts, by queue, of units already assigned to an annotator. No more gold answers are drawn for these units.

    work: units of work that the annotator returned or has open.
    gold: gold answers that the annotator returned or has open. Gold answers counted in `work` are left out.
    used: gold answers that the draw can no longer assign to the annotator.
    replaced: units of work that the annotator will not see, because they answered a gold item instead.
    """

    work: Counter[str] = field(default_factory=Counter)
    gold: Counter[str] = field(default_factory=Counter)
    used: Counter[str] = field(default_factory=Counter)
    replaced: Counter[str] = field(default_factory=Counter)


def _count_reassigned(permits: Sequence[Permit]) -> dict[int, _Reassigned]:
    """Count the units already assigned to an annotator, by task.

    Like a unit of work, a gold answer that the annotator returned counts until it is complete (see `is_gold_complete`).
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
    reassigned = {task: _Reassigned() for task in tasks}
    running = [lease for lease in leases if lease.closed_at is None and lease.expires_at > now]
    on_screen = {lease.unit.task_id: lease for lease in running if lease.is_answerable}
    for task, lease in on_screen.items():
        _count_on_screen(reassigned[task], lease, is_queued=lease.work.stage == stages.QUEUED)
    rest = [lease for lease in leases if lease not in on_screen.values()]
    if rest:
        _count_returned(reassigned, rest, {lease.work.pk for lease in on_screen.values()}, permits)
    return reassigned


def _count_on_screen(counts: _Reassigned, lease: Lease, *, is_queued: bool) -> None:
    """Count a lease that is on the annotator's screen.

    is_queued: whether the unit of work behind the lease is in a queue.
    """
    is_work = lease.instead_of_id is None or lease.in_place
    (counts.work if is_work and is_queued else counts.gold)[lease.work.language] += 1
    if lease.unit.honeypot:
        counts.used[lease.unit.language] += 1


def _count_returned(
    reassigned: dict[int, _Reassigned],
    leases: list[Lease],
    on_screen: set[int],
    permits: Sequence[Permit],
) -> None:
    """Count leases that one annotator returned or let expire, and gold answers that they answered in place of work.

    leases: returned, expired and answered leases, oldest first.
    on_screen: primary keys of the units of work behind the leases on the annotator's screen.
    """
    units = Unit.objects.queued().filter(pk__in={pk for lease in leases for pk in (lease.unit_id, lease.work.pk)})
    tasks, annotator = {permit.task.pk: permit.task for permit in permits}, permits[0].annotator
    preferences = {"may_have_seen": annotator.has_seen_answers, "takes_disturbing": annotator.takes_disturbing}
    unjudged = {unit.pk: unit for unit in unjudged_by(units.order_by(), annotator.pk, **preferences)}
    leases_by_unit: dict[int, list[Lease]] = {}
    replaced_units = [lease.instead_of_id for lease in leases if lease.instead_of_id in unjudged]
    for lease in Lease.objects.filter(Q(unit__in=replaced_units) | Q(instead_of__in=replaced_units)).order_by():
        leases_by_unit.setdefault(lease.instead_of_id or lease.unit_id, []).append(lease)
    replaced = {lease.instead_of_id: lease for lease in leases if lease.outcome in OUTCOME}
    for unit in unjudged.keys() & replaced.keys():
        reassigned[unjudged[unit].task_id].replaced[unjudged[unit].language] += 1
    golds = {lease.unit_id for lease in leases if lease.unit.honeypot and lease.unit_id in unjudged}
    for gold in golds:
        reassigned[unjudged[gold].task_id].used[unjudged[gold].language] += 1
    for lease in {lease.work.pk: lease for lease in leases if lease.outcome not in OUTCOME}.values():
        work = unjudged.get(lease.work.pk)
        if work is None or work.pk in on_screen or work.pk in replaced:
            continue
        work.task = tasks[work.task_id]
        if lease.instead_of_id is None:
            reassigned[work.task_id].work[work.language] += 1
        elif lease.unit_id in golds and not is_gold_complete(work, lease.unit_id, leases_by_unit[work.pk]):
            counts = reassigned[work.task_id]
            (counts.work if lease.in_place else counts.gold)[work.language] += 1


def _build_backlog(
    permit: Permit,
    remaining: Counter[tuple[str, bool]],
    estimate_hidden: Callable[[Permit, Counter[str], Counter[str]], int],
    reassigned: _Reassigned,
    done_today: Counter[str],
) -> Backlog:
    def count(queues: Iterable[str]) -> int:
        work = Counter({queue: remaining[queue, False] - reassigned.replaced[queue] for queue in queues})
        if not work.total():
            # When no other work is left, the annotator is asked about the replaced units too.
            work = Counter({queue: remaining[queue, False] for queue in queues})
        drawable = Counter({queue: max(0, number - reassigned.work[queue]) for queue, number in work.items()})
        pool = Counter({queue: remaining[queue, True] - reassigned.used[queue] for queue in queues})
        return work.total() + sum(reassigned.gold[queue] for queue in queues) + estimate_hidden(permit, drawable, pool)

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
        answered=done_today[Judgment.ANSWER],
        skipped=done_today[Judgment.SKIP],
        counted_at=timezone.now(),
    )
