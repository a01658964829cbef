"""Ranked labels from a file, a TREC run: a line for each label of each document, separated by white space.

    31999R1400 Q0 2443 1 0.93 mysystem        document, Q0, label, rank, score, system

The score decides; the rank is not read. Labels of equal scores stand in the order of their ids as text
(core/rankings.py). A file holds the run of one system, plain or compressed.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from corpora.core import CorpusError
from corpora.core.rankings import ranked
from corpora.sources.compression import Progress, check_file, damage_explained
from corpora.sources.text import MAX_LINE, Fault, lines_of
from corpora.vocabulary.thesaurus import VocabularyError, read_key

CELLS = ("document", "Q0", "label", "rank", "score", "system")
SHOWN = 40  # characters of a faulty cell that a sentence shows
_FORMAT = "trec"


@dataclass(frozen=True)
class Run:
    """What a system says of each of the documents. scores: document -> label -> score, empty where it says nothing.

    outside: documents of the file that are not among those asked about, in its order; without: how many of those asked
    about it says nothing of.
    """

    system: str
    scores: dict[str, dict[str, float]]
    outside: list[str]
    without: int

    def rankings(self) -> dict[str, list[str]]:
        """Document -> its labels, the best first."""
        return {document: ranked(scores) for document, scores in self.scores.items()}


def read_run(
    path: Path,
    documents: Collection[str],
    labels: Collection[str] | None,
    progress: Progress = lambda count: None,
) -> Run:
    """documents: those asked about; labels: those that there are, None where any may be. `progress` is told of bytes
    read. CorpusError, a sentence with the line, where a line is not one of a run or contradicts another.
    """
    check_file(path, _FORMAT)
    scores: dict[str, dict[str, float]] = {document: {} for document in documents}
    outside: dict[str, set[str]] = {}
    known: dict[str, str] = {}  # each label once, since a run has it in thousands of lines
    system = ""
    for number, cells in _lines(path, progress):
        where = f"{path}, line {number:,}:"
        if len(cells) != len(CELLS):
            raise CorpusError(f"{where} {len(cells)} cells, and a run has {len(CELLS)}: {', '.join(CELLS)}.")
        document, _, written, _, score, name = cells
        if name != (system := system or name):
            raise CorpusError(
                f"{where} the system is {name[:SHOWN]!r}, and {system[:SHOWN]!r} in the lines before; put the lines of "
                "each system into a file of their own."
            )
        label = known.get(written) or known.setdefault(written, _label(written, labels, where))
        value = _score(score, where)
        found = scores.get(document)
        if label in (outside.setdefault(document, set()) if found is None else found):
            raise CorpusError(f"{where} {document} has the label {label} twice; give each label one score.")
        if found is None:
            outside[document].add(label)
        else:
            found[label] = value
    return Run(system, scores, list(outside), sum(not found for found in scores.values()))


def _lines(path: Path, progress: Progress) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line that has any, with its number."""
    with damage_explained(path, _FORMAT):
        for number, line in lines_of(path, MAX_LINE, progress):
            if isinstance(line, Fault):
                raise CorpusError(f"{path}, line {number:,}: {line.reason}")
            # White space of ASCII alone, since an id may hold a no-break space.
            if cells := line.split():
                try:
                    yield number, [cell.decode() for cell in cells]
                except UnicodeDecodeError:
                    raise CorpusError(f"{path}, line {number:,}, is not UTF-8; save the file as UTF-8.") from None


def _label(written: str, labels: Collection[str] | None, where: str) -> str:
    if labels is None:
        try:
            return read_key(written, "label")
        except VocabularyError as error:
            raise CorpusError(f"{where} {error}") from error
    if written not in labels:
        raise CorpusError(
            f"{where} {written[:SHOWN]!r} is not one of the {len(labels):,} labels; correct it, or leave it out."
        )
    return written


def _score(written: str, where: str) -> float:
    try:
        score = float(written)
    except ValueError:
        score = float("nan")
    if not isfinite(score):
        raise CorpusError(f"{where} {written[:SHOWN]!r} is not a score; write a finite number such as 0.93.")
    return score
