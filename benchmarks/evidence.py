"""Minimum scores of votes: the share of agreed texts that they send to people, and how many of these were wrong.

The truth is the language of the file. Texts of Nigerian Pidgin are left out, because no detector knows it. Single words
count as agreed at any length, because few of them have 20 letters.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from benchmarks.material import MissingData, lines_of
from benchmarks.tables import share, show
from corpora.core.languages import LISTED, code_of
from corpora.core.voters import DEFAULT, VOTERS, agreed_label, agreed_vote, voters_with
from corpora.votes.vote_worker import vote_on

# The minimum number of letters for agreement in each folder; 20 is what tasks require.
SETS = {"lingua_sentences": 20, "lingua_single_words": 1, "afrisenti_tweets": 20}
UNKNOWN = "pcm"
FLOORS = (0.15, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8, 0.9)
CHUNK = 2_000


class Agreed(NamedTuple):
    """A text on which the detectors agree. scores: the score of each detector's first language."""

    wrong: bool
    scores: dict[str, float]


def add_options(parser) -> None:
    pass


def run(folder: Path, options) -> None:
    for name, least_letters in SETS.items():
        texts = [*texts_of(folder, name)]
        agreed = [*agreed_texts(texts, least_letters)]
        wrong = sum(text.wrong for text in agreed)
        print(f"{name}: {len(texts):,} texts, {len(agreed):,} agreed, {share(wrong, len(agreed))} of these wrong.")
        chosen = {voter: VOTERS[voter].min_score for voter in DEFAULT.voters}
        for title, floors in (
            *((voter, [{voter: floor} for floor in FLOORS]) for voter in DEFAULT.voters),
            ("the defaults", [chosen]),
        ):
            rows = [row(agreed, floor) for floor in floors]
            show(title, ["minimum score", "sent", "share", "wrong", "share", "wrong of the rest"], rows)


def texts_of(folder: Path, name: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a folder with their languages."""
    files = sorted((folder / name).glob("*.txt"))
    if not files:
        raise MissingData(f"There are no files {folder / name}/*.txt; name a folder that has them.")
    for path in files:
        if path.stem != UNKNOWN:
            yield from ((code_of(path.stem), text) for text in lines_of(folder, f"{name}/{path.name}"))


def agreed_texts(texts: list[tuple[str, str]], least_letters: int) -> Iterator[Agreed]:
    """Yield the texts on which the detectors agree if all votes count."""
    batch = pa.table({"id": [language for language, _ in texts], "text": [text for _, text in texts]})
    vote = partial(vote_on, 1, voters_with(dict.fromkeys(DEFAULT.voters, 0.0), DEFAULT.voters))
    rules = {"labels": LISTED, "never_agree": (), "least_letters": least_letters}
    for votes, _ in map(vote, batch.to_batches(max_chunksize=CHUNK)):
        for row in votes.to_pylist():
            ballots = {voter: [(vote["language"], vote["score"]) for vote in row[voter]] for voter in DEFAULT.voters}
            if label := agreed_label(agreed_vote(ballots, DEFAULT), row["letters"], **rules):
                yield Agreed(label != row["id"], {voter: ranking[0][1] for voter, ranking in ballots.items()})


def row(agreed: list[Agreed], floors: dict[str, float]) -> list[object]:
    """Return the figures for minimum scores of some detectors."""
    sent = [text for text in agreed if any(text.scores[voter] < floor for voter, floor in floors.items())]
    wrong, all_wrong = sum(text.wrong for text in sent), sum(text.wrong for text in agreed)
    named, rest = " ".join(f"{floor:g}" for floor in floors.values()), len(agreed) - len(sent)
    shares = share(len(sent), len(agreed)), share(wrong, len(sent)), share(all_wrong - wrong, rest)
    return [named, len(sent), shares[0], wrong, shares[1], shares[2]]
