"""Functions that combine the detectors' votes: ranked candidates, unanimity, agreement.

Votes have the shape in which they are stored: {"langid": [["de", 0.98], ...], "cld2": [...], "fasttext": [...]}, each
list best first, with normalised codes.
"""

from collections.abc import Collection, Mapping, Sequence
from math import lcm

import numpy as np
from numpy.typing import NDArray

from corpora.core.voters import VOTERS

Votes = Mapping[str, Sequence[Sequence[str | float]]]


def rank_candidates(votes: Votes) -> list[str]:
    """Return every language that a detector names, most likely first.

    A language's weight is the sum of 1/rank over the detectors' lists (reciprocal rank). Ties are broken by the number
    of first ranks, so a language that two detectors rank first always wins; then by the number of detectors that name
    it; then by its rank with each detector in the order of Voter.place, unnamed last; then by its code.
    """
    places: dict[str, dict[str, int]] = {}
    for detector, named in votes.items():
        for place, (code, *_) in enumerate(named, start=1):
            places.setdefault(str(code), {}).setdefault(detector, place)

    # Integer weights are exact and faster than fractions.
    in_order = sorted(VOTERS.values(), key=lambda voter: voter.place)
    whole = lcm(*range(1, 1 + max(map(len, votes.values()), default=0)))

    def order(code: str) -> tuple[int, int, int, list[float], str]:
        by = places[code]
        weight = sum(whole // place for place in by.values())
        firsts = sum(place == 1 for place in by.values())
        return -weight, -firsts, -len(by), [by.get(voter.name, float("inf")) for voter in in_order], code

    return sorted(places, key=order)


def unanimous(votes: Votes) -> str | None:
    """Return the language that all voting detectors rank first, or None if they differ or one names none."""
    first = {str(named[0][0]) if named else None for named in votes.values()}
    return first.pop() if len(first) == 1 else None


def all_unanimous(firsts: Sequence[NDArray[np.int16]]) -> NDArray[np.bool_]:
    """Return whether all detectors rank the same language first (texts,).

    firsts: for each detector, the index of the language it ranks first, -1 for none (texts,)
    """
    same: NDArray[np.bool_] = np.logical_and.reduce([one == firsts[0] for one in firsts])
    return same & (firsts[0] >= 0)


def agreed_label(
    code: str | None, letters: int, *, labels: Collection[str], never_agree: Collection[str], least_letters: int
) -> str | None:
    """Return the label on which the detectors agree, or None if annotators must be asked.

    Agreement requires that every detector supports the language: a detector that does not support a text's language
    names the closest one that it does, and the others may make the same mistake.

    code: the language in which the detectors are unanimous, or None
    letters: letters in the text as the detectors read it
    labels: the task's labels; a coarse code is never among them
    never_agree: labels that are never settled by agreement
    least_letters: minimum number of letters for agreement
    """
    if code is None or letters < least_letters or code not in labels or code in never_agree:
        return None
    return code if all(code in voter.languages for voter in VOTERS.values()) else None
