"""Gold answers in the queue (honeypots): when an annotator is given one, and what the answers to them say.

Of each block of ten units, where the task's share is a tenth, one has a known answer, at a place drawn by lot for the
annotator. It is asked for, shown and counted like the others; only its stage never changes, so that everybody can be
asked for it. Who fails too many is paused by annotate/crowd/pausing.py.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import count

from django.db.models import Count, F, Q, QuerySet
from django.utils import timezone

from annotate.core import lots
from annotate.core.estimation import proportion
from annotate.models import Annotator, Judgment, Lease, Task, Unit
from annotate.routing import binding


def due(annotator: Annotator, task: Task, units: QuerySet[Unit]) -> Unit | None:
    """The honeypot that the annotator is to be given instead of the next unit, locked; None where it is not its turn.

    units: those that they may be given. One that somebody else has locked this moment is left out: it comes later.
    """
    if not task.gold_share:
        return None
    judged = _judged(annotator, task)
    if _scheduled(_places(annotator, task), judged.total() + 1, _block(task)) <= judged[True]:
        return None
    pots = {unit.item_id: unit.pk for unit in units.filter(honeypot=True)}
    order = lots.drawn(map(str, pots), len(pots), seed=_seed(task), purpose=f"honeypots of {annotator.pk}")
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
    if not task.gold_share:
        return int(on_screen is not None and on_screen.honeypot)
    pool = Counter(dict(units.filter(honeypot=True).order_by().values_list("language").annotate(Count("pk"))))
    judged, is_pot = _judged(annotator, task), _places(annotator, task)
    place = judged.total()
    late = _scheduled(is_pot, place, _block(task)) - judged[True]
    if on_screen is None:
        return before(_languages(work), pool, place=place, late=late, is_pot=is_pot)
    # It comes first, whatever the schedule says by now.
    pot = on_screen.honeypot
    late += is_pot(place) - pot
    pool[on_screen.language] -= pot
    work = work.exclude(pk=on_screen.pk)
    return pot + before(_languages(work), pool, place=place + 1, late=late, is_pot=is_pot)


def before(work: Iterable[str], pool: Counter[str], *, place: int, late: int, is_pot: Callable[[int], bool]) -> int:
    """How many honeypots come before the last of these units of work, of which the languages are given, in order.

    pool: how many there are in each language; one comes only where a unit of its language would be next. place: how
    many units the annotator has judged; late: how many honeypots among them are missing, or too many if negative.
    """
    coming, left = 0, +pool
    for language in work:
        if not left.total():
            break
        late += is_pot(place)
        while late > 0 and left[language]:
            coming, left[language], place, late = coming + 1, left[language] - 1, place + 1, late - 1
            late += is_pot(place)
        place += 1
    return coming


def _languages(work: QuerySet[Unit]) -> Iterator[str]:
    """The languages of units in their order, by pieces, since those that follow the last honeypot do not matter."""
    languages, size = work.order_by("position").values_list("language", flat=True), 1000
    for start in count(0, size):
        piece = list(languages[start : start + size])
        yield from piece
        if len(piece) < size:
            return


def _judged(annotator: Annotator, task: Task) -> Counter[bool]:
    """How many honeypots (True) and others the annotator has judged in the task and not taken back."""
    own = Judgment.objects.filter(binding(), annotator=annotator, unit__task=task, lease__isnull=False).order_by()
    return Counter(dict(own.values_list("unit__honeypot").annotate(Count("pk"))))


def _seed(task: Task) -> str:
    return f"{task.draw.seed}:{task.name}"


def _block(task: Task) -> int:
    return max(2, round(1 / task.gold_share))


def _places(annotator: Annotator, task: Task) -> Callable[[int], bool]:
    """Whether the unit at a place, 0 for the first, has a known answer."""
    seed, size = _seed(task), _block(task)

    @cache
    def place_in(block: int) -> int:
        return int(lots.lot(seed, f"honeypot of {annotator.pk}", str(block)), 16) % size

    return lambda place: place_in(place // size) == place % size


def _scheduled(is_pot: Callable[[int], bool], places: int, size: int) -> int:
    """How many of the first units have a known answer: one in each whole block, and perhaps in the one begun."""
    whole, rest = divmod(places, size)
    return whole + any(is_pot(place) for place in range(places - rest, places))


def answers(task: Task) -> QuerySet[Judgment]:
    """The answers to honeypots that stand, each with `right`."""
    live = Judgment.objects.filter(unit__task=task, unit__honeypot=True, kind=Judgment.ANSWER)
    return live.filter(binding()).annotate(right=Q(label=F("unit__gold_answer")))


def report(task: Task) -> dict:
    """What annotators answered to the honeypots, in JSON's terms.

    share: of what each is given; pool: how many there are, by language. annotators: one row each, by id: asked, right,
    accuracy with its 95% interval. honeypots: one row each: item, language, asked, right; those that everybody fails
    may be wrong themselves.
    """
    right = Count("pk", filter=Q(label=F("unit__gold_answer")))
    by_person = answers(task).order_by("annotator").values("annotator").annotate(asked=Count("pk"), right=right)
    pots = task.units.filter(honeypot=True).order_by("language", "position")
    by_pot = {
        row["unit"]: row
        for row in answers(task).order_by("unit").values("unit").annotate(asked=Count("pk"), right=right)
    }
    return {
        "share": task.gold_share,
        "pool": dict(pots.order_by("language").values_list("language").annotate(Count("pk"))),
        "annotators": [{**row, "accuracy": proportion(row["right"], row["asked"]).as_dict()} for row in by_person],
        "honeypots": [
            {
                "item": unit.item.key,
                "language": unit.language,
                "asked": by_pot.get(unit.pk, {}).get("asked", 0),
                "right": by_pot.get(unit.pk, {}).get("right", 0),
            }
            for unit in pots.select_related("item")
        ],
    }
