"""What one person has done in tasks, counted in one statement: for the rule that pauses, and for what they are told of
their day.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from django.db.models import BooleanField, Case, Count, F, OuterRef, Q, Subquery, TextField, Value, When
from django.db.models.functions import Coalesce

from annotate.models import Judgment, Pause
from annotate.quality import honeypots
from annotate.work.permit import Permit, midnight

_EVER = datetime(1, 1, 1, tzinfo=UTC)


@dataclass
class Tally:
    """known: (what they said at first to a honeypot, what is right), since their last pause was lifted -> how often;
    what they took back later counts too, so that nobody can undo a slip.
    today: answers and skips that stand, by kind, since midnight in the installation's time zone.
    """

    known: Counter[tuple[str, str]] = field(default_factory=Counter)
    today: Counter[str] = field(default_factory=Counter)


def tally_of(permit: Permit) -> Tally:
    (tally,) = tallies([permit])
    return tally


def tallies(permits: Sequence[Permit]) -> list[Tally]:
    """What one person has done in the tasks of their permits, in one statement."""
    found = {permit.task.pk: Tally() for permit in permits}
    if not permits:
        return []
    today = Q(answered_at__gte=midnight(), voided_at=None)
    with_gold = [permit.task.pk for permit in permits if permit.task.gold_share]
    known = honeypots.is_first() & Q(unit__task__in=with_gold)
    if with_gold:
        lifted = Pause.objects.filter(
            annotator=OuterRef("annotator"), task=OuterRef("unit__task"), lifted_at__isnull=False
        )
        known &= Q(answered_at__gt=Coalesce(Subquery(lifted.order_by("-pk").values("lifted_at")[:1]), Value(_EVER)))
    rows = (
        Judgment.objects.filter(annotator=permits[0].annotator, unit__task__in=list(found), lease__isnull=False)
        .filter(known | today)
        .order_by()
        .annotate(of_today=_whether(today), said=_text(known, "label"), right=_text(known, "unit__known_answer"))
        .values_list("unit__task", "kind", "of_today", "said", "right")
        .annotate(Count("pk"))
    )
    for task, kind, of_today, said, right, number in rows:
        tally = found[task]
        tally.today[kind] += number if of_today else 0
        if said:
            tally.known[said, right] += number
    return [found[permit.task.pk] for permit in permits]


def _whether(condition: Q) -> Case:
    return Case(When(condition, then=Value(True)), default=Value(False), output_field=BooleanField())


def _text(condition: Q, of: str) -> Case:
    return Case(When(condition, then=F(of)), default=Value(""), output_field=TextField())
