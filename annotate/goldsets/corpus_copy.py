"""Export of a corpus to files that `import_corpus` can read back without loss (`export_corpus`)."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from django.template.loader import render_to_string

from annotate.exchange.row_files import write_lines, write_table
from annotate.goldsets.card import head_of
from annotate.goldsets.set_folder import FORMAT, VERSIONS, ExportError, replacing, write_with_card
from corpora.core.arrow import pc, pq
from corpora.core.languages import UND
from corpora.core.records import columns_of
from corpora.core.values import is_empty
from corpora.engines import check_files
from corpora.storage.layout import Manifest, corpus_dir, digest_of, manifest_of
from corpora.storage.schemas import PREDICTIONS_SCHEMA, RANKED_SCHEMA, schema_of

JSONL, CSV, PARQUET, HUGGING_FACE = "jsonl", "csv", "parquet", "huggingface"
COPIES = (JSONL, CSV, PARQUET, HUGGING_FACE)
DATA = "data/train-00000-of-00001.parquet"  # where the Hugging Face Hub expects the rows
Progress = Callable[[int], None]


@dataclass
class Copy:
    """A corpus to be written.

    progress: callback that receives the number of rows in each batch read
    """

    name: str
    manifest: Manifest
    progress: Progress

    @property
    def schema(self) -> pa.Schema:
        stored = schema_of(self.manifest.fields, self.manifest.declared)
        return pa.schema([stored.field(column) for column in columns_of(self.manifest.fields, self.manifest.declared)])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the order that they were imported."""
        for part in self.manifest.parts:
            for batch in _batches(corpus_dir(self.name) / "parts" / part.name, self.schema.names):
                yield batch
                self.progress(batch.num_rows)

    def survey(self) -> tuple[list[str], int, set[str]]:
        """Return the fields that are empty in some rows, the longest row's length (bytes), and the language codes."""
        empty, codes, longest = set[str](), set[str](), 0
        for batch in self.batches():
            texts = [column for column in batch.columns if pa.types.is_string(column.type)]
            lengths = (pc.binary_length(column).to_numpy(zero_copy_only=False) for column in texts)
            longest = max(longest, int(sum(lengths).max(initial=0)))
            empty |= {name for name in self.manifest.fields if any(map(is_empty, batch.column(name).to_pylist()))}
            codes |= set(batch.column("language").unique().to_pylist() if self.manifest.fields else ())
        return [name for name in self.manifest.fields if name in empty], longest, codes


def _batches(path: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    check_files([path])
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(columns=list(columns)):
            yield batch.select(list(columns))


def check_copy(name: str) -> Manifest:
    """Return the manifest of a corpus. Raise ExportError if its texts must not be published."""
    manifest = manifest_of(name)
    if not manifest.text_may_leave:
        raise ExportError(
            f"The texts of corpus {name} must not be published, so export_corpus cannot write them. Use the files "
            "that it was imported from."
        )
    return manifest


def export_corpus(
    name: str, out: Path, formats: Sequence[str], *, predictions: bool, progress: Progress = lambda rows: None
) -> dict[str, Any]:
    """Write the rows of a corpus to a folder and return its manifest. An earlier export in the folder is replaced.

    formats: formats to write, from COPIES
    predictions: whether to also write the labels from each predictor and each detector
    progress: callback that receives the number of rows in each batch read

    Raise ExportError if the rows cannot be written.
    """
    copy = Copy(name, check_copy(name), progress)
    with replacing(out.resolve(), "copy", name) as folder:
        empty, longest, codes = copy.survey()
        written = {format: _write(folder, format, copy) for format in formats}
        labels = list(_write_predictions(folder, formats, copy)) if predictions else []
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "copy": {
                "name": name,
                **{key: getattr(copy.manifest, key) for key in ("licence", "text_may_leave", "source", "declared")},
                "fields": list(copy.manifest.fields),
                "may_be_empty": empty,
                "longest_row": longest,
                "rows": copy.manifest.rows,
                "files": written,
                "predictions": labels,
            },
            "versions": VERSIONS,
        }
        write_with_card(folder, manifest, lambda: _cards(folder, written, copy, codes))
    return manifest


def _cards(folder: Path, written: Mapping[str, str], copy: Copy, codes: set[str]) -> dict[str, str]:
    """Return the dataset card for Hugging Face by file name, if this format was written."""
    if HUGGING_FACE not in written:
        return {}
    rows, digest = copy.manifest.rows, digest_of(folder / written[HUGGING_FACE])
    head = head_of(copy.name, copy.manifest.licence, codes - {UND}, rows, [digest])
    context = head | {"name": copy.name, "corpus": copy.manifest, "rows": rows, "data": DATA}
    return {f"{HUGGING_FACE}/README.md": render_to_string("annotate/card_corpus.md", context)}


def _write(folder: Path, format: str, copy: Copy) -> str:
    """Write the rows and return the file name."""
    file = f"{HUGGING_FACE}/{DATA}" if format == HUGGING_FACE else f"{copy.name}.{format}"
    _write_rows(folder / file, format, copy.schema, copy.batches)
    return file


def _write_rows(path: Path, format: str, schema: pa.Schema, batches: Callable[[], Iterable[pa.RecordBatch]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if format == JSONL:
        write_lines(path, _rows_of(batches()))
    elif format == CSV:
        write_table(path, schema.names, lambda: (list(map(_cell, row.values())) for row in _rows_of(batches())))
    else:
        with pq.ParquetWriter(path, schema) as writer:
            for batch in batches():
                writer.write_batch(batch.cast(schema))


def _rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        yield from map(_plain, batch.to_pylist())


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}


def _cell(value: Any) -> Any:
    """Return a value for a table cell. Join labels with semicolons, or as a JSON array if that would be ambiguous."""
    if not isinstance(value, list):
        return value
    joined = ";".join(value)
    is_plain = not joined.startswith("[") and not any(";" in label for label in value)
    return joined if is_plain else json.dumps(value, ensure_ascii=False)


# --- Predictions


def _write_predictions(folder: Path, formats: Sequence[str], copy: Copy) -> Iterator[dict[str, Any]]:
    """Write the labels of each predictor and detector. Yield their files, with the options to import them.

    Ranked labels are written as a TREC run. For a detector, only the first vote on each item is written, because
    `prelabel` can compute the votes again.
    """
    directory = corpus_dir(copy.name)
    for entry in copy.manifest.predictions:
        stem, stored = folder / "predictions" / str(entry), directory / "predictions" / entry.file
        if entry.ranked:
            paths = [_write_run(stem.with_name(f"{stem.name}.run"), stored, entry.name)]
        else:
            paths = _write_labels(stem, formats, partial(_batches, stored, PREDICTIONS_SCHEMA.names))
        mapping = [f"{label}={','.join(targets)}" for label, targets in entry.mapping.items()]
        terms = {"name": entry.name, "version": entry.version, "ranked": entry.ranked, "map": mapping}
        yield terms | {"files": [path.relative_to(folder).as_posix() for path in paths]}
    parts = [directory / "votes" / part.name for part in copy.manifest.votes]
    for voter in copy.manifest.voters if parts else ():
        paths = _write_labels(folder / "predictions" / voter, formats, partial(_first_votes, parts, voter))
        yield {"name": voter, "files": [path.relative_to(folder).as_posix() for path in paths]}


def _first_votes(parts: Iterable[Path], voter: str) -> Iterator[pa.RecordBatch]:
    for part in parts:
        for batch in _batches(part, ("id", voter)):
            firsts = [votes[0] if votes else {"language": UND, "score": None} for votes in batch.column(1).to_pylist()]
            labels, scores = [first["language"] for first in firsts], [first["score"] for first in firsts]
            columns = [batch.column(0), pa.array(labels, pa.string()), pa.array(scores, pa.float64())]
            yield pa.RecordBatch.from_arrays(columns, schema=PREDICTIONS_SCHEMA)


def _write_labels(stem: Path, formats: Sequence[str], batches: Callable[[], Iterable[pa.RecordBatch]]) -> list[Path]:
    endings = dict.fromkeys(PARQUET if format == HUGGING_FACE else format for format in formats)
    paths = [stem.with_name(f"{stem.name}.{ending}") for ending in endings]
    for path, ending in zip(paths, endings, strict=True):
        _write_rows(path, ending, PREDICTIONS_SCHEMA, batches)
    return paths


def _write_run(path: Path, stored: Path, system: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for batch in _batches(stored, RANKED_SCHEMA.names):
            for row in batch.to_pylist():
                ranked = enumerate(zip(row["labels"], row["scores"], strict=True), 1)
                file.writelines(
                    f"{row['id']} Q0 {label} {rank} {score!r} {system}\n" for rank, (label, score) in ranked
                )
    return path
