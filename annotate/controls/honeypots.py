"""Honeypots, which are gold answers hidden in the queue: when annotators get them, and how well they answer.

If 10% of an annotator's units are to be honeypots, then one unit in every block of ten is a honeypot. Its position in
the block is drawn at random for each annotator. Units are counted separately in each language, so if a language runs
out of honeypots, annotators don't get another language's. A honeypot looks like any other unit, but its stage never
changes, so every annotator can get it. Annotators who answer too many honeypots wrongly are paused.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from annotate.core import pause_rule
from annotate.core.draws.committed_draws import gold_count, gold_order, gold_places
from annotate.core.estimation.proportions import proportion
from annotate.core.pause_rule import Rule
from annotate.models import Judgment, Lease, Pause, Task, Unit
from annotate.work.permit import Permit
from corpora.database.statements import prepared

_EVER = datetime(1, 1, 1, tzinfo=UTC)


class DrawState(NamedTuple):
    """The state of an annotator's draw of honeypots in a language, before the annotator gets a unit.

    The state is stored with the lease, so that the draw can be verified. It doesn't depend on what annotators do with
    their units. If it did, the unit that follows a returned unit could reveal whether the returned one was a honeypot.

    assigned: number of units in the language that the draw has assigned to the annotator.
    honeypots: number of honeypots among these units.
    size: number of units in a block. Each block has one honeypot.
    """

    assigned: int
    honeypots: int
    size: int


def read_draw_state(permit: Permit, language: str) -> DrawState:
    """Return the state of the annotator's draw in a language.

    permit: the annotator's permit for the task (work/permit.py).
    """
    return _next_state(permit.task, next(iter(_last_drawn(permit.annotator.pk, permit.task.pk, language)), None))


@prepared
def _last_drawn(annotator: int, task: int, queue: str) -> QuerySet[Lease, Any]:
    last = _drawn_leases(annotator).filter(unit__task=task, queue=queue).order_by("-pk")
    return last.values_list("turn", "unit__honeypot", "in_place")[:1]


def load_draw_states(permits: Sequence[Permit]) -> Callable[[Task, str], DrawState]:
    """Load the states of an annotator's draws. Return a function that looks up a state by task and language.

    permits: the annotator's permits, one for each task.
    """
    drawn_leases = _drawn_leases(permits[0].annotator).filter(unit__task__in=[permit.task.pk for permit in permits])
    last = drawn_leases.order_by().values("unit__task", "queue").annotate(last=Max("pk")).values("last")
    leases = Lease.objects.filter(pk__in=last)
    rows = leases.values_list("unit__task", "queue", "turn", "unit__honeypot", "in_place")
    by_queue = {(task, queue): row for task, queue, *row in rows}
    return lambda task, language: _next_state(task, by_queue.get((task.pk, language)))


def _drawn_leases(annotator: Any) -> QuerySet[Lease]:
    return Lease.objects.filter(annotator=annotator, turn__isnull=False)


def _next_state(task: Task, last: Sequence[Any] | None) -> DrawState:
    """Return the state after the last draw.

    last: the state before the last draw, whether the unit was a honeypot, and whether it was a returned honeypot that
        replaced a unit of work; None if nothing has been drawn yet. A returned honeypot counts as work, because the
        draw had chosen work at this position.
    """
    (place, honeypots, _), was_honeypot, in_place = last or ((-1, 0, 0), False, False)
    return DrawState(place + 1, honeypots + (was_honeypot and not in_place), block(task))


def is_due(permit: Permit, language: str, state: DrawState) -> bool:
    """Return whether the annotator gets a honeypot instead of the next unit of work in a language."""
    return (
        gold_count(_honeypot_positions(permit, language, state.size), state.assigned + 1, state.size) > state.honeypots
    )


def order_honeypots(permit: Permit, honeypots: Iterable[tuple[int, str]]) -> list[int]:
    """Sort honeypots into the order that the annotator gets them. Return their unit keys.

    honeypots: (unit key, item id) pairs.
    """
    units_by_key = {key: unit for unit, key in honeypots}
    return [units_by_key[key] for key in gold_order(permit.task.lots, permit.annotator.pseudonym, units_by_key)]


def count_coming(
    state_of: Callable[[Task, str], DrawState], permit: Permit, work: Counter[str], pool: Counter[str]
) -> int:
    """Return how many honeypots an annotator will get before their last unit of work in a task.

    state_of: function that returns the state of the draw for a task and a language.
    work: number of units of work that the draw hasn't assigned to the annotator yet, by language.
    pool: number of honeypots that the annotator can still get, by language.
    """
    coming = 0
    if not permit.task.gold_share:
        return coming
    for language, count in work.items():
        place, honeypots, size = state_of(permit.task, language)
        is_honeypot = _honeypot_positions(permit, language, size)
        late = gold_count(is_honeypot, place, size) - honeypots
        coming += count_before_last(count, pool[language], place=place, late=late, is_honeypot=is_honeypot)
    return coming


def count_before_last(work: int, pool: int, *, place: int, late: int, is_honeypot: Callable[[int], bool]) -> int:
    """Return how many honeypots in a language come before the last unit of work.

    work: number of remaining units of work.
    pool: number of remaining honeypots.
    place: number of units that the draw has already assigned to the annotator.
    late: how many more honeypots should have come by now; negative if too many have come.
    is_honeypot: function that returns whether the draw puts a honeypot at a position.
    """
    coming = 0
    while work and coming < pool:
        late += is_honeypot(place)
        place += 1
        if late > 0:
            coming, late = coming + 1, late - 1
        else:
            work -= 1
    return coming


def by_language(units: QuerySet[Unit]) -> Counter[str]:
    return Counter(dict(units.order_by().values_list("language").annotate(Count("pk"))))


def block(task: Task) -> int:
    """Return the number of units in a block, including its honeypot. The task's gold share must not be 0."""
    return max(2, round(1 / task.gold_share))


def _honeypot_positions(permit: Permit, language: str, size: int) -> Callable[[int], bool]:
    """Return a function that looks up whether the annotator gets a honeypot at a position, counted from 0."""
    return gold_places(permit.task.lots, permit.annotator.pseudonym, language, size)


def is_first() -> Q:
    """Return a filter for judgments that are an annotator's first answer to a honeypot.

    The first answer counts even if it was withdrawn. Otherwise, annotators could correct the mistakes that they notice.
    """
    earlier = Judgment.objects.answers().filter(
        unit=OuterRef("unit"), annotator=OuterRef("annotator"), pk__lt=OuterRef("pk")
    )
    return Q(Q(unit__honeypot=True, kind=Judgment.ANSWER), ~Exists(earlier))


def score(permit: Permit) -> tuple[int, int]:
    """Return how many honeypots an annotator has answered correctly, and how many they have answered in total.

    Only answers since the annotator's last pause was lifted count. If an annotator has answered the same honeypot
    several times, only the first answer counts, even if it was withdrawn.
    """
    agrees, label_pairs = permit.task.kind.rules.agrees, _first_answers(permit.annotator.pk, permit.task.pk)
    return sum(agrees(label, gold_label) for label, gold_label in label_pairs), len(label_pairs)


@prepared
def _first_answers(annotator: int, task: int) -> QuerySet[Judgment, Any]:
    lifted = Pause.objects.filter(annotator=annotator, task=task, lifted_at__isnull=False).order_by("-pk")
    since = Coalesce(Subquery(lifted.values("lifted_at")[:1]), Value(_EVER))
    judgments = Judgment.objects.filter(is_first(), annotator=annotator, unit__task=task, answered_at__gt=since)
    return judgments.filter(lease__isnull=False).order_by().values_list("label", "unit__known_answer")


def answers(task: Task) -> QuerySet[Judgment]:
    """Select each annotator's first answer to each honeypot, which is the answer that counts."""
    return Judgment.objects.filter(is_first(), unit__in=task.units.hidden().order_by())


def is_right(judgment: Judgment) -> bool:
    """Return whether an answer to a honeypot is right. The judgment's unit and task must be loaded."""
    return judgment.unit.task.kind.rules.agrees(judgment.label, judgment.unit.known_answer)


def by_annotator(task: Task) -> dict[int, dict[str, Any]]:
    """Return the honeypot results of each annotator, by annotator key, as JSON data.

    asked: number of honeypots that the annotator has answered.
    right: number of these honeypots that were answered correctly.
    accuracy: `right` as a share of `asked`, with its 95% interval.
    """
    agrees = task.kind.rules.agrees
    counts: dict[int, Counter[bool]] = defaultdict(Counter)
    rows = answers(task).order_by().values_list("annotator", "label", "unit__known_answer").annotate(Count("pk"))
    for annotator, label, gold_label, number in rows:
        counts[annotator][agrees(label, gold_label)] += number
    return {
        annotator: {
            "asked": count.total(),
            "right": count[True],
            "accuracy": proportion(count[True], count.total()).as_dict(),
        }
        for annotator, count in sorted(counts.items())
    }


def encounters(task: Task) -> Counter[tuple[int, str]]:
    """Return how many honeypots each annotator has judged, skipped or returned, by annotator key and language.

    After that, an annotator gets the honeypot again only if the unit of work that it replaced is still pending.
    """
    judged = Judgment.objects.binding().filter(unit__task=task, unit__honeypot=True).order_by()
    returned = Lease.objects.filter(unit__task=task, instead_of__isnull=False, outcome__in=Lease.RETURNED).order_by()
    columns = ("annotator", "unit__language", "unit")
    rows = judged.values_list(*columns).union(returned.values_list(*columns))  # without duplicates
    return Counter((annotator, language) for annotator, language, _ in rows)


def _pools(task: Task) -> Iterator[tuple[str, int, int, int]]:
    """Yield the language, the number of honeypots, the number of queued units of work, and the size of a block.

    Yield nothing if the task has no honeypots.
    """
    pool = by_language(task.units.filter(honeypot=True))
    work = by_language(task.units.work().queued())
    if task.gold_share:
        yield from ((language, pool[language], units, block(task)) for language, units in sorted(work.items()))


def too_few(task: Task) -> dict[str, tuple[int, int]]:
    """Return the languages that would run out of honeypots before an annotator has done all the work.

    The value for each language is (number of honeypots, number of units after which no honeypot is left).
    """
    # Each block has one honeypot. After the last honeypot, we no longer measure an annotator's accuracy.
    return {code: (pool, pool * size) for code, pool, units, size in _pools(task) if pool * (size - 1) < units}


def out_of_reach(task: Task) -> dict[str, int]:
    """Return the languages whose annotators get too few honeypots for the pause rule to apply.

    The value for each language is the number of honeypots that an annotator gets by doing all the work.
    """
    reachable = {code: min(pool, units // (size - 1)) for code, pool, units, size in _pools(task)}
    return {code: number for code, number in reachable.items() if task.pause_below and number < pause_rule.LEAST}


def rule(task: Task) -> Rule:
    return Rule(task.pause_below, pause_rule.CONFIDENCE, pause_rule.LEAST)
