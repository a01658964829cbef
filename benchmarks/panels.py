"""Optional voters and panels: accuracy, coverage and speed of each voter; agreement and its error for each panel.

The truth is the language of the file, or of the record in sib200. A voter that casts no vote, or returns a coarse code
such as sh for Croatian, is not right. Single words count as agreed at any length, because few of them have 20 letters.
Voters whose packages are not installed are left out.
"""

import json
import time
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotate.core.estimation.proportions import proportion
from benchmarks import evidence
from benchmarks.material import lines_of
from benchmarks.tables import share, show
from corpora.core.detectors import CODES, ranked
from corpora.core.languages import code_of, finer
from corpora.core.masking import clean_for_detectors, count_letters
from corpora.core.voters import DEFAULT, PACKAGED, VOTERS, Voter

SETS = {**evidence.SETS, "sib200": 20}
FLOORS = tuple(step / 20 for step in range(2, 20))
# Panels of four that are worth comparing: the built-in three with the best other voter, and the fastest of each method.
FOURS = (("langid", "cld2", "fasttext", "heliport"), ("cld2", "fasttext", "cld3", "heliport"))
K = 3


class Votes(NamedTuple):
    """The votes on n texts.

    truth: the index in CODES of each text's language, or -1 if it is not listed (n,)
    letters: number of letters (n,)
    codes: for each voter, the index of the language that it ranks first, or -1 (n,)
    scores: for each voter, the score of that language (n,)
    seconds: for each voter, the time that it took
    """

    truth: NDArray[np.int64]
    letters: NDArray[np.int64]
    codes: dict[str, NDArray[np.int16]]
    scores: dict[str, NDArray[np.float64]]
    seconds: dict[str, float]

    def sure(self, voter: str, floor: float) -> NDArray[np.int16]:
        """Return a voter's first languages, without those with a lower score (n,)."""
        return np.where(self.scores[voter] >= floor, self.codes[voter], np.int16(-1))


def add_options(parser) -> None:
    pass


def run(folder: Path, options) -> None:
    voters = {name: VOTERS[name] for name in DEFAULT.voters}
    voters |= {voter.name: voter() for voter in PACKAGED if find_spec(voter.module)}
    votes = {name: votes_on([*texts_of(folder, name)], voters) for name in SETS}
    for name in [*voters][len(DEFAULT.voters) :]:
        show_floors(name, votes["lingua_sentences"], voters)
    firsts = {name: {voter: votes[name].sure(voter, voters[voter].min_score) for voter in voters} for name in votes}
    show_voters(votes, firsts, voters)
    show_correlations(votes["lingua_sentences"], firsts["lingua_sentences"], voters)
    fours = [panel for panel in FOURS if {*panel} <= voters.keys()]
    panels = [*combinations(voters, 2), *combinations(voters, 3), *fours]
    for name in SETS:
        show_panels(name, votes[name], firsts[name], panels)


def texts_of(folder: Path, name: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a folder with their languages."""
    if name != "sib200":
        yield from evidence.texts_of(folder, name)
        return
    for path in sorted((folder / name).glob("*.jsonl")):
        for line in lines_of(folder, f"{name}/{path.name}"):
            row = json.loads(line)
            yield row["language"].split("-")[0], row["text"]


def votes_on(texts: list[tuple[str, str]], voters: dict[str, Voter]) -> Votes:
    places = {code: place for place, code in enumerate(CODES)}
    cleaned = [clean_for_detectors(text) for _, text in texts]
    codes, scores, seconds = {}, {}, {}
    for name, voter in voters.items():
        list(voter.vote(cleaned[:10], K))  # loads the model
        start = time.perf_counter()
        rankings = ranked(voter.vote(cleaned, K), K)
        seconds[name] = time.perf_counter() - start
        codes[name] = rankings.first()
        scores[name] = np.append(rankings.scores, 0.0)[rankings.offsets[:-1]]
    truth = np.array([places.get(code_of(language), -1) for language, _ in texts])
    return Votes(truth, count_letters(cleaned), codes, scores, seconds)


def show_floors(name: str, votes: Votes, voters: dict[str, Voter]) -> None:
    """Show what each minimum score of a voter sends to people, if it agrees with CLD2 and fastText."""
    beside = ("cld2", "fasttext")
    firsts = [votes.codes[name], *(votes.sure(other, voters[other].min_score) for other in beside)]
    agreed = agreement(firsts) & (votes.letters >= SETS["lingua_sentences"])
    wrong = agreed & (firsts[0] != votes.truth)
    rows = []
    for floor in FLOORS:
        sent = agreed & (votes.scores[name] < floor)
        both, rest = int((sent & wrong).sum()), int((wrong & ~sent).sum())
        number, remaining = int(sent.sum()), int((agreed & ~sent).sum())
        rows.append(
            [f"{floor:g}", number, share(number, int(agreed.sum())), both, share(both, number), share(rest, remaining)]
        )
    head = ["minimum score", "sent", "share", "wrong", "share", "wrong of the rest"]
    show(f"{name} with CLD2 and fastText: {int(agreed.sum()):,} agreed sentences", head, rows)


def show_voters(votes: dict[str, Votes], firsts: dict[str, dict], voters: dict[str, Voter]) -> None:
    """Show the languages, speed, share of texts with a vote, and accuracy of each voter."""
    rows = []
    for name, voter in voters.items():
        number = sum(len(ballots.truth) for ballots in votes.values())
        pace = number / sum(ballots.seconds[name] for ballots in votes.values())
        row = [voter.title, f"{voter.min_score:g}", len(voter.languages), f"{pace:,.0f}"]
        for data, ballots in votes.items():
            first = firsts[data][name]
            row += [share(int((first >= 0).sum()), len(first)), share(int((first == ballots.truth).sum()), len(first))]
        rows.append(row)
    columns = [f"{data} {what}" for data in votes for what in ("voted", "right")]
    show("voters", ["voter", "minimum score", "languages", "texts/s", *columns], rows)


def show_correlations(votes: Votes, firsts: dict[str, NDArray[np.int16]], voters: dict[str, Voter]) -> None:
    """Show the correlation of the errors of two voters, on sentences in languages that both know and both vote on."""
    rows = []
    for name in voters:
        row: list[object] = [name]
        for other in voters:
            shared = [
                place
                for place, code in enumerate(CODES)
                if all(code in voters[voter].languages for voter in (name, other))
            ]
            here = np.isin(votes.truth, shared) & (firsts[name] >= 0) & (firsts[other] >= 0)
            errors = [firsts[voter][here] != votes.truth[here] for voter in (name, other)]
            row.append("" if name == other else f"{np.corrcoef(*errors)[0, 1]:.2f}")
        rows.append(row)
    show("correlation of errors (phi), lingua_sentences", ["", *voters], rows)


def show_panels(name: str, votes: Votes, firsts: dict[str, NDArray[np.int16]], panels: list[tuple[str, ...]]) -> None:
    """Show how many texts each panel agrees on, and how many of these labels are wrong."""
    rows = []
    for panel in panels:
        chosen = [firsts[voter] for voter in panel]
        agreed = agreement(chosen) & (votes.letters >= SETS[name])
        wrong, number = int((agreed & (chosen[0] != votes.truth)).sum()), int(agreed.sum())
        error = proportion(wrong, number)
        rows.append(
            [" ".join(panel), share(number, len(agreed)), share(wrong, number), f"{error.low:.2%} to {error.high:.2%}"]
        )
    show(f"{name}: {len(votes.truth):,} texts", ["panel", "agreed", "wrong", "95% interval"], rows)


# Coarse codes other than those of the files, on which agreement settles nothing.
COARSE = [place for place, code in enumerate(CODES) if finer(code) and code != "zh"]


def agreement(firsts: list[NDArray[np.int16]]) -> NDArray[np.bool_]:
    """Return whether all voters rank the same label first (n,)."""
    same = np.logical_and.reduce([first == firsts[0] for first in firsts])
    return same & (firsts[0] >= 0) & ~np.isin(firsts[0], COARSE)
