"""Ranked labels of documents: TREC run files, the order of labels, and ranked predictors.

A run has one line per label of a document, with fields separated by white space:

    31999R1400 Q0 2443 1 0.93 mysystem        document, Q0, label, rank, score, system

Labels are ordered by score, ties by id as text; the rank field is ignored. A file holds the run of one system and may
be compressed. A document without labels has no row in a corpus.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isfinite
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from corpora.core import CorpusError, listed
from corpora.core.records import RecordError, read_number
from corpora.engines import asking, full_disk_explained
from corpora.predictions.predictor_labels import check_name, find_imported
from corpora.sources.compression import Progress, check_file
from corpora.sources.rejects import faulty, no_rows, text_lines
from corpora.sources.text import fields_said
from corpora.storage.intake import new_file
from corpora.storage.layout import Manifest, Predictions, corpus_dir, sync, with_predictions
from corpora.storage.schemas import RANKED_SCHEMA
from corpora.vocabulary.thesaurus import VocabularyError, read_key

Ranking = Sequence[str]


def ranked(scores: Mapping[str, float]) -> list[str]:
    """Return labels by descending score, ties by id as text."""
    return sorted(scores, key=lambda label: (-scores[label], label))


def joined(rankings: Iterable[Ranking]) -> list[str]:
    """Fuse rankings into one by the sum of 1/rank of each label, ties by id as text.

    ValueError: a ranking has a label twice
    """
    parts: dict[str, list[float]] = {}
    for ranking in rankings:
        if len(set(ranking)) < len(ranking):
            raise ValueError("A ranking has a label twice; give each label one rank.")
        for rank, label in enumerate(ranking, 1):
            parts.setdefault(label, []).append(1 / rank)
    # fsum does not depend on the order of the systems; ordinary summation would break ties.
    return ranked({label: fsum(each) for label, each in parts.items()})


# --- TREC runs.


CELLS = ("document", "Q0", "label", "rank", "score", "system")
SHOWN = 40  # characters of a faulty cell shown in an error
_FORMAT = "trec"


@dataclass(frozen=True)
class Run:
    """A system's scores for documents.

    scores: label to score by document, empty if it ranks none
    outside: documents of the file that were not asked for, in order
    without: number of documents asked for that it omits
    """

    system: str
    scores: dict[str, dict[str, float]]
    outside: list[str]
    without: int

    def rankings(self) -> dict[str, list[str]]:
        """Return the labels of each document, best first."""
        return {document: ranked(scores) for document, scores in self.scores.items()}


def read_run(
    path: Path,
    documents: Collection[str],
    labels: Collection[str] | None,
    progress: Progress = lambda count: None,
) -> Run:
    """Read a run.

    documents: documents to read
    labels: valid labels, None for any
    progress: called with the number of bytes read
    CorpusError: a line is invalid or contradicts another
    """
    check_file(path, _FORMAT)
    scores: dict[str, dict[str, float]] = {document: {} for document in documents}
    outside: dict[str, set[str]] = {}
    known: dict[str, str] = {}  # one string per label, because a run repeats labels in thousands of lines
    system = ""
    for number, line in text_lines(path, _FORMAT, progress):
        try:
            document, written, score, system = _cells(line, system)
            label = known.get(written) or known.setdefault(written, _label(written, labels))
            found = scores.get(document)
            if label in (outside.setdefault(document, set()) if found is None else found):
                raise RecordError(f"{document} has the label {label} twice; give each label one score.")
        except (RecordError, VocabularyError) as error:
            raise faulty(path, _FORMAT, number, str(error)) from error
        if found is None:
            outside[document].add(label)
        else:
            found[label] = score
    if not system:
        raise no_rows(path)
    return Run(system, scores, list(outside), sum(not found for found in scores.values()))


def _cells(line: str, system: str) -> tuple[str, str, float, str]:
    """Return the document, label, score and system of a line.

    RecordError: the line is invalid, or belongs to another system
    """
    # Split bytes, at ASCII white space only, because an id may contain a no-break space.
    cells = [cell.decode() for cell in line.encode().split()]
    if len(cells) != len(CELLS):
        raise RecordError(f"The row has {fields_said(cells)} where a run has {len(CELLS)}: {', '.join(CELLS)}.")
    document, _, label, _, written, name = cells
    if system and name != system:
        raise RecordError(
            f"the system is {name[:SHOWN]!r}, and {system[:SHOWN]!r} in the lines before; put the lines of each system "
            "into a file of their own."
        )
    score = read_number(written)
    if score is None or not isfinite(score):
        raise RecordError(f"{written[:SHOWN]!r} is not a score; write a finite number such as 0.93.")
    return document, label, score, name


def _label(written: str, labels: Collection[str] | None) -> str:
    if labels is None:
        return read_key(written, "label")
    if written not in labels:
        raise RecordError(f"{written[:SHOWN]!r} is not one of the {len(labels):,} labels; correct it, or leave it out.")
    return written


# --- Ranked predictors of a corpus, from a file (prediction_import.py) or from concept_rankers.py.


Scores = Mapping[str, float]  # score by label


def ranked_for(corpus_name: str, spelled: str, ids: Iterable[str]) -> dict[str, list[str]]:
    """Return the labels that a predictor ranks, best first, by document id.

    spelled: `mine@2`, or `mine` if it has one version
    CorpusError: the corpus has no such predictor, or it does not rank labels
    """
    known = find_imported(corpus_name, spelled)
    if not known.ranked:
        raise CorpusError(
            f"The predictor {known} of corpus {corpus_name} gives each record a single label and ranks none; import "
            "ranked labels with import_predictions --ranked."
        )
    found: dict[str, list[str]] = {key: [] for key in ids}
    with full_disk_explained("the ranked labels were not read"), asking(corpus_name) as store:
        store.view("ranked", [_file(corpus_name, known)], RANKED_SCHEMA)
        store.rows("asked", pa.table({"id": pa.array(list(found), pa.string())}))
        for batch in store.query("ranked_of"):
            found |= {row["id"]: row["labels"] for row in batch.to_pylist()}
    return found


def with_rankings(
    corpus_name: str, manifest: Manifest, scores: Iterable[tuple[str, Scores]], *, name: str, version: str, source: str
) -> tuple[Manifest, Predictions]:
    """Write a ranked predictor's file and return the manifest with it, unsaved, and its entry.

    If the manifest already has the same predictions, both are returned unchanged. The caller must hold locks.changing.

    scores: (id, score by label), each document once
    CorpusError: the name is taken, or the predictor's earlier labels differ
    """
    check_name(name, version, manifest, ranked=True)
    table = _table(scores)
    before = manifest.predictions_of(name, version)
    if before and _is_same(corpus_name, before, manifest, table, source):
        return manifest, before
    file = new_file(corpus_dir(corpus_name) / "predictions", manifest.predictions)
    pq.write_table(table, file)
    sync(file)
    sync(file.parent)
    return with_predictions(
        manifest, file, name=name, version=version, rows=len(table), mapping={}, source=source, ranked=True
    )


def _table(scores: Iterable[tuple[str, Scores]]) -> pa.Table:
    rows = sorted((key, ranked(of), of) for key, of in scores if of)
    columns = [
        [key for key, _, _ in rows],
        [labels for _, labels, _ in rows],
        [[of[label] for label in labels] for _, labels, of in rows],
    ]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, RANKED_SCHEMA, strict=True)],
        schema=RANKED_SCHEMA,
    )


def _is_same(corpus_name: str, before: Predictions, manifest: Manifest, table: pa.Table, source: str) -> bool:
    """Return whether the predictor already has these labels; False if only the corpus has grown.

    CorpusError: the labels of an earlier record differ
    """
    earlier, now = (
        {row.pop("id"): row for row in rows.to_pylist()}
        for rows in (pq.read_table(_file(corpus_name, before), schema=RANKED_SCHEMA), table)
    )
    grown = before.posts_sha256 != manifest.posts_sha256
    asked = earlier if grown else earlier | now
    if changed := sorted(key for key in asked if earlier.get(key) != now.get(key)):
        raise CorpusError(
            f"{source} says something else of {listed(changed, len(changed), 'record')} than {before} does, which was "
            f"imported from {before.source}. Import it with another --version. Nothing of the file was taken."
        )
    return not grown


def _file(corpus_name: str, predictions: Predictions) -> Path:
    return corpus_dir(corpus_name) / "predictions" / predictions.file
