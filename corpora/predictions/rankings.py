"""Ranked labels for documents: TREC run files, the order of labels, and ranked predictors.

A run has a line for each label of a document, with six fields separated by white space:

    31999R1400 Q0 2443 1 0.93 mysystem        document, Q0, label, rank, score, system

Labels are sorted by descending score, and labels with the same score by their text. The rank field is ignored. A file
contains the run of one system and may be compressed. In a corpus, a document without labels has no row.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isfinite
from pathlib import Path

import pyarrow as pa

from corpora.core import CorpusError, listed
from corpora.core.arrow import pq
from corpora.core.records import RecordError, read_number
from corpora.engines import asking, full_disk_explained, texts
from corpora.predictions.predictor_labels import check_name, find_imported
from corpora.sources.compression import Progress, check_file
from corpora.sources.text import field_count
from corpora.storage.intake import faulty, new_file, no_rows, text_lines
from corpora.storage.layout import Manifest, Predictions, corpus_dir, sync, with_predictions
from corpora.storage.schemas import RANKED_SCHEMA
from corpora.vocabulary.thesaurus import VocabularyError, read_key

Ranking = Sequence[str]


def ranked(scores: Mapping[str, float]) -> list[str]:
    """Return the labels by descending score. Labels with the same score are sorted by their text."""
    return sorted(scores, key=lambda label: (-scores[label], label))


def joined(rankings: Iterable[Ranking]) -> list[str]:
    """Combine several rankings into one. A label's score is the sum of 1/rank over the rankings that contain it.

    Labels with the same score are sorted by their text.

    Raise ValueError if a ranking contains a label twice.
    """
    parts: dict[str, list[float]] = {}
    for ranking in rankings:
        if len(set(ranking)) < len(ranking):
            raise ValueError("A ranking contains a label twice. Each label must have one rank.")
        for rank, label in enumerate(ranking, 1):
            parts.setdefault(label, []).append(1 / rank)
    # The result of fsum does not depend on the order of the rankings. With an ordinary sum, rounding could give equal
    # scores different values.
    return ranked({label: fsum(label_scores) for label, label_scores in parts.items()})


# --- TREC runs.


CELLS = ("document", "Q0", "label", "rank", "score", "system")
SHOWN = 40  # An error message shows this many characters of a faulty cell.
_FORMAT = "trec"


@dataclass(frozen=True)
class Run:
    """A system's scores for documents.

    scores: a mapping from label to score for each requested document; empty if the run has no label for it
    outside: the documents in the file that were not requested, in the order of the file
    without: the number of requested documents that are not in the file
    """

    system: str
    scores: dict[str, dict[str, float]]
    outside: list[str]
    without: int

    def rankings(self) -> dict[str, list[str]]:
        """Return each document's labels, best first."""
        return {document: ranked(scores) for document, scores in self.scores.items()}


def read_run(
    path: Path, documents: Collection[str], labels: Collection[str] | None, progress: Progress = lambda count: None
) -> Run:
    """Read a run.

    documents: the ids of the requested documents
    labels: the valid labels, or None if any label is valid
    progress: a function that is called with the number of bytes read

    Raise CorpusError if a line is invalid or contradicts an earlier line.
    """
    check_file(path, _FORMAT)
    scores: dict[str, dict[str, float]] = {document: {} for document in documents}
    outside: dict[str, set[str]] = {}
    interned: dict[str, str] = {}  # A label occurs in thousands of lines. They all share one string to save memory.
    system = ""
    for number, line in text_lines(path, _FORMAT, progress):
        try:
            document, written, score, system = _cells(line, system)
            label = interned.get(written) or interned.setdefault(written, _label(written, labels))
            document_scores = scores.get(document)
            if label in (outside.setdefault(document, set()) if document_scores is None else document_scores):
                raise RecordError(f"{document} has the label {label} twice. Each label must have one score.")
        except (RecordError, VocabularyError) as error:
            raise faulty(path, _FORMAT, number, str(error)) from error
        if document_scores is None:
            outside[document].add(label)
        else:
            document_scores[label] = score
    if not system:
        raise no_rows(path)
    return Run(system, scores, list(outside), sum(not document_scores for document_scores in scores.values()))


def _cells(line: str, system: str) -> tuple[str, str, float, str]:
    """Return the document, label, score and system from a line of a run.

    system: the system of the earlier lines, or ""

    Raise RecordError if the line is invalid or belongs to a different system.
    """
    # An id may contain a no-break space, so the line is split only at ASCII white space, which bytes.split does.
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


# --- Ranked predictors of a corpus. They come from a file (prediction_import.py) or from concept_rankers.py.


Scores = Mapping[str, float]  # from label to score


def ranked_for(corpus_name: str, spelled: str, ids: Iterable[str]) -> dict[str, list[str]]:
    """Return a mapping from document id to the labels that a predictor ranks for it, best first.

    spelled: the predictor's name, such as `mine@2`, or `mine` if it has only one version

    Raise CorpusError if the corpus has no such predictor, or if the predictor does not rank labels.
    """
    predictions = find_imported(corpus_name, spelled)
    if not predictions.ranked:
        raise CorpusError(
            f"The predictor {predictions} of corpus {corpus_name} assigns one label per record, but ranked labels are "
            "required. Import them with import_predictions --ranked."
        )
    labels: dict[str, list[str]] = {key: [] for key in ids}
    with full_disk_explained("the ranked labels were not read"), asking(corpus_name) as store:
        store.view("ranked", [_file(corpus_name, predictions)], RANKED_SCHEMA)
        store.rows("asked", texts(id=labels))
        for batch in store.query("ranked_of"):
            labels |= {row["id"]: row["labels"] for row in batch.to_pylist()}
    return labels


def with_rankings(
    corpus_name: str, manifest: Manifest, scores: Iterable[tuple[str, Scores]], *, name: str, version: str, source: str
) -> tuple[Manifest, Predictions]:
    """Write the file of a ranked predictor.

    Return a manifest that includes the predictor, and the entry of the predictor in this manifest.

    The manifest is not saved. If the given manifest already has the same predictions, it is returned unchanged. The
    caller must hold layout.changing.

    scores: (document id, mapping from label to score) pairs, one for each document

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
    rows = sorted((key, ranked(label_scores), label_scores) for key, label_scores in scores if label_scores)
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
    """Return whether the predictor already has the same labels.

    Return False if the labels are the same but the corpus has grown.

    Raise CorpusError if the labels of a record that was already in the corpus differ.
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
