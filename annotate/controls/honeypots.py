"""Gold answers in the queue (honeypots): when an annotator gets one, and how annotators answer them.

If the task's share is 10%, one unit in each block of ten in a language is a honeypot, at a place drawn for the
annotator. It is handed out, shown and counted like other units. Its stage never changes, so that all annotators can be
asked. Each language has its own blocks: when its honeypots are used up, those of other languages do not replace them.
An annotator who fails too many is paused.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from annotate.core import pause_rule
from annotate.core.draws.committed_draws import gold_order, gold_places, scheduled
from annotate.core.estimation.proportions import proportion
from annotate.core.pause_rule import Rule
from annotate.models import Judgment, Lease, Pause, Task, Unit
from corpora.database.statements import prepared

_EVER = datetime(1, 1, 1, tzinfo=UTC)


class Turn(NamedTuple):
    """State of the draw when an annotator gets a unit in a language. It is stored with the lease, for verification.

    What annotators do with a unit does not change the state. Otherwise, the unit that follows a returned one would show
    whether that was a honeypot.

    given: number of units that the draw has given the annotator there.
    known: number of honeypots among them.
    size: number of units per honeypot.
    """

    given: int
    known: int
    size: int


def turn_in(permit, language: str) -> Turn:
    """Return the state of the draw for an annotator and a language.

    permit: see work/permit.py.
    """
    return _after(permit.task, next(iter(_last_by_lot(permit.annotator.pk, permit.task.pk, language)), None))


@prepared
def _last_by_lot(annotator, task, queue) -> QuerySet[Lease]:
    last = _by_lot(annotator).filter(unit__task=task, queue=queue).order_by("-pk")
    return last.values_list("turn", "unit__honeypot", "in_place")[:1]


def turns(permits: Sequence) -> Callable[[Task, str], Turn]:
    """Read the states for all tasks and languages of one person, and return a function that looks them up."""
    given = _by_lot(permits[0].annotator).filter(unit__task__in=[permit.task.pk for permit in permits])
    last = given.order_by().values("unit__task", "queue").annotate(last=Max("pk")).values("last")
    rows = Lease.objects.filter(pk__in=last)
    rows = rows.values_list("unit__task", "queue", "turn", "unit__honeypot", "in_place")
    found = {(task, queue): row for task, queue, *row in rows}
    return lambda task, language: _after(task, found.get((task.pk, language)))


def _by_lot(annotator: Any) -> QuerySet[Lease]:
    return Lease.objects.filter(annotator=annotator, turn__isnull=False)


def _after(task: Task, last: Sequence | None) -> Turn:
    """Return the state after the last draw.

    last: state at the last draw, whether its unit was a honeypot, and whether this replaced a unit of work, in which
        case the draw had selected work.
    """
    (given, known, _), was_pot, in_place = last or ((-1, 0, 0), False, False)
    return Turn(given + 1, known + (was_pot and not in_place), block(task))


def is_due(permit, language: str, turn: Turn) -> bool:
    """Return whether the annotator gets a honeypot instead of the next unit, which is in this language."""
    return scheduled(_places(permit, language, turn.size), turn.given + 1, turn.size) > turn.known


def in_order(permit, pots: Iterable[tuple[int, str]]) -> list[int]:
    """Return the keys of honeypots in the order in which the annotator gets them.

    pots: pairs of a unit's key and the id of its item.
    """
    named = {key: unit for unit, key in pots}
    return [named[key] for key in gold_order(permit.task.lots, permit.annotator.pseudonym, named)]


def to_come(turn: Callable[[Task, str], Turn], permit, work: Counter[str], pool: Counter[str]) -> int:
    """Return the number of honeypots that an annotator gets before the last unit of work.

    turn: function that returns the state of the draw for a task and language.
    work: number of units of work that the draw has not given yet, by language.
    pool: number of honeypots that the annotator can still get, by language.
    """
    coming = 0
    if not permit.task.gold_share:
        return coming
    for language, count in work.items():
        given, known, size = turn(permit.task, language)
        is_pot = _places(permit, language, size)
        late = scheduled(is_pot, given, size) - known
        coming += before(count, pool[language], place=given, late=late, is_pot=is_pot)
    return coming


def before(work: int, pool: int, *, place: int, late: int, is_pot: Callable[[int], bool]) -> int:
    """Return the number of honeypots of a language that come before the last unit of work.

    work: number of units of work.
    pool: number of honeypots left.
    place: number of units that the draw has given.
    late: number of honeypots that are missing among them; negative if there are too many.
    is_pot: function that returns whether a place holds a honeypot.
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
    """Return the number of units per honeypot, rounded to a whole number. The task's share must not be 0."""
    return max(2, round(1 / task.gold_share))


def _places(permit, language: str, size: int) -> Callable[[int], bool]:
    """Return a function that returns whether a place among the units of a language, from 0, holds a honeypot."""
    return gold_places(permit.task.lots, permit.annotator.pseudonym, language, size)


def is_first() -> Q:
    """Return a filter for each person's first answer to a honeypot.

    It counts even if the person withdrew it. Otherwise, people who see the outcome of an answer could correct it.
    """
    before = Judgment.objects.answers().filter(
        unit=OuterRef("unit"), annotator=OuterRef("annotator"), pk__lt=OuterRef("pk")
    )
    return Q(unit__honeypot=True, kind=Judgment.ANSWER) & ~Exists(before)


def score(permit) -> tuple[int, int]:
    """Return how many honeypot answers were right, and how many there are, since a person's last pause was lifted.

    Only first answers count, even if they were withdrawn, so that nobody can undo a mistake.
    """
    agrees, known = permit.task.kind.rules.agrees, _known(permit.annotator.pk, permit.task.pk)
    return sum(agrees(said, right) for said, right in known), len(known)


@prepared
def _known(annotator, task) -> QuerySet[Judgment]:
    lifted = Pause.objects.filter(annotator=annotator, task=task, lifted_at__isnull=False).order_by("-pk")
    since = Coalesce(Subquery(lifted.values("lifted_at")[:1]), Value(_EVER))
    own = Judgment.objects.filter(is_first(), annotator=annotator, unit__task=task, answered_at__gt=since)
    return own.filter(lease__isnull=False).order_by().values_list("label", "unit__known_answer")


def answers(task: Task) -> QuerySet[Judgment]:
    """Return the first answers to honeypots, which are the ones that count."""
    return Judgment.objects.filter(is_first(), unit__in=task.units.hidden().order_by())


def is_right(judgment: Judgment) -> bool:
    """Return whether an answer to a honeypot is right. The caller has loaded its unit and task."""
    return judgment.unit.task.kind.rules.agrees(judgment.label, judgment.unit.known_answer)


def by_annotator(task: Task) -> dict[int, dict]:
    """Return the results on honeypots by annotator id: asked, right, and accuracy with its 95% interval."""
    agrees = task.kind.rules.agrees
    counts: dict[int, Counter[bool]] = defaultdict(Counter)
    rows = answers(task).order_by().values_list("annotator", "label", "unit__known_answer").annotate(Count("pk"))
    for annotator, said, known, number in rows:
        counts[annotator][agrees(said, known)] += number
    return {
        annotator: {
            "asked": count.total(),
            "right": count[True],
            "accuracy": proportion(count[True], count.total()).as_dict(),
        }
        for annotator, count in sorted(counts.items())
    }


def given(task: Task) -> Counter[tuple[int, str]]:
    """Count the honeypots that each annotator has judged, skipped or returned, by annotator and language.

    They are not given to the annotator again, unless the work that they replaced is still waiting.
    """
    judged = Judgment.objects.binding().filter(unit__task=task, unit__honeypot=True).order_by()
    returned = Lease.objects.filter(unit__task=task, instead_of__isnull=False, outcome__in=Lease.RETURNED).order_by()
    columns = ("annotator", "unit__language", "unit")
    rows = judged.values_list(*columns).union(returned.values_list(*columns))  # without duplicates
    return Counter((annotator, language) for annotator, language, _ in rows)


def _pools(task: Task) -> Iterator[tuple[str, int, int, int]]:
    """Yield the honeypots, queued units of work and block size of each language; nothing without a gold share."""
    pool = by_language(task.units.filter(honeypot=True))
    work = by_language(task.units.work().queued())
    if task.gold_share:
        yield from ((language, pool[language], units, block(task)) for language, units in sorted(work.items()))


def too_few(task: Task) -> dict[str, tuple[int, int]]:
    """Return the languages whose honeypots run out before a person has done all the work.

    The values are the number of honeypots and the number of units after which they run out.
    """
    # Each block has one honeypot. After the last one, a person works without monitoring.
    return {code: (pool, pool * size) for code, pool, units, size in _pools(task) if pool * (size - 1) < units}


def out_of_reach(task: Task) -> dict[str, int]:
    """Return the languages in which nobody gets enough honeypots for the pause rule.

    The values are the number of honeypots that a person gets who does all the work.
    """
    met = {code: min(pool, units // (size - 1)) for code, pool, units, size in _pools(task)}
    return {code: number for code, number in met.items() if task.pause_below and number < pause_rule.LEAST}


def rule(task: Task) -> Rule:
    return Rule(task.pause_below, pause_rule.CONFIDENCE, pause_rule.LEAST)
