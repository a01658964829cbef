"""Ranked labels from a file, a TREC run: a line for each label of each document, parted by white space.

    31999R1400 Q0 2443 1 0.93 mysystem        document, Q0, label, rank, score, system

The score decides; the rank is not read. Labels of equal scores stand in the order of their ids as text
(core/ranked_labels.py). A file holds the run of one system.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from annotate.core.ranked_labels import ranked
from annotate.evaluation.given import EvaluationError

CELLS = ("document", "Q0", "label", "rank", "score", "system")
SHOWN = 40  # characters of a faulty cell that a sentence shows


@dataclass(frozen=True)
class Run:
    """What a system says of each of the documents. scores: document -> label -> score, empty where it says nothing.

    outside: documents of the file that are not among those measured; without: those measured of which it says nothing.
    """

    system: str
    scores: dict[str, dict[str, float]]
    outside: int
    without: int

    def rankings(self) -> dict[str, list[str]]:
        """Document -> its labels, the best first."""
        return {document: ranked(scores) for document, scores in self.scores.items()}

    def sentences(self) -> list[str]:
        """What is to be told of documents that do not go together."""
        told = []
        if self.outside:
            documents = "1 document is" if self.outside == 1 else f"{self.outside:,} documents are"
            told.append(f"{documents} not among those measured, without effect on any figure.")
        if self.without:
            documents = "1 document measured has" if self.without == 1 else f"{self.without:,} documents measured have"
            told.append(f"{documents} no line; there nothing counts as found.")
        return told


def read_run(path: Path, documents: Collection[str], labels: Collection[str]) -> Run:
    """documents: those to measure; labels: those that there are. EvaluationError, a sentence with the line, where a
    line is not one of a run or contradicts another, and where no line is of any of the documents."""
    scores: dict[str, dict[str, float]] = {document: {} for document in documents}
    outside: dict[str, set[str]] = {}
    system = ""
    for number, cells in _lines(path):
        where = f"{path}, line {number:,}:"
        if len(cells) != len(CELLS):
            raise EvaluationError(f"{where} {len(cells)} cells, and a run has {len(CELLS)}: {', '.join(CELLS)}.")
        document, _, label, _, written, name = cells
        if name != (system := system or name):
            raise EvaluationError(
                f"{where} the system is {name[:SHOWN]!r}, and {system[:SHOWN]!r} in the lines before; measure each by "
                "itself."
            )
        if label not in labels:
            raise EvaluationError(
                f"{where} {label[:SHOWN]!r} is not one of the {len(labels):,} labels; correct it, or leave it out."
            )
        score = _score(written, where)
        known = scores.get(document)
        seen = outside.setdefault(document, set()) if known is None else known
        if label in seen:
            raise EvaluationError(f"{where} {document} has the label {label} twice; give each label one score.")
        if known is None:
            outside[document].add(label)
        else:
            known[label] = score
    without = sum(not found for found in scores.values())
    if without == len(scores):
        raise EvaluationError(
            f"{path} has no line of any of the {len(scores):,} documents measured; give the run of these documents."
        )
    return Run(system, scores, len(outside), without)


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line that has any, with its number."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if cells := line.split():
                    yield number, cells
    except OSError as error:
        raise EvaluationError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError:
        raise EvaluationError(f"{path} is not UTF-8; save it as UTF-8.") from None


def _score(written: str, where: str) -> float:
    try:
        score = float(written)
    except ValueError:
        score = float("nan")
    if not isfinite(score):
        raise EvaluationError(f"{where} {written[:SHOWN]!r} is not a score; write a finite number such as 0.93.")
    return score
