"""The registry of voters, and the functions that combine their votes. A voter is a detector that votes on every post.

To add a voter, subclass Voter and register it with the entry point `assay.voters` or with `register`. No other code
refers to a voter by its name. The models of the built-in voters are in detectors.py, which is imported only when the
first vote is cast.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from math import lcm

import numpy as np
from numpy.typing import NDArray

from corpora.core import install
from corpora.core.languages import COVERAGE
from corpora.core.masking import FORM


class Voter:
    """A language detector.

    name: name of the column with its votes, in lower case
    title: name shown on dataset cards
    languages: the label codes that it can return
    place: its position in the order of voters who decide ties; the voter with the lowest place decides
    min_score: the minimum score of its first language; if the score is lower, it has no vote on the text
    """

    name: str = ""
    title: str = ""
    languages: frozenset[str] = frozenset()
    place: int = 9
    min_score: float = 0

    def version(self) -> str:
        """Return the version of the voter and its model. Votes that were cast by another version are recomputed."""
        raise NotImplementedError

    def vote(self, texts: Sequence[str], k: int) -> Iterable[Sequence[tuple[str, float]]]:
        """Return up to k languages for each cleaned text, as (code, score) pairs.

        The pairs are sorted from best to worst and have no duplicate codes. Scores range from 0 to 1.
        """
        raise NotImplementedError


# The registered voters, in the order in which their votes are shown and stored.
VOTERS: dict[str, Voter] = {}
# Names that already have a meaning in tables of votes, posts or predictors.
RESERVED = {"id", "text", "author", "posted_at", "url", "letters", "language", "label", "majority", "unanimous"}


def register(voter: Voter) -> Voter:
    """Register a voter under its name and return it.

    Raise ValueError if another voter or a column has this name, or if the name is not a valid identifier.
    """
    is_taken = voter.name in RESERVED or VOTERS.get(voter.name, voter) is not voter
    if is_taken or not voter.name.isidentifier():
        raise ValueError(f"{voter.name!r} is already used or is not a valid column name. Choose another name.")
    VOTERS[voter.name] = voter
    return voter


def load() -> None:
    """Register the voters of installed packages.

    Each entry point in the group `assay.voters` must name a subclass of Voter.
    """
    install("assay.voters", lambda voter: register(voter()))


def voters_with(min_scores: Mapping[str, float]) -> tuple[Voter, ...]:
    """Return the registered voters, some of them with another minimum score."""
    voters = [copy(voter) for voter in VOTERS.values()]
    for voter in voters:
        voter.min_score = min_scores.get(voter.name, voter.min_score)
    return tuple(voters)


def voter_versions(voters: Iterable[Voter]) -> dict[str, str]:
    """Return the version of each voter, with the form of the texts that it reads and its minimum score."""
    return {
        voter.name: f"{voter.version()}, {FORM}" + (f", scores from {voter.min_score:g}" if voter.min_score else "")
        for voter in voters
    }


def in_words(number: int) -> str:
    """Return a number of voters as an English word, such as `three`. Numbers above six are returned as digits."""
    return dict(enumerate(("no", "one", "two", "three", "four", "five", "six"))).get(number, str(number))


# --- Built-in voters.


class BuiltIn(Voter):
    """A voter whose model is in detectors.py. Its language codes are in the table of languages.py."""

    def __init__(self, name: str, title: str, place: int, min_score: float) -> None:
        self.name, self.title, self.place, self.min_score = name, title, place, min_score
        self.languages = COVERAGE[name]

    def version(self) -> str:
        from corpora.core.detectors import detector_versions

        return detector_versions()[self.name]

    def vote(self, texts: Sequence[str], k: int) -> Iterable[Sequence[tuple[str, float]]]:
        from corpora.core.detectors import DETECTORS

        return DETECTORS[self.name](texts, k)


# CLD2 decides if no two detectors agree. On disputed sentences in 75 languages, its first language was right in 77% of
# cases, whereas the first languages of langid.py and fastText were each right in 46%.
#
# The minimum scores were chosen on 39,345 agreed sentences in 75 languages (benchmarks/evidence.py). For langid.py and
# CLD2, they are the highest multiples of 0.05 at which at least a tenth of the sentences that go to people for this
# reason were labelled wrongly, and at most 0.5% of all go. fastText is often right with low scores, for example in
# Swahili, so its minimum only excludes scores close to the 0.125 that it gives if it recognizes nothing.
register(BuiltIn("langid", "langid.py", 2, 0.6))
register(BuiltIn("cld2", "CLD2", 0, 0.55))
register(BuiltIn("fasttext", "fastText", 1, 0.15))


# --- Functions that combine the detectors' votes.
#
# Votes have the form in which they are stored: {"langid": [["de", 0.98], ...], "cld2": [...], "fasttext": [...]}. Each
# list contains label codes with scores, best first.

Votes = Mapping[str, Sequence[Sequence[str | float]]]


def rank_candidates(votes: Votes) -> list[str]:
    """Return every language that a detector returned, most likely first.

    Languages are sorted by these criteria in turn:
    - their weight, which is the sum of 1/rank over the detectors' lists (reciprocal rank)
    - the number of detectors that rank them first, so a language that two detectors rank first always wins
    - the number of detectors that returned them
    - their rank with each detector, in the order of Voter.place; a detector that did not return them counts as last
    - their code
    """
    ranks: dict[str, dict[str, int]] = {}
    for detector, ranking in votes.items():
        for rank, (code, *_) in enumerate(ranking, start=1):
            ranks.setdefault(str(code), {}).setdefault(detector, rank)

    # Multiplied by a common multiple of all ranks, the weights are integers. They are exact, and faster than fractions.
    in_order = sorted(VOTERS.values(), key=lambda voter: voter.place)
    multiple = lcm(*range(1, 1 + max(map(len, votes.values()), default=0)))

    order: dict[str, tuple[int, int, int, list[float], str]] = {}
    for code, places in ranks.items():
        weight = sum(multiple // rank for rank in places.values())
        firsts = sum(rank == 1 for rank in places.values())
        by_voter = [places.get(voter.name, float("inf")) for voter in in_order]
        order[code] = -weight, -firsts, -len(places), by_voter, code
    return sorted(ranks, key=order.__getitem__)


def unanimous(votes: Votes) -> str | None:
    """Return the language that all detectors rank first.

    Return None if they disagree or if one of them casts no vote.
    """
    first_codes = {str(ranking[0][0]) if ranking else None for ranking in votes.values()}
    return first_codes.pop() if len(first_codes) == 1 else None


def all_unanimous(firsts: Sequence[NDArray[np.int16]]) -> NDArray[np.bool_]:
    """Return whether all detectors rank the same language first (texts,).

    firsts: an array for each detector with the index of the language that it ranks first, or -1 for no vote (texts,)
    """
    is_same: NDArray[np.bool_] = np.logical_and.reduce([codes == firsts[0] for codes in firsts])
    return is_same & (firsts[0] >= 0)


def agreed_label(
    code: str | None, letters: int, *, labels: Collection[str], never_agree: Collection[str], least_letters: int
) -> str | None:
    """Return the label on which the detectors agree, or None if annotators must be asked.

    Unanimous detectors count as agreeing only if all of them support the language. A detector that does not support a
    text's language returns the closest language that it does support, and the other detectors may make the same
    mistake.

    code: the language on which the detectors are unanimous, or None
    letters: the number of letters in the text as the detectors read it
    labels: the task's labels, which never include a coarse code
    never_agree: labels that must not be assigned by agreement
    least_letters: the minimum number of letters for agreement
    """
    if code is None or letters < least_letters or code not in labels or code in never_agree:
        return None
    return code if all(code in voter.languages for voter in VOTERS.values()) else None
