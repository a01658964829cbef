"""Columns of exported rows as Arrow has them, made of others; no row by itself."""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Places = NDArray[np.intp]
Marks = NDArray[np.bool_]


class Lists(NamedTuple):
    """Of each row what it has several of: `held` from ends[row] to ends[row + 1]. ends: (rows + 1,)."""

    ends: Places
    held: pa.RecordBatch

    def as_array(self, values: pa.Array) -> pa.ListArray:
        """A list for each row. values: one for each that is held."""
        return pa.ListArray.from_arrays(pa.array(self.ends, pa.int32()), values)

    @property
    def sizes(self) -> Places:
        """Of each row how much it has."""
        return np.diff(self.ends)

    def marked(self, marked: Marks) -> "Lists":
        """Of each row what is marked. marked: (held,)."""
        return Lists(np.concatenate(([0], np.cumsum(self.count(marked)))), self.held.filter(pa.array(marked)))

    def count(self, marked: Marks) -> Places:
        """Of each row how many of what it has are marked. marked: (held,)."""
        before = np.concatenate(([0], np.cumsum(marked)))
        return before[self.ends[1:]] - before[self.ends[:-1]]

    def first(self, column: str, marked: Marks) -> pa.Array:
        """Of each row the value of the first of what it has that is marked; None if it has none."""
        places = np.append(np.flatnonzero(marked), len(marked))
        found = places[np.searchsorted(places, self.ends[:-1])]
        return self.held[column].take(pa.array(found, mask=found >= self.ends[1:]))

    def last(self, column: str) -> pa.Array:
        """Of each row the value of the last that it has; None if it has none."""
        return self.held[column].take(pa.array(self.ends[1:] - 1, mask=self.ends[1:] == self.ends[:-1]))

    def each(self, *columns: str) -> Iterator[list[tuple[Any, ...]]]:
        """Of each row what it has, as Python has it."""
        held = list(zip(*(self.held[column].to_pylist() for column in columns), strict=True))
        return (held[start:end] for start, end in zip(self.ends[:-1], self.ends[1:], strict=True))


def lists_of(keys: Places, held: pa.RecordBatch, by: str) -> Lists:
    """What each key has. held: in the order of the column `by`, which has the key of what has it."""
    of = held[by].to_numpy()
    start = np.searchsorted(of, keys)
    sizes = np.searchsorted(of, keys, side="right") - start
    ends = np.concatenate(([0], np.cumsum(sizes)))
    return Lists(ends, held.take(pa.array(np.arange(ends[-1]) + np.repeat(start - ends[:-1], sizes))))


def each(make: Callable[..., Any], type: pa.DataType, *columns: pa.Array) -> pa.Array:
    """What `make` makes of the values in a row, of each row. Most rows are alike: of those it is made once."""
    alike = np.zeros(len(columns[0]), np.int64)  # of five columns and some thousand rows it has the combinations
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        alike = alike * len(encoded.dictionary) + encoded.indices.to_numpy()
    _, first, which = np.unique(alike, return_index=True, return_inverse=True)
    different = zip(*(column.take(pa.array(first)).to_pylist() for column in columns), strict=True)
    return pa.array([make(*values) for values in different], type).take(pa.array(which))


def lists_in(texts: pa.Array) -> pa.Array:
    """Lists of texts, out of JSON."""
    return each(json.loads, pa.list_(pa.string()), texts)


def or_none(texts: pa.Array) -> pa.Array:
    """None where a text is empty."""
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)


def where(condition: pa.Array) -> Marks:
    """A condition as NumPy has it; what it cannot be said of does not meet it."""
    return pc.fill_null(condition, False).to_numpy(zero_copy_only=False)
