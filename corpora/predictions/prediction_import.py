"""From a file to a predictor of a corpus: one label for every post or record, or the labels that a system ranks (a TREC
run).

A file is taken as a whole or not at all. Single labels must be there for every post: otherwise a draw would be made
from the posts that the file happens to have. A run need not say something of every record.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from corpora.core import CorpusError, listed
from corpora.engines import Store, asking
from corpora.predictions.prediction_rows import EVERY_LABEL, Mapped, Notes, classes, read_lines
from corpora.predictions.predictor_labels import check_name
from corpora.predictions.rankings import read_run, with_rankings
from corpora.sources.compression import Progress, check_file, format_of
from corpora.sources.readers import header_of
from corpora.storage.intake import LINE, Stage, check_repeats, first_ids, new_file, taking, write_file
from corpora.storage.layout import Manifest, Predictions, check_records, manifest_of, with_predictions, write_manifest
from corpora.storage.schemas import PREDICTIONS_SCHEMA
from corpora.vocabulary.concept_index import vocabulary_named

_STAGED = pa.schema([LINE, *PREDICTIONS_SCHEMA])
_STAGING = "staging/predictions.parquet"


@dataclass(frozen=True)
class Imported:
    """What became of a file. strangers: how many ids are not in the corpus, and the first of them; told: notes on its
    labels. of_records: whether it is about records and not about posts.
    """

    predictions: Predictions
    strangers: int
    first_strangers: list[str]
    told: Notes
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
    """Register a file as what a predictor says of the corpus: the languages of posts, or classes of records. Nothing
    changes if it is registered already.

    declared: what unknown labels of the file stand for (prediction_rows.py). `progress` is told of bytes read.
    CorpusError if the name is taken, or if the file does not have one valid prediction for every post; then nothing of
    it is kept.
    """
    check_file(path, format)
    checked = partial(_checked, corpus_name, name, version, declared)
    with taking(corpus_name, f"nothing of {path} was imported", checked) as (directory, manifest):
        if (of_records := bool(manifest.fields)) and not columns:
            _check_header(path, format)
        staged, told, also = directory / _STAGING, Notes(), EVERY_LABEL if of_records else ()
        with Stage(staged, _STAGED) as stage:
            for line, prediction in read_lines(path, declared, columns, format, told, progress=progress, also=also):
                stage.add((line, *prediction))
        with asking(corpus_name, manifest=manifest) as store:
            store.view("staged", [staged], _STAGED)
            _check_ids(store, corpus_name, path, of_records)
            strangers = first_ids(store, "predictions_strange")
            before = manifest.predictions_of(name, version)
            if before and _is_same(store, directory, before, manifest, classes(declared), path):
                return Imported(before, *strangers, told, of_records, already=True)
            file = new_file(directory / "predictions", manifest.predictions)
            write_file(file, PREDICTIONS_SCHEMA, store.query("predictions_kept"))
        terms = {"rows": manifest.rows, "mapping": classes(declared), "source": path.name}
        manifest, predictions = with_predictions(manifest, file, name=name, version=version, **terms)
        write_manifest(corpus_name, manifest)
    return Imported(predictions, *strangers, told, of_records)


def _checked(corpus_name: str, name: str, version: str, declared: Mapped) -> Manifest:
    """The manifest. CorpusError if the corpus cannot have these predictions."""
    manifest = manifest_of(corpus_name)
    check_name(name, version, manifest)
    if manifest.fields and declared:
        raise CorpusError(
            f"Corpus {corpus_name} holds records, whose classes have no other names here; leave --map out, and rename "
            "the labels in the file."
        )
    if not manifest.rows:
        raise CorpusError(f"Corpus {corpus_name} holds no posts; add some with import_corpus.")
    return manifest


def _check_header(path: Path, format: str | None) -> None:
    """CorpusError for a file that has no labels of records, but perhaps their scores."""
    header = header_of(path, format or format_of(path) or "")
    if "id" in header and "label" not in header:
        raise CorpusError(
            f"{path} has no column label; its columns are: {', '.join(header[:20])}. Name it with --column "
            "label=COLUMN; if these are scores by label, measure the file with `assay evaluate`, which takes it as it "
            "is."
        )


def _check_ids(store: Store, corpus_name: str, path: Path, of_records: bool) -> None:
    check_repeats(store, path)
    missing, first = first_ids(store, "predictions_missing")
    if missing:
        noun, instead = ("record", "class") if of_records else ("post", "language")
        raise CorpusError(
            f"{path} lacks {listed(first, missing, noun)}. Write one row for every {noun} of corpus {corpus_name}, "
            f"with und if the classifier names no {instead}. Nothing of the file was taken."
        )


def _is_same(
    store: Store, directory: Path, before: Predictions, manifest: Manifest, mapping: Mapped, path: Path
) -> bool:
    """Whether the staged predictions are the same as before; False if they add posts that are new since.

    CorpusError if they say something else of a post that was there before.
    """
    store.view("earlier", [directory / "predictions" / before.file], PREDICTIONS_SCHEMA)
    changed, first = first_ids(store, "predictions_changed")
    if changed or before.mapping != mapping:
        why = f"says something else of {listed(first, changed, 'post')}" if changed else "declares other classes"
        raise CorpusError(
            f"{path} {why} than {before} does, which was imported from {before.source}. Import it with another "
            "--version. Nothing of the file was taken."
        )
    return before.posts_sha256 == manifest.posts_sha256


# --- From a TREC run to a ranked predictor of a corpus of records.
#
# A file is taken as a whole or not at all. It need not say something of every record; those of which it says nothing
# have no ranked labels. predictions/rankings.py says what a run is.


@dataclass(frozen=True)
class ImportedRun:
    """What became of a run. without: how many records it says nothing of; strangers: the ids that are not in the
    corpus, in the order of the file."""

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
    """Register a run as what a system ranks for the corpus's records. Nothing changes if it is registered already.

    vocabulary: the name of the one whose concepts the labels must be, in its newest version; any label may be if it is
    empty. `progress` is told of bytes read. CorpusError if the name is taken, or if something is wrong with the file;
    then nothing of it is kept.
    """

    def checked() -> Manifest:
        manifest = manifest_of(corpus_name)
        check_records(corpus_name, manifest)
        check_name(name, version, manifest, ranked=True)
        return manifest

    concepts = set(vocabulary_named(vocabulary).concepts.values_list("key", flat=True)) if vocabulary else None
    with taking(corpus_name, f"nothing of {path} was imported", checked) as (_, manifest):
        with asking(corpus_name, manifest=manifest) as store:
            ids = [key for batch in store.query("ids") for key in batch.column("id").to_pylist()]
        run = read_run(path, ids, concepts, progress)
        if run.without == len(ids):
            raise CorpusError(
                f"{path} has no line of any of the {len(ids):,} records of corpus {corpus_name}; give a run of these."
            )
        after, predictions = with_rankings(
            corpus_name, manifest, run.scores.items(), name=name, version=version, source=path.name
        )
        if after is not manifest:
            write_manifest(corpus_name, after)
    return ImportedRun(predictions, run.without, run.outside, after is manifest)
