"""What ranked predictors say: for each document the labels that a system ranks for it. How they are kept and read.

They come from a file (import_ranked.py) or are made here (suggest.py). A document for which a system names nothing has
no row.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from corpora.core import CorpusError, listed
from corpora.core.rankings import ranked
from corpora.engines import asking, full_disk_explained
from corpora.predictors import check_name, find_imported
from corpora.schemas import RANKED_SCHEMA
from corpora.storage.intake import new_file
from corpora.storage.layout import Manifest, Predictions, corpus_dir, sync, with_predictions

Scores = Mapping[str, float]  # label -> score


def ranked_for(corpus_name: str, spelled: str, ids: Iterable[str]) -> dict[str, list[str]]:
    """Id -> the labels that the predictor ranks for that document, the best first; none where it names none.

    spelled: `mine@2`, or `mine` if it has one version. CorpusError if the corpus has no such predictor, or if it gives
    each document one label and ranks none.
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
    """The manifest with a ranked predictor, which the caller writes, and the predictor; the same manifest if it has it
    already and it says the same.

    scores: (id, its labels with their scores), each document once. For who has the corpus from locks.changing.
    CorpusError if the name is taken, or if the predictor has said something else before.
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
    """Whether the predictor says this already; False if it says nothing else, but the corpus has grown since.

    CorpusError if it has said something else of a record that was there before.
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
