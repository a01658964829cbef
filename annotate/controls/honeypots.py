"""Honeypots, which are gold answers hidden in the queue: when annotators get them, and how they answer them.

Suppose that 10% of a person's units are to be honeypots. Then one unit in every ten is a honeypot, and its position
among the ten is drawn at random for each annotator. Units are counted separately in each language, so a language that
has run out of honeypots does not use those of another language. A honeypot looks like any other unit, but its stage
never changes, so that every annotator can get it. Annotators who answer too many honeypots wrongly are paused.
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


class Turn(NamedTuple):
    """The state of an annotator's draw of honeypots in a language, before the annotator gets a unit.

    It is stored with the lease so that the draw can be verified. The state does not depend on what annotators do with
    their units. Otherwise, an annotator who returns a unit could infer from the next unit whether the returned one was
    a honeypot.

    given: number of units in the language that the draw has assigned to the annotator.
    known: number of honeypots among these units.
    size: number of units in a block, one of which is a honeypot.
    """

    given: int
    known: int
    size: int


def turn_in(permit: Permit, language: str) -> Turn:
    """Return the state of the annotator's draw in a language.

    permit: the annotator's permit for the task (work/permit.py).
    """
    return _after(permit.task, next(iter(_last_by_lot(permit.annotator.pk, permit.task.pk, language)), None))


@prepared
def _last_by_lot(annotator: int, task: int, queue: str) -> QuerySet[Lease, Any]:
    last = _by_lot(annotator).filter(unit__task=task, queue=queue).order_by("-pk")
    return last.values_list("turn", "unit__honeypot", "in_place")[:1]


def turns(permits: Sequence[Permit]) -> Callable[[Task, str], Turn]:
    """Read the states of a person's draws in all tasks and languages. Return a function that looks up a state.

    permits: the person's permits, one for each task.
    """
    drawn_leases = _by_lot(permits[0].annotator).filter(unit__task__in=[permit.task.pk for permit in permits])
    last = drawn_leases.order_by().values("unit__task", "queue").annotate(last=Max("pk")).values("last")
    leases = Lease.objects.filter(pk__in=last)
    rows = leases.values_list("unit__task", "queue", "turn", "unit__honeypot", "in_place")
    by_queue = {(task, queue): row for task, queue, *row in rows}
    return lambda task, language: _after(task, by_queue.get((task.pk, language)))


def _by_lot(annotator: Any) -> QuerySet[Lease]:
    return Lease.objects.filter(annotator=annotator, turn__isnull=False)


def _after(task: Task, last: Sequence[Any] | None) -> Turn:
    """Return the state that follows from the last draw.

    last: None if nothing has been drawn yet; otherwise the state before the last draw, whether the unit was a honeypot,
        and whether it was a returned honeypot that replaced a unit of work. Such a honeypot counts as work, because
        the draw had chosen work at this position.
    """
    (place, honeypots, _), was_pot, in_place = last or ((-1, 0, 0), False, False)
    return Turn(place + 1, honeypots + (was_pot and not in_place), block(task))


def is_due(permit: Permit, language: str, turn: Turn) -> bool:
    """Return whether the annotator gets a honeypot instead of the next unit of work in a language."""
    return gold_count(_places(permit, language, turn.size), turn.given + 1, turn.size) > turn.known


def in_order(permit: Permit, pots: Iterable[tuple[int, str]]) -> list[int]:
    """Return the unit keys of honeypots in the order in which the annotator gets them.

    pots: (unit key, item id) pairs.
    """
    units_by_key = {key: unit for unit, key in pots}
    return [units_by_key[key] for key in gold_order(permit.task.lots, permit.annotator.pseudonym, units_by_key)]


def to_come(turn: Callable[[Task, str], Turn], permit: Permit, work: Counter[str], pool: Counter[str]) -> int:
    """Return how many honeypots an annotator will get before they have done all their work in a task.

    turn: function that returns the state of the draw for a task and a language.
    work: number of units of work that the draw has not assigned to the annotator yet, by language.
    pool: number of honeypots that the annotator can still get, by language.
    """
    coming = 0
    if not permit.task.gold_share:
        return coming
    for language, count in work.items():
        place, honeypots, size = turn(permit.task, language)
        is_pot = _places(permit, language, size)
        late = gold_count(is_pot, place, size) - honeypots
        coming += before(count, pool[language], place=place, late=late, is_pot=is_pot)
    return coming


def before(work: int, pool: int, *, place: int, late: int, is_pot: Callable[[int], bool]) -> int:
    """Return how many honeypots in a language come before the last unit of work.

    work: number of units of work that remain.
    pool: number of honeypots that remain.
    place: number of units that the draw has already assigned to the annotator.
    late: number of honeypots that are missing among these units; negative if there are too many.
    is_pot: function that returns whether the draw puts a honeypot at a position.
    """
    coming = 0
    while work and coming < pool:
        late += is_pot(place)
        place += 1
        if late > 0:
            coming, late = coming + 1, late - 1
        else:
            work -= 1
    return coming


def by_language(units: QuerySet[Unit]) -> Counter[str]:
    return Counter(dict(units.order_by().values_list("language").annotate(Count("pk"))))


def block(task: Task) -> int:
    """Return the number of units in a block, one of which is a honeypot. The task's gold share must not be 0."""
    return max(2, round(1 / task.gold_share))


def _places(permit: Permit, language: str, size: int) -> Callable[[int], bool]:
    """Return a function that returns whether the annotator gets a honeypot at a position, counted from 0."""
    return gold_places(permit.task.lots, permit.annotator.pseudonym, language, size)


def is_first() -> Q:
    """Return a filter for judgments that are a person's first answer to a honeypot.

    The first answer counts even if the person has withdrawn it. Otherwise, a person who notices a wrong answer could
    correct it.
    """
    earlier = Judgment.objects.answers().filter(
        unit=OuterRef("unit"), annotator=OuterRef("annotator"), pk__lt=OuterRef("pk")
    )
    return Q(Q(unit__honeypot=True, kind=Judgment.ANSWER), ~Exists(earlier))


def score(permit: Permit) -> tuple[int, int]:
    """Return how many honeypots a person has answered correctly, and how many they have answered in total.

    Only answers given after the person's last pause was lifted count. If a person has answered the same honeypot
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
    """Return each person's first answer to each honeypot. Only these answers count."""
    return Judgment.objects.filter(is_first(), unit__in=task.units.hidden().order_by())


def is_right(judgment: Judgment) -> bool:
    """Return whether an answer to a honeypot is right. The caller has loaded the answer's unit and task."""
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

    The annotator does not get a honeypot again unless the unit of work that it replaced is still waiting.
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
    """Return the languages in which a person could get all honeypots before they have done all the work.

    For each language, return the number of honeypots, and the number of units after which none is left.
    """
    # Each block has one honeypot. After the last honeypot, nothing monitors the person's work any more.
    return {code: (pool, pool * size) for code, pool, units, size in _pools(task) if pool * (size - 1) < units}


def out_of_reach(task: Task) -> dict[str, int]:
    """Return the languages in which nobody can get enough honeypots for the pause rule to apply.

    For each language, return the number of honeypots that a person who does all the work gets.
    """
    reachable = {code: min(pool, units // (size - 1)) for code, pool, units, size in _pools(task)}
    return {code: number for code, number in reachable.items() if task.pause_below and number < pause_rule.LEAST}


def rule(task: Task) -> Rule:
    return Rule(task.pause_below, pause_rule.CONFIDENCE, pause_rule.LEAST)
