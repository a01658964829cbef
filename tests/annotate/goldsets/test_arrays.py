"""Columns made of columns: what rows would give one by one."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from annotate.goldsets.unit_rows import lists_of, map_rows, or_none

FEW = st.none() | st.sampled_from("abc")


@given(st.lists(st.tuples(FEW, FEW, st.none() | st.integers(0, 3)), min_size=1))
def test_what_is_made_of_the_values_of_a_row_is_made_once_for_rows_that_are_alike(rows):
    made = []

    def make(*values):
        made.append(values)
        return repr(values)

    types = (pa.string(), pa.string(), pa.int64())
    columns = [pa.array(values, type) for values, type in zip(zip(*rows, strict=True), types, strict=True)]
    assert map_rows(make, pa.string(), *columns).to_pylist() == list(map(repr, rows))
    assert sorted(map(repr, made)) == sorted(map(repr, set(rows)))


def test_of_no_rows_nothing_is_made():
    assert map_rows(repr, pa.string(), pa.array([], pa.string())).to_pylist() == []


@given(
    st.lists(st.integers(0, 9), min_size=1),
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from("xyz"), st.booleans())).map(sorted),
)
def test_what_each_row_has_several_of_stands_with_it_also_where_two_rows_have_the_same(keys, said):
    of, words, marked = zip(*said, strict=True) if said else ((), (), ())
    held = pa.record_batch({"unit": pa.array(of, pa.int64()), "word": pa.array(words, pa.string())})
    held = held.append_column("marked", pa.array(marked, pa.bool_()))
    lists = lists_of(np.array(keys), held, "unit")
    own = [[(word, mark) for unit, word, mark in said if unit == key] for key in keys]
    marks = np.array(lists.values["marked"].to_pylist(), np.bool_)
    assert list(lists.tuples("word", "marked")) == own
    assert lists.as_array(lists.values["word"]).to_pylist() == [[word for word, _ in has] for has in own]
    assert lists.count(marks).tolist() == [sum(mark for _, mark in has) for has in own]
    assert lists.first("word", marks).to_pylist() == [next((word for word, mark in has if mark), None) for has in own]
    assert lists.last("word").to_pylist() == [has[-1][0] if has else None for has in own]
    assert list(lists.marked(marks).tuples("word")) == [[(word,) for word, mark in has if mark] for has in own]


def test_an_empty_text_is_none():
    assert or_none(pa.array(["a", "", None])).to_pylist() == ["a", None, None]
