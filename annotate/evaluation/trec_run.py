"""Ranked labels from a file, a TREC run, of the documents that are measured. corpora/trec_run.py reads it."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from annotate.evaluation.given import EvaluationError
from corpora import trec_run
from corpora.core.errors import CorpusError


@dataclass(frozen=True)
class Run(trec_run.Run):
    """A run whose documents are those measured."""

    def sentences(self) -> list[str]:
        """What is to be told of documents that do not go together."""
        told = []
        if outside := len(self.outside):
            documents = "1 document is" if outside == 1 else f"{outside:,} documents are"
            told.append(f"{documents} not among those measured, without effect on any figure.")
        if self.without:
            documents = "1 document measured has" if self.without == 1 else f"{self.without:,} documents measured have"
            told.append(f"{documents} no line; there nothing counts as found.")
        return told


def read_run(path: Path, documents: Collection[str], labels: Collection[str]) -> Run:
    """documents: those to measure; labels: those that there are. EvaluationError, a sentence, where the file is no run,
    and where no line is of any of the documents."""
    try:
        run = Run(**vars(trec_run.read_run(path, documents, labels)))
    except CorpusError as error:
        raise EvaluationError(str(error)) from error
    if run.without == len(run.scores):
        raise EvaluationError(
            f"{path} has no line of any of the {len(run.scores):,} documents measured; give the run of these documents."
        )
    return run
