"""Ranked labels for documents: TREC run files, the order of labels, and ranked predictors.

A run has one line per document and label, with six fields separated by white space:

    31999R1400 Q0 2443 1 0.93 mysystem        document, Q0, label, rank, score, system

Labels are sorted by descending score, and labels with the same score alphabetically. The rank field is ignored. A file
contains the run of a single system and can be compressed. In a corpus, documents without labels have no row.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isfinite
from pathlib import Path

import pyarrow as pa

from corpora.core import CorpusError, listed
from corpora.core.arrow import pq
from corpora.core.records import RecordError, read_number
from corpora.engines import explain_full_disk, open_store, texts
from corpora.predictions.predictor_labels import check_name, find_imported
from corpora.sources.compression import Progress, check_file
from corpora.sources.text import field_count
from corpora.storage.intake import empty_file, invalid_file, new_file, text_lines
from corpora.storage.layout import Manifest, Predictions, corpus_dir, sync, with_predictions
from corpora.storage.schemas import RANKED_SCHEMA
from corpora.vocabulary.thesaurus import VocabularyError, read_key

Ranking = Sequence[str]


def rank_labels(scores: Mapping[str, float]) -> list[str]:
    """Sort labels by descending score. Labels with the same score are sorted alphabetically."""
    return sorted(scores, key=lambda label: (-scores[label], label))


def fuse_rankings(rankings: Iterable[Ranking]) -> list[str]:
    """Merge several rankings. A label's score is the sum of 1/rank over the rankings that contain it (reciprocal rank).

    Labels with the same score are sorted alphabetically.

    Raise ValueError if a ranking contains a label twice.
    """
    parts: dict[str, list[float]] = {}
    for ranking in rankings:
        if len(set(ranking)) < len(ranking):
            raise ValueError("A ranking contains a label twice. Each label must have one rank.")
        for rank, label in enumerate(ranking, 1):
            parts.setdefault(label, []).append(1 / rank)
    # Use fsum, whose result doesn't depend on the order of the rankings. With sum, rounding errors could break ties.
    return rank_labels({label: fsum(label_scores) for label, label_scores in parts.items()})


# --- TREC runs.


CELLS = ("document", "Q0", "label", "rank", "score", "system")
SHOWN = 40  # maximum length of a faulty cell in error messages (characters)
_FORMAT = "trec"


@dataclass(frozen=True)
class Run:
    """A system's scores for documents.

    scores: scores by label, for each requested document; empty if the document is not in the file
    outside: documents in the file that were not requested, in file order
    without: number of requested documents that are not in the file
    """

    system: str
    scores: dict[str, dict[str, float]]
    outside: list[str]
    without: int

    def rankings(self) -> dict[str, list[str]]:
        """Return each document's labels, best first."""
        return {document: rank_labels(scores) for document, scores in self.scores.items()}


def read_run(
    path: Path, documents: Collection[str], labels: Collection[str] | None, progress: Progress = lambda count: None
) -> Run:
    """Read a run.

    documents: ids of the requested documents
    labels: valid labels; None if any label is valid
    progress: called with the number of bytes read

    Raise CorpusError if a line is invalid or contradicts an earlier line.
    """
    check_file(path, _FORMAT)
    scores: dict[str, dict[str, float]] = {document: {} for document in documents}
    outside: dict[str, set[str]] = {}
    interned: dict[str, str] = {}  # saves memory, because a label can occur in thousands of lines
    system = ""
    for number, line in text_lines(path, _FORMAT, progress):
        try:
            document, written, score, system = _cells(line, system)
            label = interned.get(written) or interned.setdefault(written, _label(written, labels))
            document_scores = scores.get(document)
            if label in (outside.setdefault(document, set()) if document_scores is None else document_scores):
                raise RecordError(f"{document} has the label {label} twice. Each label must have one score.")
        except (RecordError, VocabularyError) as error:
            raise invalid_file(path, _FORMAT, number, str(error)) from error
        if document_scores is None:
            outside[document].add(label)
        else:
            document_scores[label] = score
    if not system:
        raise empty_file(path)
    return Run(system, scores, list(outside), sum(not document_scores for document_scores in scores.values()))


def _cells(line: str, system: str) -> tuple[str, str, float, str]:
    """Parse a line of a run. Return the document, label, score and system.

    system: the system in earlier lines; "" if there is none

    Raise RecordError if the line is invalid or belongs to a different system.
    """
    # Split the line as bytes, which splits only at ASCII white space, because ids can contain no-break spaces.
    cells = [cell.decode() for cell in line.encode().split()]
    if len(cells) != len(CELLS):
        raise RecordError(f"The row has {field_count(cells)}, but a run has {len(CELLS)}: {', '.join(CELLS)}.")
    document, _, label, _, written, name = cells
    if system and name != system:
        raise RecordError(
            f"The system is {name[:SHOWN]!r}, but earlier lines have {system[:SHOWN]!r}. Write each system to a "
            "separate file."
        )
    score = read_number(written)
    if score is None or not isfinite(score):
        raise RecordError(f"{written[:SHOWN]!r} is not a score. Write a finite number such as 0.93.")
    return document, label, score, name


def _label(written: str, labels: Collection[str] | None) -> str:
    if labels is None:
        return read_key(written, "label")
    if written not in labels:
        raise RecordError(f"{written[:SHOWN]!r} is not one of the {len(labels):,} labels. Correct or remove it.")
    return written


# --- Ranked predictors of a corpus, which come from a file (prediction_import.py) or from concept_rankers.py.


Scores = Mapping[str, float]  # scores by label


def load_rankings(corpus_name: str, spelled: str, ids: Iterable[str]) -> dict[str, list[str]]:
    """Return a predictor's labels for each document, best first.

    spelled: the predictor's name, such as `mine@2`, or `mine` if it has only one version

    Raise CorpusError if the corpus has no such predictor, or if the predictor is not ranked.
    """
    predictions = find_imported(corpus_name, spelled)
    if not predictions.ranked:
        raise CorpusError(
            f"The predictor {predictions} of corpus {corpus_name} assigns one label per record, but ranked labels are "
            "required. Import them with import_predictions --ranked."
        )
    labels: dict[str, list[str]] = {key: [] for key in ids}
    with explain_full_disk("the ranked labels were not read"), open_store(corpus_name) as store:
        store.view("ranked", [_file(corpus_name, predictions)], RANKED_SCHEMA)
        store.rows("asked", texts(id=labels))
        for batch in store.query("ranked_of"):
            labels |= {row["id"]: row["labels"] for row in batch.to_pylist()}
    return labels


def add_rankings(
    corpus_name: str, manifest: Manifest, scores: Iterable[tuple[str, Scores]], *, name: str, version: str, source: str
) -> tuple[Manifest, Predictions]:
    """Write the file of a ranked predictor.

    Return a manifest that includes the predictor, and the predictor's entry in it. The manifest is not saved. If
    `manifest` already has the same predictions, it is returned unchanged. The caller must hold layout.lock_corpus.

    scores: a pair of document id and scores for each document

    Raise CorpusError if the name is already used, or if the predictor exists with different labels.
    """
    check_name(name, version, manifest, ranked=True)
    table = _table(scores)
    previous = manifest.predictions_of(name, version)
    if previous and _is_same(corpus_name, previous, manifest, table, source):
        return manifest, previous
    file = new_file(corpus_dir(corpus_name) / "predictions", manifest.predictions)
    pq.write_table(table, file)
    sync(file)
    sync(file.parent)
    return with_predictions(
        manifest, file, name=name, version=version, rows=len(table), mapping={}, source=source, ranked=True
    )


def _table(scores: Iterable[tuple[str, Scores]]) -> pa.Table:
    rows = sorted((key, rank_labels(label_scores), label_scores) for key, label_scores in scores if label_scores)
    columns = [
        [key for key, _, _ in rows],
        [labels for _, labels, _ in rows],
        [[label_scores[label] for label in labels] for _, labels, label_scores in rows],
    ]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, RANKED_SCHEMA, strict=True)],
        schema=RANKED_SCHEMA,
    )


def _is_same(corpus_name: str, previous: Predictions, manifest: Manifest, table: pa.Table, source: str) -> bool:
    """Return whether the predictor already has the same labels and the corpus has not grown since then.

    Raise CorpusError if the labels differ for a record that was already in the corpus.
    """
    earlier, current = (
        {row.pop("id"): row for row in rows.to_pylist()}
        for rows in (pq.read_table(_file(corpus_name, previous), schema=RANKED_SCHEMA), table)
    )
    grown = previous.posts_sha256 != manifest.posts_sha256
    compared = earlier if grown else earlier | current
    if changed := sorted(key for key in compared if earlier.get(key) != current.get(key)):
        raise CorpusError(
            f"{source} differs from {previous}, which was imported from {previous.source}, in "
            f"{listed(changed, len(changed), 'record')}. Import it with another --version. Nothing was imported."
        )
    return not grown


def _file(corpus_name: str, predictions: Predictions) -> Path:
    return corpus_dir(corpus_name) / "predictions" / predictions.file
