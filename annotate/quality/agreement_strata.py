"""Strata of the units on which the detectors agree. Each stratum is audited separately."""

from collections.abc import Iterable
from functools import reduce
from operator import or_

from django.db.models import Q, QuerySet

from annotate.core import stages
from annotate.models import Task, Unit


def strata(task: Task, units: QuerySet[Unit]) -> set[str]:
    """Return the strata of the automatically labelled units among `units`.

    In most tasks, a stratum is a label. In others, it is a language and a label, as in `de sports`.
    """
    rows = units.exclude(agreed_label="").order_by().values_list(*task.kind.statistics.audit_strata)
    return {" ".join(values) for values in rows.distinct()}


def in_strata(task: Task, names: Iterable[str]) -> Q:
    """Return a filter for the units in these strata. `strata` returns their names."""
    paths = task.kind.statistics.audit_strata
    if len(paths) == 1:
        return Q(**{f"{paths[0]}__in": list(names)})
    filters = (Q(**dict(zip(paths, name.split(" ", len(paths) - 1), strict=True))) for name in names)
    return reduce(or_, filters, Q(pk__in=[]))


def contested_strata(task: Task) -> set[str]:
    """Return the strata that failed their audit. Annotators label all items in such a stratum."""
    return strata(task, task.units.filter(transitions__event="contested"))


def unread(task: Task) -> QuerySet[Unit]:
    """Return the posts labelled only by the detectors, which form the stratum `agreed` of an exported set.

    Such posts were neither selected for an audit nor sent to annotators after a failed audit. However, annotators may
    have labelled another post with the same text.
    """
    alone = Q(stage=stages.AGREED) | Q(copy_of__stage=stages.AGREED) | ~in_strata(task, contested_strata(task))
    return task.units.exclude(agreed_label="").filter(alone, audited=False)
