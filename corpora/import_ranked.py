"""From a TREC run to a ranked predictor of a corpus of records.

A file is taken as a whole or not at all. It need not say something of every record; those of which it says nothing
have no ranked labels. trec_run.py says what a run is.
"""

from dataclasses import dataclass
from pathlib import Path

from corpora.core import CorpusError
from corpora.engines import asking, full_disk_explained
from corpora.predictors import check_name
from corpora.ranked import with_rankings
from corpora.sources.compression import Progress
from corpora.storage.layout import Predictions, check_records, manifest_of, write_manifest
from corpora.storage.locks import changing
from corpora.trec_run import read_run
from corpora.vocabulary.concept_index import vocabulary_named


@dataclass(frozen=True)
class Imported:
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
) -> Imported:
    """Register a run as what a system ranks for the corpus's records. Nothing changes if it is registered already.

    vocabulary: the name of the one whose concepts the labels must be, in its newest version; any label may be if it is
    empty. `progress` is told of bytes read. CorpusError if the name is taken, or if something is wrong with the file;
    then nothing of it is kept.
    """
    manifest = manifest_of(corpus_name)
    check_records(corpus_name, manifest)
    check_name(name, version, manifest, ranked=True)
    concepts = set(vocabulary_named(vocabulary).concepts.values_list("key", flat=True)) if vocabulary else None
    with changing(corpus_name), full_disk_explained(f"nothing of {path} was imported"):
        manifest = manifest_of(corpus_name)
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
    return Imported(predictions, run.without, run.outside, after is manifest)
