"""Rankings of labels, each label once, the best first: how scores make one, and how several make one."""

from collections.abc import Iterable, Mapping, Sequence
from math import fsum

Ranking = Sequence[str]


def ranked(scores: Mapping[str, float]) -> list[str]:
    """Labels, the best score first; those of equal scores by their ids, as text."""
    return sorted(scores, key=lambda label: (-scores[label], label))


def joined(rankings: Iterable[Ranking]) -> list[str]:
    """One ranking out of several, by the sum of 1/rank of each label, a ranking without it adding nothing; equal sums
    by the id, as text. ValueError for a label that one ranking has twice."""
    parts: dict[str, list[float]] = {}
    for ranking in rankings:
        if len(set(ranking)) < len(ranking):
            raise ValueError("A ranking has a label twice; give each label one rank.")
        for rank, label in enumerate(ranking, 1):
            parts.setdefault(label, []).append(1 / rank)
    # fsum, as a sum that depends on the order of the systems would break ties.
    return ranked({label: fsum(each) for label, each in parts.items()})
