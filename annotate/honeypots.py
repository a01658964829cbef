"""Gold answers in the queue (honeypots): when an annotator is given one, and what the answers to them say.

Of each block of ten units, where the task's share is a tenth, one has a known answer, at a place drawn by lot for the
annotator. It is asked for, shown and counted like the others; only its stage never changes, so that everybody can be
asked for it. Who fails too many is paused by annotate/pausing.py.
"""

from collections import Counter

from django.db.models import Count, F, Q, QuerySet

from annotate.core import lots
from annotate.core.estimation import proportion
from annotate.models import Annotator, Judgment, Task, Unit
from annotate.routing import binding


def due(annotator: Annotator, task: Task, units: QuerySet[Unit]) -> Unit | None:
    """The honeypot that the annotator is to be given instead of the next unit, locked; None where it is not its turn.

    units: those that they may be given. One that somebody else has locked this moment is left out: it comes later.
    """
    if not task.gold_share:
        return None
    judged = _judged(annotator, task)
    if _scheduled(annotator, task, judged.total() + 1) <= judged[True]:
        return None
    pots = {unit.item_id: unit.pk for unit in units.filter(honeypot=True)}
    order = lots.drawn(map(str, pots), len(pots), seed=_seed(task), purpose=f"honeypots of {annotator.pk}")
    for item in order:
        locked = task.units.filter(pk=pots[int(item)]).select_for_update(of=("self",), skip_locked=True)
        if unit := locked.select_related("task", "item").first():
            return unit
    return None


def to_come(annotator: Annotator, task: Task, waiting: int, units: QuerySet[Unit]) -> int:
    """How many honeypots come before so many units of work are done; as many as there are in `units` at most.

    So the number that waits for an annotator goes down by one with every answer.
    """
    if not task.gold_share or not waiting:
        return 0
    judged = _judged(annotator, task)
    place, size = judged.total(), _block(task)
    coming, left = max(0, _scheduled(annotator, task, place) - judged[True]), waiting
    # To the end of the block that has begun, then whole blocks, then part of one.
    while left and place % size:
        place, pot = place + 1, _is_pot(annotator, task, place)
        coming, left = coming + pot, left - (not pot)
    if left:
        whole, rest = divmod(left - 1, size - 1)
        place += whole * size
        coming += whole
        while rest >= 0:
            place, pot = place + 1, _is_pot(annotator, task, place)
            coming, rest = coming + pot, rest - (not pot)
    return min(coming, units.filter(honeypot=True).count())


def _judged(annotator: Annotator, task: Task) -> Counter[bool]:
    """How many honeypots (True) and others the annotator has judged in the task and not taken back."""
    own = Judgment.objects.filter(binding(), annotator=annotator, unit__task=task, lease__isnull=False).order_by()
    return Counter(dict(own.values_list("unit__honeypot").annotate(Count("pk"))))


def _seed(task: Task) -> str:
    return f"{task.draw.seed}:{task.name}"


def _block(task: Task) -> int:
    return max(2, round(1 / task.gold_share))


def _is_pot(annotator: Annotator, task: Task, place: int) -> bool:
    """Whether the unit at a place, 0 for the first, has a known answer."""
    block, at = divmod(place, _block(task))
    return int(lots.lot(_seed(task), f"honeypot of {annotator.pk}", str(block)), 16) % _block(task) == at


def _scheduled(annotator: Annotator, task: Task, places: int) -> int:
    """How many of the first units have a known answer."""
    whole, rest = divmod(places, _block(task))
    return whole + any(_is_pot(annotator, task, places - rest + at) for at in range(rest))


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
