"""Which concepts are suggested to whom.

What several systems suggest is joined by summed 1/rank. By lot, for a share of people and documents nothing is shown
(BLIND_SHARE), so that what people choose with suggestions can be held against what they choose without.
"""

from annotate.core.draws.committed_draws import BLIND
from annotate.core.draws.hash_order import hit
from annotate.kinds.concept_kind import BLIND_SHARE
from annotate.models import Annotator, Suggestion, Task, Unit
from corpora.predictions.rankings import joined

SHOWN = 10  # concepts


def suggested(unit: Unit) -> list[str]:
    """The ids of what is suggested for a unit, the best first, whoever is shown it."""
    lists = Suggestion.objects.filter(unit=unit).order_by("system").values_list("ranked", flat=True)
    return joined(lists)[:SHOWN]


def all_suggested(task: Task) -> dict[int, list[str]]:
    """The same for each unit of a task that has suggestions, by its key."""
    lists: dict[int, list[list[str]]] = {}
    rows = Suggestion.objects.filter(unit__task=task).order_by("unit", "system").values_list("unit", "ranked")
    for unit, ranked in rows:
        lists.setdefault(unit, []).append(ranked)
    return {unit: joined(of)[:SHOWN] for unit, of in lists.items()}


def shown_to(annotator: Annotator, unit: Unit) -> list[str]:
    """The same for somebody who answers the unit: nothing by their lot. An adjudicator sees them always."""
    return [] if is_blind(annotator.pseudonym, unit.task, unit.item.key) else suggested(unit)


def is_blind(pseudonym: str, task: Task, key: str) -> bool:
    """By person and document, so that neither of them is blind always, nor differs when it is opened again. key: the
    id of the document.
    """
    return hit(BLIND_SHARE, lots=task.lots, purpose=BLIND, key=f"{pseudonym} {key}")
