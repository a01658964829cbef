"""One of several grades, best first: a choice that has a median, and in which near misses are nearer."""

from collections.abc import Mapping, Sequence

from annotate.core import agreement, pairs
from annotate.core.aggregation import Aggregation, majority, median
from annotate.kinds.forms.choice import SEVERAL, SIDED, agrees, check, facets, name, read, unlike, values

__all__ = [
    "AGGREGATIONS",
    "SEVERAL",
    "SIDED",
    "agrees",
    "check",
    "distances",
    "facets",
    "name",
    "read",
    "unlike",
    "values",
]

AGGREGATIONS: Mapping[str, Aggregation] = {"majority": majority, "median": median}


def distances(values: Sequence[str]) -> dict[str, pairs.Distance]:
    return {"nominal": agreement.nominal(len(values)), "ordinal": agreement.ordinal}
