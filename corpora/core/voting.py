"""What the votes of the detectors mean together: candidates in order, unanimity, agreement. Pure functions.

Votes have the shape in which they are stored: {"langid": [["de", 0.98], ...], "cld2": [...], "fasttext":
[...]}, each list best first, codes normalised.
"""

from collections.abc import Collection, Mapping, Sequence
from math import lcm

import numpy as np
from numpy.typing import NDArray

from corpora.core.voters import VOTERS

Votes = Mapping[str, Sequence[Sequence[str | float]]]


def rank_candidates(votes: Votes) -> list[str]:
    """Every language that a detector names, the likeliest first.

    A language's weight is the sum of 1/place over the detectors' lists (reciprocal rank). Ties are broken by more
    first places, so that what two put first is always first; then by the number of detectors that name it; then by its
    place with each detector, in the order of Voter.place (not named is last); then by its code.
    """
    places: dict[str, dict[str, int]] = {}
    for detector, named in votes.items():
        for place, (code, *_) in enumerate(named, start=1):
            places.setdefault(str(code), {}).setdefault(detector, place)

    # The weights in whole numbers, which are quicker than fractions, and as exact.
    in_order = sorted(VOTERS.values(), key=lambda voter: voter.place)
    whole = lcm(*range(1, 1 + max(map(len, votes.values()), default=0)))

    def order(code: str) -> tuple[int, int, int, list[float], str]:
        by = places[code]
        weight = sum(whole // place for place in by.values())
        firsts = sum(place == 1 for place in by.values())
        return -weight, -firsts, -len(by), [by.get(voter.name, float("inf")) for voter in in_order], code

    return sorted(places, key=order)


def unanimous(votes: Votes) -> str | None:
    """The language that all detectors which voted name first; None if they differ or one names none."""
    first = {str(named[0][0]) if named else None for named in votes.values()}
    return first.pop() if len(first) == 1 else None


def all_unanimous(firsts: Sequence[NDArray[np.int16]]) -> NDArray[np.bool_]:
    """(texts,): whether all detectors name the same language first. firsts: of each detector (texts,), the number of
    the language that it names first; -1 where it names none."""
    same: NDArray[np.bool_] = np.logical_and.reduce([one == firsts[0] for one in firsts])
    return same & (firsts[0] >= 0)


def agreed_label(
    code: str | None, letters: int, *, labels: Collection[str], never_agree: Collection[str], least_letters: int
) -> str | None:
    """The label that the detectors' agreement settles, or None: then people are asked.

    `code`: what they are unanimous in; `letters` are those of the text as detectors read it. Agreement counts only on
    texts of `least_letters` or more, for a language that is in the task's `labels` (a coarse code never is), is not in
    `never_agree`, and is known to all detectors: one that does not know a text's language names its nearest
    neighbour, and so may the others.
    """
    if code is None or letters < least_letters or code not in labels or code in never_agree:
        return None
    return code if all(code in voter.languages for voter in VOTERS.values()) else None
