"""Voters: the detectors that name the languages of every post. All that votes on a corpus are registered here.

A voter from outside is a class of its own, loaded by the entry point `assay.voters` or handed to `register`. The code
that asks the voters never names one. The models of the built-in voters are in detectors.py, which loads when one votes.
"""

from collections.abc import Iterable, Sequence
from importlib.metadata import entry_points

from corpora.core.languages import COVERAGE


class Voter:
    """A detector of languages.

    name: of its column of votes, in small letters. title: what a card calls it. languages: the codes of languages.py
    that it can name. place: its place when two languages are otherwise equal; the voter with the lowest decides.
    """

    name: str = ""
    title: str = ""
    languages: frozenset[str] = frozenset()
    place: int = 9

    def version(self) -> str:
        """Its version, and that of its model. Votes of another version are made anew."""
        raise NotImplementedError

    def vote(self, texts: Sequence[str], k: int) -> Iterable[Sequence[tuple[str, float]]]:
        """For each cleaned text up to k languages, each once with a score from 0 to 1, the best first."""
        raise NotImplementedError


# The order of the votes, as they are shown and stored.
VOTERS: dict[str, Voter] = {}


def register(voter: Voter) -> Voter:
    """Make a voter known by its name. ValueError if another one has that name, or if it cannot be the name of one."""
    if not voter.name.isidentifier() or VOTERS.get(voter.name, voter) is not voter:
        raise ValueError(f"{voter.name!r} is taken, or cannot be the name of a column; give the voter another name.")
    VOTERS[voter.name] = voter
    return voter


def load() -> None:
    """Register the voters of installed packages: an entry point in the group `assay.voters` names the class."""
    for found in entry_points(group="assay.voters"):
        register(found.load()())


def voter_versions() -> dict[str, str]:
    """Voter -> its version."""
    return {name: voter.version() for name, voter in VOTERS.items()}


def in_words(number: int) -> str:
    """A number of voters as a sentence has it: three."""
    return dict(enumerate(("no", "one", "two", "three", "four", "five", "six"))).get(number, str(number))


# --- those that come with Assay


class BuiltIn(Voter):
    """A detector of detectors.py, whose own codes are in the lines of languages.py."""

    def __init__(self, name: str, title: str, place: int) -> None:
        self.name, self.title, self.place = name, title, place
        self.languages = COVERAGE[name]

    def version(self) -> str:
        from corpora.core.detectors import detector_versions

        return detector_versions()[self.name]

    def vote(self, texts: Sequence[str], k: int) -> Iterable[Sequence[tuple[str, float]]]:
        from corpora.core.detectors import DETECTORS

        return DETECTORS[self.name](texts, k)


# Where no two detectors agree, CLD2 decides: on disputed sentences in 75 languages it first put the true language first
# on 77%, either of the others first on 46%.
register(BuiltIn("langid", "langid.py", 2))
register(BuiltIn("cld2", "CLD2", 0))
register(BuiltIn("fasttext", "fastText", 1))
