"""Gold answers in the queue (honeypots): when an annotator is given one, and what the answers to them say.

If the task's share is a tenth, one unit in each block of ten in a language has a known answer, at a place drawn by lot
for the annotator. It is handed out, shown and counted like the others; only its stage never changes, so that everybody
can be asked about it. Each language has separate blocks: when its honeypots are used up, other languages do not make
up for them. An annotator who fails too many is paused.
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
    """Where the lot stands when an annotator is given a unit in a language: how many they were given there by lot, how
    many honeypots among these, and one honeypot in how many units. It is kept with the lease, so that it can be
    checked.

    What they do with a unit changes nothing of it: else what follows on a unit that was given back would tell what that
    was.
    """

    given: int
    known: int
    size: int


def turn_in(permit, language: str) -> Turn:
    """permit: of work/permit.py."""
    return _after(permit.task, next(iter(_last_by_lot(permit.annotator.pk, permit.task.pk, language)), None))


@prepared
def _last_by_lot(annotator, task, queue) -> QuerySet[Lease]:
    last = _by_lot(annotator).filter(unit__task=task, queue=queue).order_by("-pk")
    return last.values_list("turn", "unit__honeypot", "in_place")[:1]


def turns(permits: Sequence) -> Callable[[Task, str], Turn]:
    """The same for all tasks and languages of one person, read at once."""
    given = _by_lot(permits[0].annotator).filter(unit__task__in=[permit.task.pk for permit in permits])
    last = given.order_by().values("unit__task", "queue").annotate(last=Max("pk")).values("last")
    rows = Lease.objects.filter(pk__in=last)
    rows = rows.values_list("unit__task", "queue", "turn", "unit__honeypot", "in_place")
    found = {(task, queue): row for task, queue, *row in rows}
    return lambda task, language: _after(task, found.get((task.pk, language)))


def _by_lot(annotator: Any) -> QuerySet[Lease]:
    return Lease.objects.filter(annotator=annotator, turn__isnull=False)


def _after(task: Task, last: Sequence | None) -> Turn:
    """last: where the lot stood when it decided last, whether that was a honeypot, and whether this took the place of
    work, which is what the lot then decided for.
    """
    (given, known, _), was_pot, in_place = last or ((-1, 0, 0), False, False)
    return Turn(given + 1, known + (was_pot and not in_place), block(task))


def is_due(permit, language: str, turn: Turn) -> bool:
    """Whether the annotator should be given a honeypot instead of the next unit, which is in this language."""
    return scheduled(_places(permit, language, turn.size), turn.given + 1, turn.size) > turn.known


def in_order(permit, pots: Iterable[tuple[int, str]]) -> list[int]:
    """Units of honeypots in the order in which the annotator is given them. pots: unit and the id of its item."""
    named = {key: unit for unit, key in pots}
    return [named[key] for key in gold_order(permit.task.lots, permit.annotator.pseudonym, named)]


def to_come(turn: Callable[[Task, str], Turn], permit, work: Counter[str], pool: Counter[str]) -> int:
    """How many honeypots come before the last unit of work is given.

    turn: of each task and language; work: language -> units of work that the lot has yet to give the annotator; pool:
    language -> honeypots that it can still give them.
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
    """How many honeypots of a language come before the last of so many units of work in it.

    pool: how many there are. place: how many units in it the lot has given; late: how many honeypots among them are
    missing, or too many if negative.
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
    """One unit in how many has a known answer, if the task's share is not 0: the nearest whole number."""
    return max(2, round(1 / task.gold_share))


def _places(permit, language: str, size: int) -> Callable[[int], bool]:
    """Whether the unit at a place among those in a language, 0 for the first, has a known answer."""
    return gold_places(permit.task.lots, permit.annotator.pseudonym, language, size)


def is_first() -> Q:
    """Of judgments: an answer to a honeypot that is the first of its person. It counts whether or not they took it back
    since: whoever sees what came of an answer could else mend it.
    """
    before = Judgment.objects.answers().filter(
        unit=OuterRef("unit"), annotator=OuterRef("annotator"), pk__lt=OuterRef("pk")
    )
    return Q(unit__honeypot=True, kind=Judgment.ANSWER) & ~Exists(before)


def score(permit) -> tuple[int, int]:
    """How many honeypots a person answered rightly at first, and how many in all, since their last pause was lifted.
    What they took back later counts too, so that nobody can undo a slip.
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
    """The first answers to honeypots, which are those that count."""
    return Judgment.objects.filter(is_first(), unit__in=task.units.hidden().order_by())


def is_right(judgment: Judgment) -> bool:
    """Whether an answer to a honeypot is right; the caller has read its unit and task."""
    return judgment.unit.task.kind.rules.agrees(judgment.label, judgment.unit.known_answer)


def by_annotator(task: Task) -> dict[int, dict]:
    """How annotators answered the honeypots: id -> asked, right, and accuracy with its 95% interval."""
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
    """(Annotator, language) -> how many honeypots they have judged, skipped or given back, so that they are not given
    them again, or only if the work for which they stood waits still.
    """
    judged = Judgment.objects.binding().filter(unit__task=task, unit__honeypot=True).order_by()
    returned = Lease.objects.filter(unit__task=task, instead_of__isnull=False, outcome__in=Lease.RETURNED).order_by()
    columns = ("annotator", "unit__language", "unit")
    rows = judged.values_list(*columns).union(returned.values_list(*columns))  # each once
    return Counter((annotator, language) for annotator, language, _ in rows)


def _pools(task: Task) -> Iterator[tuple[str, int, int, int]]:
    """Each language with its honeypots, its work and the size of a block; nothing if the task hides no honeypots."""
    pool = by_language(task.units.filter(honeypot=True))
    work = by_language(task.units.work().queued())
    if task.gold_share:
        yield from ((language, pool[language], units, block(task)) for language, units in sorted(work.items()))


def too_few(task: Task) -> dict[str, tuple[int, int]]:
    """Languages whose honeypots run out for a person who does all their work: (honeypots, units after which
    they do).
    """
    # One of a block's units is its honeypot; a person who has met the last one works on unwatched.
    return {code: (pool, pool * size) for code, pool, units, size in _pools(task) if pool * (size - 1) < units}


def out_of_reach(task: Task) -> dict[str, int]:
    """Languages in which nobody meets as many honeypots as the pause asks for: how many a person who does all the
    work meets.
    """
    met = {code: min(pool, units // (size - 1)) for code, pool, units, size in _pools(task)}
    return {code: number for code, number in met.items() if task.pause_below and number < pause_rule.LEAST}


def rule(task: Task) -> Rule:
    return Rule(task.pause_below, pause_rule.CONFIDENCE, pause_rule.LEAST)
