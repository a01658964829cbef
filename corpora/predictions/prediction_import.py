"""Import a predictor from a file with a single label for each post or record, or with ranked labels (a TREC run).

A file is imported completely or not at all. A file with single labels must cover every post. Otherwise, draws would be
limited to the posts that happen to be in the file. A run need not contain every record.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from corpora.core import CorpusError, listed
from corpora.engines import Store, open_store
from corpora.predictions.prediction_rows import EVERY_LABEL, Mapped, Notes, Prediction, classes, read_lines
from corpora.predictions.predictor_labels import check_name
from corpora.predictions.rankings import add_rankings, read_run
from corpora.sources.compression import Progress, check_file, format_of
from corpora.sources.readers import header_of
from corpora.storage.intake import LINE, Stage, begin_import, check_repeats, first_ids, new_file, write_file
from corpora.storage.layout import (
    Asked,
    Manifest,
    Predictions,
    check_records,
    manifest_of,
    with_predictions,
    write_manifest,
)
from corpora.storage.schemas import PREDICTIONS_SCHEMA
from corpora.vocabulary.concept_index import vocabulary_named

_STAGED = pa.schema([LINE, *PREDICTIONS_SCHEMA])
_STAGING = "staging/predictions.parquet"


@dataclass(frozen=True)
class Imported:
    """The result of an import.

    strangers: number of ids in the file that are not in the corpus
    first_strangers: the first of these ids
    notes: notes on the file's labels
    of_records: whether the corpus contains records rather than posts
    already: whether the same predictions were already imported
    """

    predictions: Predictions
    strangers: int
    first_strangers: list[str]
    notes: Notes
    of_records: bool
    already: bool = False


def import_predictions(
    corpus_name: str,
    path: Path,
    *,
    name: str,
    version: str,
    declared: Mapped,
    columns: dict[str, str] | None = None,
    format: str | None = None,
    progress: Progress | None = None,
) -> Imported:
    """Import a predictor's labels, which are languages for posts and classes for records.

    Importing the same file again has no effect.

    declared: our equivalents of the classifier's unknown labels (prediction_rows.py)
    columns: column names of the file, by our field names
    progress: called with the number of bytes read

    Raise CorpusError and import nothing if the name is already used, or if a post has no valid prediction in the file.
    """
    check_file(path, format)
    checked = partial(_checked, corpus_name, name, version, declared)
    with begin_import(corpus_name, f"nothing was imported from {path}", checked) as (directory, manifest):
        if (of_records := bool(manifest.fields)) and not columns:
            _check_header(path, format)
        notes, valid = Notes(), EVERY_LABEL if of_records else ()
        lines = read_lines(path, declared, columns, format, notes, progress=progress, also=valid)
        imported = _register(corpus_name, directory, manifest, lines, path, classes(declared), name, version)
    return replace(imported, notes=notes)


def register_answers(
    corpus_name: str, predictions: Iterable[Prediction], *, name: str, version: str, provenance: Asked
) -> Imported:
    """Register a language model's answers as a predictor, in the same way as a file of predictions."""
    checked = partial(_checked, corpus_name, name, version, {})
    with begin_import(corpus_name, "the predictor was not registered", checked) as (directory, manifest):
        lines, source = enumerate(predictions, 1), Path(provenance.model)
        return _register(corpus_name, directory, manifest, lines, source, {}, name, version, provenance)


def _register(
    corpus_name: str,
    directory: Path,
    manifest: Manifest,
    lines: Iterable[tuple[int, Prediction]],
    source: Path,
    mapping: Mapped,
    name: str,
    version: str,
    provenance: Asked | None = None,
) -> Imported:
    """Stage and check predictions, and add them to the corpus's manifest. The caller must hold the corpus's lock.

    source: the predictions' file, for messages and the manifest
    """
    staged, of_records = directory / _STAGING, bool(manifest.fields)
    with Stage(staged, _STAGED) as stage:
        for line, prediction in lines:
            stage.add((line, *prediction))
    with open_store(corpus_name, manifest=manifest) as store:
        store.view("staged", [staged], _STAGED)
        _check_ids(store, corpus_name, source, of_records)
        strangers = first_ids(store, "predictions_strange")
        previous = manifest.predictions_of(name, version)
        if previous and _is_same(store, directory, previous, manifest, mapping, source):
            return Imported(previous, *strangers, Notes(), of_records, already=True)
        file = new_file(directory / "predictions", manifest.predictions)
        write_file(file, PREDICTIONS_SCHEMA, store.query("predictions_kept"))
    terms = {"rows": manifest.rows, "mapping": mapping, "source": source.name, "asked": provenance}
    manifest, predictions = with_predictions(manifest, file, name=name, version=version, **terms)
    write_manifest(corpus_name, manifest)
    return Imported(predictions, *strangers, Notes(), of_records)


def _checked(corpus_name: str, name: str, version: str, declared: Mapped) -> Manifest:
    """Return the corpus's manifest. Raise CorpusError if these predictions cannot be added to the corpus."""
    manifest = manifest_of(corpus_name)
    check_name(name, version, manifest)
    if manifest.fields and declared:
        raise CorpusError(
            f"Corpus {corpus_name} contains records, but --map is only for posts. Remove --map and rename the labels "
            "in the file."
        )
    return manifest


def _check_header(path: Path, format: str | None) -> None:
    """Raise CorpusError if the file has no label column, perhaps because it has a score column for each label."""
    header = header_of(path, format or format_of(path) or "")
    if "id" in header and "label" not in header:
        raise CorpusError(
            f"{path} has no column label. Its columns are: {', '.join(header[:20])}. Map it with --column "
            "label=COLUMN. If the columns are scores of labels, use the file with `assay evaluate` instead."
        )


def _check_ids(store: Store, corpus_name: str, path: Path, of_records: bool) -> None:
    check_repeats(store, path)
    missing, first_missing = first_ids(store, "predictions_missing")
    if missing:
        noun, instead = ("record", "class") if of_records else ("post", "language")
        raise CorpusError(
            f"{path} lacks {listed(first_missing, missing, noun)}. Write one row for each {noun} in corpus "
            f"{corpus_name}, with und if the classifier assigns no {instead}. Nothing was imported from the file."
        )


def _is_same(
    store: Store, directory: Path, previous: Predictions, manifest: Manifest, mapping: Mapped, path: Path
) -> bool:
    """Return whether the staged predictions are the same as the earlier ones and cover the same posts.

    Posts may have been added to the corpus since the earlier import.

    Raise CorpusError if the predictions differ for a post covered by both.
    """
    store.view("earlier", [directory / "predictions" / previous.file], PREDICTIONS_SCHEMA)
    changed, first_changed = first_ids(store, "predictions_changed")
    if changed or previous.mapping != mapping:
        difference = f"the labels of {listed(first_changed, changed, 'post')}" if changed else "the declared classes"
        raise CorpusError(
            f"{path} differs from {previous}, which was imported from {previous.source}, in {difference}. Import it "
            "with another --version. Nothing was imported from the file."
        )
    return previous.posts_sha256 == manifest.posts_sha256


# --- Import of a TREC run as a ranked predictor for a corpus of records.
#
# A file is imported completely or not at all. Records that are not in the file get no labels. The format is described
# in corpora/predictions/rankings.py.


@dataclass(frozen=True)
class ImportedRun:
    """The result of importing a run.

    without: number of records in the corpus that are not in the run
    strangers: ids in the run that are not in the corpus, in file order
    already: whether the same run was already imported
    """

    predictions: Predictions
    without: int
    strangers: list[str]
    already: bool


def import_ranked(
    corpus_name: str,
    path: Path,
    *,
    name: str,
    version: str,
    vocabulary: str = "",
    progress: Progress = lambda count: None,
) -> ImportedRun:
    """Import a run as a ranked predictor for the corpus. Importing the same file again has no effect.

    vocabulary: name of a vocabulary whose newest version must contain the run's labels; "" allows any label
    progress: called with the number of bytes read

    Raise CorpusError and import nothing if the name is already used or the file has a fault.
    """

    def checked() -> Manifest:
        manifest = manifest_of(corpus_name)
        check_records(corpus_name, manifest)
        check_name(name, version, manifest, ranked=True)
        return manifest

    concepts = set(vocabulary_named(vocabulary).concepts.values_list("key", flat=True)) if vocabulary else None
    with begin_import(corpus_name, f"nothing was imported from {path}", checked) as (_, manifest):
        with open_store(corpus_name, manifest=manifest) as store:
            ids = [key for batch in store.query("ids") for key in batch.column("id").to_pylist()]
        run = read_run(path, ids, concepts, progress)
        if run.without == len(ids):
            raise CorpusError(
                f"{path} contains none of the {len(ids):,} records in corpus {corpus_name}. Check the file."
            )
        new_manifest, predictions = add_rankings(
            corpus_name, manifest, run.scores.items(), name=name, version=version, source=path.name
        )
        if new_manifest is not manifest:
            write_manifest(corpus_name, new_manifest)
    return ImportedRun(predictions, run.without, run.outside, new_manifest is manifest)
