"""The rows of an exported set, of any kind of question. It only reads; the same database gives the same rows.

They come column by column, for CHUNK units at a time: unit_rows.py reads what they are made of, in a query for each
table.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from json.encoder import encode_basestring as quoted  # json.dumps without ensure_ascii
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from annotate.core import stages
from annotate.goldsets import form_extras, unit_rows
from annotate.goldsets.columns import columns_of, schema
from annotate.goldsets.export import CHUNK, Export, Source
from annotate.goldsets.unit_rows import each, or_none
from annotate.kinds import Kind
from corpora.core.masking import MASK


@dataclass(frozen=True)
class Rows:
    """Some rows, in the order of the draw, and what they are made of."""

    source: Source
    columns: pa.RecordBatch

    @property
    def told(self) -> pa.Array:
        """Whether each row may be told yet: of what still waits, annotators would learn what others say, and gold
        answers as what is not among it.
        """
        finished = pc.is_in(self.source.judged["stage"], pa.array(sorted(stages.FINISHED)))
        return pc.or_(finished, not self.source.export.task.is_open)

    def of_set(self, column: str) -> pa.Array:
        """The values of a column, of the rows in the set."""
        return self.columns[column].filter(self.source.in_set)


def rows(export: Export) -> Iterator[Rows]:
    """A row for each drawn item and question.

    A copy has the label, judgments and transitions of the unit with the same text, which `judged_as` names. Items with
    known answers that were hidden among the work are not there, nor are their answers. If the text may not leave, a
    row has neither the text nor what leads to it (author, url) or may quote it (comments).
    """
    columns = columns_of(export.task, with_text=export.with_text)
    for source in _sources(export):
        values = [column.values(source) for column in columns.values()]
        yield Rows(source, pa.RecordBatch.from_arrays(values, schema=schema(columns)))


def _sources(export: Export) -> Iterator[Source]:
    for units in unit_rows.units_of(export.task, CHUNK):
        keys, reused = units.judged["pk"], units.judged["reused_from"]
        said, moved = (of(keys.to_numpy()) for of in (unit_rows.judgments_of, unit_rows.transitions_of))
        is_own = reused.null_count == len(reused)
        decided = said if is_own else unit_rows.judgments_of(pc.coalesce(reused, keys).to_numpy())
        yield Source(export, units.own, units.judged, export.left_out.reasons(units, moved), said, decided, moved)


# --- counts of the rows, for the manifest and the card


def _by_split(rows: Rows) -> pa.Array:
    return each("{}.{}".format, pa.string(), rows.of_set("language"), rows.of_set("split"))


def _agreed_by(rows: Rows) -> pa.Array:
    """Who gave the labels of the stratum agreed: people, where the same text was audited."""
    return rows.of_set("decided_by").filter(pc.equal(rows.of_set("stratum"), "agreed"))


# What the rows in a set can be counted by, besides their labels: under what they count, None for nowhere.
TALLIES: Mapping[str, Callable[[Rows], pa.Array]] = {
    "reused": lambda rows: rows.of_set("reused_from"),
    "by_stratum": lambda rows: rows.of_set("stratum"),
    "agreed_by": _agreed_by,
    "by_language": lambda rows: rows.of_set("language"),
    "by_split": _by_split,
    "by_source": lambda rows: form_extras.sources(rows.source).filter(rows.source.in_set),
    "by_votes": lambda rows: pa.array(form_extras.votes(rows.source), pa.string()),
}


def counted(values: pa.Array) -> Counter[Any]:
    """Each value but None -> how often it is there."""
    return Counter({each["values"]: each["counts"] for each in values.drop_null().value_counts().to_pylist()})


class Counts:
    """Counts of the rows that pass through. A label is counted by its facets: if it names several things,
    each counts. with_text: whether the rows have the text of a post, so that masks in it can be counted.
    """

    def __init__(self, kind: Kind, *, with_text: bool):
        self.kind = kind
        # Records, which have fields, are not masked.
        self.masks = with_text and not kind.fields
        self.copies = self.labelled = self.masked = 0
        self.by_stage: Counter[str] = Counter()
        self.by_label: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.tallied: dict[str, Counter[str]] = {name: Counter() for name in kind.publication.tallies}

    def taken(self, rows: Rows) -> Rows:
        """The same rows, which are counted now."""
        left_out = rows.source.left_out
        self.by_stage += counted(rows.columns["stage"])
        self.copies += len(rows.columns["judged_as"].drop_null())
        self.left_out += counted(or_none(left_out))
        self.labelled += rows.source.in_set.true_count
        self.masked += self.masks and pc.match_substring(rows.of_set("text"), MASK).true_count
        for label, number in counted(rows.of_set("label")).items():
            self.by_label.update(dict.fromkeys(self.kind.form.facets(label), number))
        for name, counts in self.tallied.items():
            counts.update(counted(TALLIES[name](rows)))
        return rows

    @property
    def total(self) -> int:
        return self.by_stage.total()

    def as_dict(self) -> dict[str, Any]:
        counted = {"left_out": self.left_out, **self.tallied, "by_stage": self.by_stage, "by_label": self.by_label}
        return {
            f"{self.kind.noun}s": self.total,
            "labelled": self.labelled,
            "unfinished": sum(count for stage, count in self.by_stage.items() if stage not in stages.FINISHED),
            "copies": self.copies,
            **({"masked": self.masked} if self.masks else {}),
            **{name: dict(sorted(counts.items())) for name, counts in counted.items()},
        }


# --- lines of JSON, column by column: the bytes that json.dumps writes for each row


# What json.dumps writes otherwise than as it stands.
_ESCAPED = r'["\\\x00-\x1f]'


def as_lines(rows: pa.RecordBatch) -> pa.StringArray:
    """An object of JSON for each row, and the end of its line."""
    return _objects(rows.columns, rows.schema, end="\n")


def content(lines: pa.StringArray) -> pa.Buffer:
    """The bytes of lines, one behind the other; none of them is None."""
    [ends, text] = pa.concat_arrays([lines]).buffers()[1:]  # of some rows of an array all would else be there
    return text.slice(0, np.frombuffer(ends, np.int32)[len(lines)])


def _objects(columns: Sequence[pa.Array], fields: Iterable[pa.Field], end: str = "") -> pa.StringArray:
    parts: list[Any] = []
    for column, field in zip(columns, fields, strict=True):
        parts += [f"{', ' if parts else '{'}{quoted(field.name)}: ", _written(column)]
    return pc.binary_join_element_wise(*parts, "}" + end, "")


def _lists(lists: pa.ListArray) -> pa.StringArray:
    held = pa.ListArray.from_arrays(lists.offsets, _written(lists.values))
    return pc.binary_join_element_wise("[", pc.binary_join(held, ", "), "]", "")


def _times(times: pa.Array) -> pa.StringArray:
    # Beside the zone Arrow would look up how far it is from UTC, each time.
    told = pc.binary_replace_slice(times.cast(pa.timestamp("us")).cast(pa.string()), 10, 11, "T")
    return pc.binary_join_element_wise('"', told, 'Z"', "")


def _texts(texts: pa.Array) -> pa.StringArray:
    marked = pc.match_substring_regex(texts, _ESCAPED)
    told = pc.binary_join_element_wise('"', texts, '"', "")
    return pc.replace_with_mask(told, marked, pa.array(map(quoted, texts.filter(marked).to_pylist()), pa.string()))


def _numbers(numbers: pa.Array) -> pa.StringArray:
    size = np.abs(numbers.to_numpy())
    # Elsewhere Python and Arrow write the same digits.
    marked = pa.array((size < 1e-4) | (size >= 1e10) | (size == np.floor(size)))
    told = numbers.cast(pa.string())
    return pc.replace_with_mask(told, marked, pa.array(map(repr, numbers.filter(marked).to_pylist()), pa.string()))


def _each(write: Callable[[pa.Array], pa.StringArray]) -> Callable[[pa.Array], pa.StringArray]:
    """Each value is written once, however often it is there."""

    def written(values: pa.Array) -> pa.StringArray:
        encoded = values.dictionary_encode()
        return write(encoded.dictionary).take(encoded.indices)

    return written


_WRITTEN: Mapping[int, Callable[[pa.Array], pa.StringArray]] = {
    pa.struct([]).id: lambda values: _objects(values.flatten(), values.type),
    pa.list_(pa.null()).id: _lists,
    pa.timestamp("us").id: _times,
    pa.string().id: _each(_texts),
    pa.float64().id: _each(_numbers),
    pa.int32().id: lambda values: values.cast(pa.string()),
    pa.bool_().id: lambda values: values.cast(pa.string()),
}


def _written(values: pa.Array) -> pa.StringArray:
    return _WRITTEN[values.type.id](values).fill_null("null")


# --- Parquet files, batch by batch, so that the rows of no file are all in memory at once


BATCH = 2000  # rows of a row group


@contextmanager
def parquet_files(paths: Mapping[str, Path], schema: pa.Schema) -> Iterator[Callable[[str, pa.RecordBatch], None]]:
    """Yields a function that writes rows into one of these files, by its key; a file without rows is not made, but
    the first where none has any, so that a reader finds columns and no rows. However the rows come, the files are the
    same.
    """
    waiting = dict.fromkeys(paths, pa.RecordBatch.from_pylist([], schema=schema))
    writers: dict[str, pq.ParquetWriter] = {}
    with ExitStack() as files:

        def flush(part: str, rows: pa.RecordBatch) -> None:
            if part not in writers:
                writers[part] = files.enter_context(pq.ParquetWriter(paths[part], schema, compression="zstd"))
            writers[part].write_batch(rows)

        def write(part: str, rows: pa.RecordBatch) -> None:
            rows = pa.concat_batches([waiting[part], rows])
            whole = rows.num_rows - rows.num_rows % BATCH
            for start in range(0, whole, BATCH):
                flush(part, rows.slice(start, BATCH))
            waiting[part] = rows.slice(whole)

        yield write
        for part, rows in waiting.items():
            if rows.num_rows:
                flush(part, rows)
        if not writers:
            # Without a group of rows, since the datasets library cannot read an empty one.
            files.enter_context(pq.ParquetWriter(next(iter(paths.values())), schema, compression="zstd"))


@contextmanager
def parquet_rows(paths: Mapping[str, Path], schema: pa.Schema) -> Iterator[Callable[[str, dict[str, Any]], None]]:
    """The same for one row at a time."""
    batches: dict[str, list[dict[str, Any]]] = {part: [] for part in paths}
    with parquet_files(paths, schema) as into_files:

        def flush(part: str) -> None:
            into_files(part, pa.RecordBatch.from_pylist(batches[part], schema=schema))
            batches[part].clear()

        def write(part: str, row: dict[str, Any]) -> None:
            batches[part].append(row)
            if len(batches[part]) == BATCH:
                flush(part)

        yield write
        for part in batches:
            flush(part)


# --- the rows of a written set, read again by published formats, so that nothing keeps all texts in memory


@dataclass(frozen=True)
class Written:
    """jsonl: the file of all rows in their order. whole: the Parquet file of a set that is not split, which is not
    there if the set has no rows.
    """

    jsonl: Path
    whole: Path | None

    def each(self, columns: Collection[str]) -> Iterator[dict[str, Any]]:
        """Row by row those of the columns that it has."""
        with self.jsonl.open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                row = json.loads(line)
                yield {column: row[column] for column in columns if column in row}

    def columns(self, *names: str) -> Iterator[pa.RecordBatch]:
        """Columns of a set that is not split, in batches."""
        if self.whole and self.whole.exists():
            with pq.ParquetFile(self.whole) as file:
                yield from file.iter_batches(columns=list(names))
