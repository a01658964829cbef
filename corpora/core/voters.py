"""The registry of voters, which are the language detectors that vote on every post, and the combination of votes.

To add a voter, subclass Voter and register it with the entry point `assay.voters` or with `register`. No other code
refers to a voter by name. The models of the built-in voters are in detectors.py, which is imported at the first vote.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from math import lcm

import numpy as np
from numpy.typing import NDArray

from corpora.core.languages import COVERAGE


class Voter:
    """A language detector.

    name: name of its column of votes, in lower case
    title: name shown on cards
    languages: codes of languages.py that it can return
    place: priority when languages tie otherwise; the voter with the lowest place decides
    """

    name: str = ""
    title: str = ""
    languages: frozenset[str] = frozenset()
    place: int = 9

    def version(self) -> str:
        """Return the version of the voter and its model. Votes by another version are recomputed."""
        raise NotImplementedError

    def vote(self, texts: Sequence[str], k: int) -> Iterable[Sequence[tuple[str, float]]]:
        """Return up to k languages for each cleaned text, without duplicates, with scores from 0 to 1, best first."""
        raise NotImplementedError


# In the order in which votes are shown and stored.
VOTERS: dict[str, Voter] = {}


def register(voter: Voter) -> Voter:
    """Register a voter under its name.

    ValueError: the name is taken by another voter, or is not an identifier
    """
    if not voter.name.isidentifier() or VOTERS.get(voter.name, voter) is not voter:
        raise ValueError(f"{voter.name!r} is taken, or cannot be the name of a column; give the voter another name.")
    VOTERS[voter.name] = voter
    return voter


def load() -> None:
    """Register the voters of installed packages: each entry point in the group `assay.voters` names a class."""
    for found in entry_points(group="assay.voters"):
        register(found.load()())


def voter_versions() -> dict[str, str]:
    """Return the version of each voter."""
    return {name: voter.version() for name, voter in VOTERS.items()}


def in_words(number: int) -> str:
    """Return a number of voters as a word, such as `three`."""
    return dict(enumerate(("no", "one", "two", "three", "four", "five", "six"))).get(number, str(number))


# --- Built-in voters.


class BuiltIn(Voter):
    """A detector of detectors.py. Its codes are in the table of languages.py."""

    def __init__(self, name: str, title: str, place: int) -> None:
        self.name, self.title, self.place = name, title, place
        self.languages = COVERAGE[name]

    def version(self) -> str:
        from corpora.core.detectors import detector_versions

        return detector_versions()[self.name]

    def vote(self, texts: Sequence[str], k: int) -> Iterable[Sequence[tuple[str, float]]]:
        from corpora.core.detectors import DETECTORS

        return DETECTORS[self.name](texts, k)


# CLD2 decides where no two detectors agree. On disputed sentences in 75 languages its first language was right in 77%
# of cases, the first language of each other detector in 46%.
register(BuiltIn("langid", "langid.py", 2))
register(BuiltIn("cld2", "CLD2", 0))
register(BuiltIn("fasttext", "fastText", 1))


# --- Functions that combine the detectors' votes.
#
# Votes have the shape in which they are stored: {"langid": [["de", 0.98], ...], "cld2": [...], "fasttext": [...]},
# each list best first, with normalised codes.

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
