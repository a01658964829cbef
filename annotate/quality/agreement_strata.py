"""Strata of the units on which the detectors agree. Each stratum has its own audit."""

from collections.abc import Iterable
from functools import reduce
from operator import or_

from django.db.models import Q, QuerySet

from annotate.core import stages
from annotate.models import Task, Unit


def strata(task: Task, units: QuerySet[Unit]) -> set[str]:
    """Return the strata of automatically labelled units, each as its values separated by spaces.

    In most tasks, a stratum is a label. In others, it is a language and a label, such as `de sports`.
    """
    rows = units.exclude(agreed_label="").order_by().values_list(*task.kind.statistics.audit_strata)
    return {" ".join(values) for values in rows.distinct()}


def in_strata(task: Task, names: Iterable[str]) -> Q:
    """Return a filter for units in strata, which are named as in `strata`."""
    paths = task.kind.statistics.audit_strata
    if len(paths) == 1:
        return Q(**{f"{paths[0]}__in": list(names)})
    filters = (Q(**dict(zip(paths, name.split(" ", len(paths) - 1), strict=True))) for name in names)
    return reduce(or_, filters, Q(pk__in=[]))


def contested_strata(task: Task) -> set[str]:
    """Return the strata that failed their audit. People label all items of such a stratum."""
    return strata(task, task.units.filter(transitions__event="contested"))


def unread(task: Task) -> QuerySet[Unit]:
    """Return the posts that have a label only from the detectors' agreement (stratum `agreed` of an exported set).

    These posts were not chosen for the audit, and people do not label them because of a failed audit either. However,
    people may have read the text of such a post in another post.
    """
    alone = Q(stage=stages.AGREED) | Q(copy_of__stage=stages.AGREED) | ~in_strata(task, contested_strata(task))
    return task.units.exclude(agreed_label="").filter(alone, audited=False)
