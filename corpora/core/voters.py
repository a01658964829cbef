"""The registry of voters: the language detectors that vote on every post.

To add a voter, subclass Voter and register it with the entry point `assay.voters` or with `register`. No other code
refers to a voter by name. The models of the built-in voters are in detectors.py, which is imported at the first vote.
"""

from collections.abc import Iterable, Sequence
from importlib.metadata import entry_points

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
