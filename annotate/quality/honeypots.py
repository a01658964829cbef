"""Gold answers in the queue (honeypots): when an annotator is given one, and what the answers to them say.

Of each block of ten units in a language, where the task's share is a tenth, one has a known answer, at a place drawn by
lot for the annotator. It is asked for, shown and counted like the others; only its stage never changes, so that
everybody can be asked for it. Each language has blocks of its own: where its honeypots are used up, none is made up for
in another. Who fails too many is paused by annotate/quality/pauses.py.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache

from django.db.models import Count, F, Q, QuerySet
from django.utils import timezone

from annotate.core import lottery, stages
from annotate.core.estimation import proportion
from annotate.models import Annotator, Judgment, Lease, Task, Unit
from annotate.work.routing import binding


def due(annotator: Annotator, task: Task, language: str, units: QuerySet[Unit]) -> Unit | None:
    """The honeypot that the annotator is to be given instead of the next unit, which is in this language, locked; None
    where it is not its turn.

    units: those that they may be given. One that somebody else has locked this moment is left out: it comes later.
    """
    if not task.gold_share:
        return None
    judged = _judged(annotator, task)[language]
    if (
        _scheduled(_places(annotator, language, _seed(task), block(task)), judged.total() + 1, block(task))
        <= judged[True]
    ):
        return None
    pots = {unit.item_id: unit.pk for unit in units.filter(honeypot=True, language=language)}
    order = lottery.drawn(map(str, pots), len(pots), seed=_seed(task), purpose=f"honeypots of {annotator.pk}")
    for item in order:
        locked = task.units.filter(pk=pots[int(item)]).select_for_update(of=("self",), skip_locked=True)
        if unit := locked.select_related("task", "item").first():
            return unit
    return None


def to_come(annotator: Annotator, task: Task, work: QuerySet[Unit], units: QuerySet[Unit]) -> int:
    """How many honeypots come before the last of the units of work has been given. units: as for `due`.

    So the number that waits for an annotator goes down by one with every answer.
    """
    held = Lease.objects.filter(annotator=annotator, unit__task=task, closed_at=None, expires_at__gt=timezone.now())
    on_screen = Unit.objects.filter(leases__in=held).first()
    coming = int(on_screen is not None and on_screen.honeypot)
    if not task.gold_share:
        return coming
    if on_screen:
        work = work.exclude(pk=on_screen.pk)
    pool = by_language(units.filter(honeypot=True))
    judged, seed, size = _judged(annotator, task), _seed(task), block(task)
    for language, count in by_language(work).items():
        own, is_pot = judged[language], _places(annotator, language, seed, size)
        place, left = own.total(), pool[language]
        late = _scheduled(is_pot, place, size) - own[True]
        if on_screen and on_screen.language == language:
            # It comes first, whatever the schedule says by now.
            late += is_pot(place) - on_screen.honeypot
            left -= on_screen.honeypot
            place += 1
        coming += before(count, left, place=place, late=late, is_pot=is_pot)
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


def _judged(annotator: Annotator, task: Task) -> dict[str, Counter[bool]]:
    """Language -> how many honeypots (True) and others the annotator has judged in the task and not taken back."""
    own = Judgment.objects.filter(binding(), annotator=annotator, unit__task=task, lease__isnull=False).order_by()
    found: dict[str, Counter[bool]] = defaultdict(Counter)
    for language, honeypot, number in own.values_list("unit__language", "unit__honeypot").annotate(Count("pk")):
        found[language][honeypot] = number
    return found


def _seed(task: Task) -> str:
    return f"{task.draw.seed}:{task.name}"


def block(task: Task) -> int:
    """Of how many units one has a known answer, where the task's share is not 0: the whole number next to it."""
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
    """The answers to honeypots that stand, each with `right`."""
    live = Judgment.objects.filter(unit__task=task, unit__honeypot=True, kind=Judgment.ANSWER)
    return live.filter(binding()).annotate(right=Q(label=F("unit__gold_answer")))


def by_annotator(task: Task) -> dict[int, dict]:
    """What annotators answered to the honeypots: id -> asked, right, and accuracy with its 95% interval."""
    right = Count("pk", filter=Q(label=F("unit__gold_answer")))
    rows = answers(task).order_by("annotator").values_list("annotator").annotate(asked=Count("pk"), right=right)
    return {
        annotator: {"asked": asked, "right": right, "accuracy": proportion(right, asked).as_dict()}
        for annotator, asked, right in rows
    }


def given(task: Task) -> Counter[tuple[int, str]]:
    """(Annotator, language) -> how many honeypots they have judged or skipped, and are not asked for again."""
    own = Judgment.objects.filter(binding(), unit__task=task, unit__honeypot=True).order_by()
    rows = own.values_list("annotator", "unit__language").annotate(Count("pk"))
    return Counter({(annotator, language): number for annotator, language, number in rows})


def _pools(task: Task) -> Iterator[tuple[str, int, int, int]]:
    """Each language with its honeypots, its work and the size of a block; none where there are to be no honeypots."""
    pool = by_language(task.units.filter(honeypot=True))
    work = by_language(task.units.filter(honeypot=False, stage=stages.QUEUED))
    if task.gold_share:
        yield from ((language, pool[language], units, block(task)) for language, units in sorted(work.items()))


def too_few(task: Task) -> dict[str, tuple[int, int]]:
    """Languages whose honeypots run out for who does all the work in them: (honeypots, units after which)."""
    # A block has one honeypot less than it has units, and who has met the last one works on unwatched.
    return {code: (pool, pool * size) for code, pool, units, size in _pools(task) if pool * (size - 1) < units}


def out_of_reach(task: Task) -> dict[str, int]:
    """Languages in which nobody meets as many honeypots as the pause asks for: how many who does all the work meets."""
    met = {code: min(pool, units // (size - 1)) for code, pool, units, size in _pools(task)}
    return {code: number for code, number in met.items() if task.pause_below and number < task.pause_least}
