"""Gold answers that stand for a unit of work: how long each of them waits there, and for whom.

The lot gives a gold answer to one person, before the unit for which it stands. Once they give it back or let it run
out, it takes the place of that unit for everybody else: the next person who comes there is given the gold answer and is
not asked about the unit. It waits there as long as the unit itself would, had its answers been given to the unit.
"""

from collections.abc import Iterable

from annotate.models import Lease, Unit


def is_over(unit: Unit, gold: int, leases: Iterable[Lease]) -> bool:
    """Whether a gold answer has as many answers or skips as the unit for which it stands asks for.

    leases: those of the unit and of all gold answers that stood for it.
    """
    said = [each for each in leases if each.unit_id in (unit.pk, gold)]
    skips = sum(each.outcome == "skipped" and each.round == unit.round for each in said)
    return skips >= unit.task.skip_limit or len(_who_answered(said)) >= unit.redundancy


def answered_instead(unit: Unit, gold: int, leases: Iterable[Lease]) -> int:
    """How many people have answered the gold answer and not the unit."""
    listed = list(leases)
    of_unit = [each for each in listed if each.unit_id == unit.pk]
    return len(_who_answered(each for each in listed if each.unit_id == gold) - _who_answered(of_unit))


def _who_answered(leases: Iterable[Lease]) -> set[int]:
    return {each.annotator_id for each in leases if each.outcome == "answered"}
