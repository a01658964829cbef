"""Gold answers in the queue (honeypots): when an annotator is given one, and what the answers to them say.

If the task's share is a tenth, one unit in each block of ten in a language has a known answer, at a place drawn by lot
for the annotator. It is handed out, shown and counted like the others; only its stage never changes, so that everybody
can be asked about it. Each language has separate blocks: when its honeypots are used up, other languages do not make
up for them. An annotator who fails too many is paused (pauses.py).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache

from django.db.models import Count, QuerySet

from annotate.core import lottery
from annotate.core.estimation import proportion
from annotate.models import Annotator, Judgment, Task, Unit


def is_due(permit, language: str, tally) -> bool:
    """Whether the annotator should be given a honeypot instead of the next unit, which is in this language.

    permit: of work/permit.py; tally: of work/tally.py.
    """
    judged, size = tally.judged[language], block(permit.task)
    places = _places(permit.annotator, language, _seed(permit.task), size)
    return _scheduled(places, judged.total() + 1, size) > judged[True]


def in_order(permit, pots: dict[int, int]) -> list[int]:
    """Units of honeypots in the order in which the annotator is given them. pots: item -> unit."""
    seed, purpose = _seed(permit.task), f"honeypots of {permit.annotator.pk}"
    return [pots[int(item)] for item in lottery.drawn(map(str, pots), len(pots), seed=seed, purpose=purpose)]


def to_come(permit, tally, work: Counter[str], pool: Counter[str], on_screen: Unit | None) -> int:
    """How many honeypots come before the last unit of work is given.

    work: language -> units that wait for the annotator; pool: honeypots that they can still be given; the unit on the
    screen is among them. So the number that waits for an annotator goes down by one with every answer.
    """
    coming = int(on_screen is not None and on_screen.honeypot)
    if not permit.task.gold_share:
        return coming
    work, pool = Counter(work), Counter(pool)
    if on_screen:
        of = pool if on_screen.honeypot else work
        of[on_screen.language] = max(0, of[on_screen.language] - 1)
    seed, size = _seed(permit.task), block(permit.task)
    for language, count in work.items():
        own, is_pot = tally.judged[language], _places(permit.annotator, language, seed, size)
        place = own.total()
        late = _scheduled(is_pot, place, size) - own[True]
        if on_screen and on_screen.language == language:
            # The open unit comes first, whatever the schedule says by now.
            late += is_pot(place) - on_screen.honeypot
            place += 1
        coming += before(count, pool[language], place=place, late=late, is_pot=is_pot)
    return coming


def before(work: int, pool: int, *, place: int, late: int, is_pot: Callable[[int], bool]) -> int:
    """How many honeypots of a language come before the last of so many units of work in it.

    pool: how many there are. place: how many units in it the annotator has judged; late: how many honeypots among them
    are missing, or too many if negative.
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


def _seed(task: Task) -> str:
    return f"{task.seed}:{task.name}"


def block(task: Task) -> int:
    """One unit in how many has a known answer, if the task's share is not 0: the nearest whole number."""
    return max(2, round(1 / task.gold_share))


def _places(annotator: Annotator, language: str, seed: str, size: int) -> Callable[[int], bool]:
    """Whether the unit at a place among those in a language, 0 for the first, has a known answer."""
    purpose = f"honeypot of {annotator.pk} in {language}"

    @cache
    def place_in(number: int) -> int:
        return int(lottery.lot(seed, purpose, str(number)), 16) % size

    return lambda place: place_in(place // size) == place % size


def _scheduled(is_pot: Callable[[int], bool], places: int, size: int) -> int:
    """How many of the first units have a known answer: one in each whole block, and perhaps in the one begun."""
    whole, rest = divmod(places, size)
    return whole + any(is_pot(place) for place in range(places - rest, places))


def answers(task: Task) -> QuerySet[Judgment]:
    """The answers to honeypots that stand."""
    return Judgment.objects.binding().answers().filter(unit__task=task, unit__honeypot=True)


def is_right(judgment: Judgment) -> bool:
    """Whether an answer to a honeypot is right; the caller has read its unit and task."""
    return judgment.unit.task.kind.agrees(judgment.label, judgment.unit.known_answer)


def by_annotator(task: Task, of: Annotator | None = None) -> dict[int, dict]:
    """How annotators answered the honeypots: id -> asked, right, and accuracy with its 95% interval.

    of: only this annotator.
    """
    agrees = task.kind.agrees
    counts: dict[int, Counter[bool]] = defaultdict(Counter)
    given = answers(task) if of is None else answers(task).filter(annotator=of)
    rows = given.order_by().values_list("annotator", "label", "unit__known_answer").annotate(Count("pk"))
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
    """(Annotator, language) -> how many honeypots they have judged or skipped and will not be given again."""
    own = Judgment.objects.binding().filter(unit__task=task, unit__honeypot=True).order_by()
    rows = own.values_list("annotator", "unit__language").annotate(Count("pk"))
    return Counter({(annotator, language): number for annotator, language, number in rows})


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
    return {code: number for code, number in met.items() if task.pause_below and number < task.pause_least}
