"""From a file of predictions to a predictor of a corpus; and a file's predictions for whoever needs no corpus.

A file is taken as a whole or not at all, and into a corpus only where it says one thing of every post: else a draw
would be made from those that it happens to have.
"""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from corpora.core.languages import LANGUAGES, UND
from corpora.core.predictions import (
    FIELDS,
    OBLIGATORY,
    Mapped,
    Prediction,
    UnknownLabel,
    classes,
    is_label,
    read_prediction,
)
from corpora.core.records import RecordError
from corpora.core.voting import DETECTOR_NAMES
from corpora.errors import CorpusError
from corpora.ingest import MAX_LINE, check_file
from corpora.readers import Columns, Fault, format_of, read_rows
from corpora.store import (
    PREDICTIONS_SCHEMA,
    Manifest,
    Predictions,
    Store,
    asking,
    changing,
    digest_of,
    full_disk_explained,
    manifest_of,
    part_name,
    sync,
    write_manifest,
)

Progress = Callable[[int], object]

_BATCH_ROWS = 10_000
_STAGED = pa.schema([pa.field("line", pa.int64(), nullable=False), *PREDICTIONS_SCHEMA])
_STAGING = "staging/predictions.parquet"
_NAMED = 5  # faults that are named; the others are counted
_RESERVED = (*DETECTOR_NAMES, "majority")


@dataclass(frozen=True)
class Imported:
    """What became of a file. strangers: how many ids the corpus has not, and the first of them."""

    predictions: Predictions
    strangers: int
    first_strangers: list[str]
    already: bool = False


def named(manifest: Manifest, name: str, version: str) -> Predictions | None:
    """What a corpus has of a predictor by name and version."""
    return next((known for known in manifest.predictions if (known.name, known.version) == (name, version)), None)


def listed(names: list[str], total: int, noun: str) -> str:
    """What faults to name: `3 ids: a, b, c`, or `9 ids, the first: a, b, c, d, e`."""
    named = f"{total:,} {noun}" + ("" if total == 1 else "s")
    return f"{named}{', the first' if total > _NAMED else ''}: {', '.join(names[:_NAMED])}"


def import_predictions(
    corpus_name: str,
    path: Path,
    *,
    name: str,
    version: str,
    declared: Mapped,
    columns: dict[str, str] | None = None,
    format: str | None = None,
    progress: Progress = lambda count: None,
) -> Imported:
    """Register a file as what a predictor says of the corpus; nothing changes where it is registered already.

    declared: labels of the file that are not ours (core/predictions.py). `progress` hears of bytes read. CorpusError
    where the name is taken, or the file is not one right prediction for every post; then nothing is kept of it.
    """
    _check_name(name, version)
    check_file(path, format)
    if manifest_of(corpus_name).fields:
        raise CorpusError(
            f"Corpus {corpus_name} holds records, whose language is declared; predictions of it are about posts."
        )
    if not manifest_of(corpus_name).rows:
        raise CorpusError(f"Corpus {corpus_name} holds no posts; add some with import_corpus.")
    with changing(corpus_name) as directory, full_disk_explained(f"nothing of {path} was imported"):
        manifest = manifest_of(corpus_name)
        staged = directory / _STAGING
        _stage(staged, read_lines(path, declared, columns, format, progress), path)
        with asking(corpus_name, manifest=manifest) as store:
            store.view("staged", [staged], _STAGED)
            _check_ids(store, corpus_name, path)
            strangers = _ids(store, "predictions_strange")
            before = named(manifest, name, version)
            if before and _is_same(store, directory, before, manifest, classes(declared), path):
                return Imported(before, *strangers, already=True)
            file = directory / "predictions" / _fresh_name(manifest)
            with pq.ParquetWriter(file, PREDICTIONS_SCHEMA) as writer:
                for batch in store.query("predictions_kept"):
                    writer.write_batch(batch.cast(PREDICTIONS_SCHEMA))
        sync(file)
        sync(file.parent)
        predictions = Predictions(
            name=name,
            version=version,
            file=file.name,
            rows=manifest.rows,
            sha256=digest_of(file),
            posts_sha256=manifest.posts_sha256,
            mapping=classes(declared),
            source=path.name,
        )
        others = [known for known in manifest.predictions if known != before]
        write_manifest(corpus_name, replace(manifest, predictions=(*others, predictions)))
    return Imported(predictions, *strangers)


def read_predictions(
    path: Path,
    declared: Mapped,
    *,
    columns: dict[str, str] | None = None,
    format: str | None = None,
    also: Collection[str] = (),
) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Id -> label of a file that is about no corpus; and its coarse classes with the labels that they stand for.

    Renamed and checked as for import_predictions; also: labels that are right besides. CorpusError for what is
    wrong with the file.
    """
    check_file(path, format)
    labels: dict[str, str] = {}
    first: dict[str, int] = {}
    repeated: list[str] = []
    total = 0
    for line, (key, label, _) in read_lines(path, declared, columns, format, lambda count: None, also):
        if key in labels:
            total += 1
            if len(repeated) < _NAMED:
                repeated.append(_repeat(key, line, first[key]))
            continue
        labels[key], first[key] = label, line
    if total:
        raise CorpusError(_repeats(path, repeated, total))
    if not labels:
        raise CorpusError(f"{path} holds no rows.")
    return labels, classes(declared)


def read_lines(
    path: Path,
    declared: Mapped,
    columns: dict[str, str] | None,
    format: str | None,
    progress: Progress,
    also: Collection[str] = (),
) -> Iterator[tuple[int, Prediction]]:
    """Every prediction of a file with its line. CorpusError for a row that is none; unknown labels are told at once."""
    places = Columns({field: field for field in FIELDS} | (columns or {}), OBLIGATORY, bare=True)
    unknown: dict[str, tuple[int, str]] = {}
    rows = swapped = 0
    for line, raw in read_rows(path, format or format_of(path) or "", places, MAX_LINE, progress):
        try:
            if isinstance(raw, Fault):
                raise RecordError(raw.reason)
            yield line, read_prediction(raw, declared, also)
        except UnknownLabel as error:
            rows += 1
            swapped += _is_code(raw.get("id"), declared, also)
            if len(unknown) <= _NAMED:
                unknown.setdefault(error.label, (line, str(error)))
        except RecordError as error:
            raise CorpusError(f"{path}, line {line:,}: {error} Nothing of the file was taken.") from error
    if swapped * 2 > rows:
        line, _ = next(iter(unknown.values()))
        raise CorpusError(
            f"{path}: the columns seem to be swapped: in {swapped:,} rows, the first in line {line:,}, the id is a "
            "language code and the label is none. The id comes first, then the label; or name the columns of a file "
            "with a header with --column id=COLUMN and --column label=COLUMN. Nothing of the file was taken."
        )
    if unknown:
        told = " ".join(f"Line {line:,}: {why}" for line, why in list(unknown.values())[:_NAMED])
        more = " There are more." if len(unknown) > _NAMED else ""
        raise CorpusError(
            f"{path} has labels that are not known here. {told}{more} Say what they stand for with --map "
            f"{_example(next(iter(unknown)))}; if line 1 is a header, name its columns with --column. "
            "Nothing of the file was taken."
        )


def _is_code(value: object, declared: Mapped, also: Collection[str]) -> bool:
    return isinstance(value, str) and (is_label(value.strip()) or value.strip() in {*declared, *also})


def _example(label: str) -> str:
    """How an unknown label may be declared: zh=zh-CN,zh-TW; of most, nobody here knows what they mean."""
    finer = LANGUAGES[label].labels if label in LANGUAGES else ()
    return f"{label}={','.join(finer) or f'LABEL, or --map {label}={UND} where it is no language'}"


def _check_name(name: str, version: str) -> None:
    for what, value in (("name", name), ("version", version)):
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", value):
            raise CorpusError(
                f"{value!r} cannot be a predictor's {what}; use 1 to 64 letters, digits, dots, hyphens or underscores."
            )
    if name in _RESERVED:
        raise CorpusError(f"{name} is a predictor that every corpus has; choose another name.")


def _stage(staged: Path, predictions: Iterator[tuple[int, Prediction]], path: Path) -> None:
    """Write the predictions with their lines to the staging file."""
    staged.parent.mkdir(exist_ok=True)
    batch: list[tuple[int, str, str, float | None]] = []
    rows = 0
    with pq.ParquetWriter(staged, _STAGED) as writer:
        for line, prediction in predictions:
            rows += 1
            batch.append((line, *prediction))
            if len(batch) == _BATCH_ROWS:
                writer.write_batch(_arrow(batch))
                batch.clear()
        writer.write_batch(_arrow(batch))
    if not rows:
        raise CorpusError(f"{path} holds no rows.")


def _arrow(batch: list[tuple[int, str, str, float | None]]) -> pa.RecordBatch:
    columns = list(zip(*batch, strict=True)) or [()] * len(_STAGED)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _STAGED, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_STAGED)


def _check_ids(store: Store, corpus_name: str, path: Path) -> None:
    if repeated := store.query("predictions_repeated", _NAMED).read_all().to_pylist():
        told = [_repeat(row["id"], row["line"], row["first_line"]) for row in repeated]
        raise CorpusError(_repeats(path, told, repeated[0]["total"]))
    missing, first = _ids(store, "predictions_missing")
    if missing:
        raise CorpusError(
            f"{path} lacks {listed(first, missing, 'post')}. Write one row for every post of corpus {corpus_name}, "
            "und where the classifier names no language. Nothing of the file was taken."
        )


def _repeat(key: str, line: int, first_line: int) -> str:
    return f"{key} (line {line:,}, first in line {first_line:,})"


def _repeats(path: Path, told: list[str], total: int) -> str:
    return f"{path} repeats {listed(told, total, 'id')}. Keep one row for each post. Nothing of the file was taken."


def _ids(store: Store, query: str) -> tuple[int, list[str]]:
    """How many rows a query has in all, and the first of their ids."""
    rows = store.query(query, _NAMED).read_all().to_pylist()
    return (rows[0]["total"] if rows else 0), [row["id"] for row in rows]


def _is_same(
    store: Store, directory: Path, before: Predictions, manifest: Manifest, mapping: Mapped, path: Path
) -> bool:
    """Whether the staged predictions are those of before; False where they add to them posts that are new since.

    CorpusError where they say something else of a post that was there before.
    """
    store.view("earlier", [directory / "predictions" / before.file], PREDICTIONS_SCHEMA)
    changed, first = _ids(store, "predictions_changed")
    spelled = f"{before.name}@{before.version}"
    if changed or before.mapping != mapping:
        why = f"says something else of {listed(first, changed, 'post')}" if changed else "declares other classes"
        raise CorpusError(
            f"{path} {why} than {spelled} does, which was imported from {before.source}. Import it with another "
            "--version. Nothing of the file was taken."
        )
    return before.posts_sha256 == manifest.posts_sha256


def _fresh_name(manifest: Manifest) -> str:
    """A name that the manifest does not use yet, so that earlier predictions stay whole until these are committed."""
    used = [int(Path(known.file).stem) for known in manifest.predictions]
    return part_name(max(used, default=0) + 1)
