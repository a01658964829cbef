"""Columns computed from columns match row-by-row results, and rows match the lines of json.dumps."""

import json
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from annotate.goldsets.unit_rows import as_lines, content, lists_of, or_none
from corpora.database.bulk_rows import map_rows

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


def test_no_rows_empty_texts_and_some_of_the_lines_are_what_they_are():
    assert map_rows(repr, pa.string(), pa.array([], pa.string())).to_pylist() == []
    assert or_none(pa.array(["a", "", None])).to_pylist() == ["a", None, None]
    lines = pa.array(["a\n", "bc\n", "é\n", "d\n"])
    assert bytes(content(lines.slice(1, 2))) == "bc\né\n".encode()
    assert bytes(content(lines.slice(4))) == b""


@given(
    st.lists(st.integers(0, 9), min_size=1),
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from("xyz"), st.booleans())).map(sorted),
)
def test_lists_belong_to_their_row_even_if_two_rows_have_the_same_key(keys, words_of_units):
    of, words, marked = zip(*words_of_units, strict=True) if words_of_units else ((), (), ())
    held = pa.record_batch({"unit": pa.array(of, pa.int64()), "word": pa.array(words, pa.string())})
    held = held.append_column("marked", pa.array(marked, pa.bool_()))
    lists = lists_of(np.array(keys), held, "unit")
    pairs = [[(word, mark) for unit, word, mark in words_of_units if unit == key] for key in keys]
    marks = np.array(lists.values["marked"].to_pylist(), np.bool_)
    assert list(lists.tuples("word", "marked")) == pairs
    assert lists.as_array(lists.values["word"]).to_pylist() == [[word for word, _ in has] for has in pairs]
    assert lists.count(marks).tolist() == [sum(mark for _, mark in has) for has in pairs]
    assert lists.first("word", marks).to_pylist() == [next((word for word, mark in has if mark), None) for has in pairs]
    assert lists.last("word").to_pylist() == [has[-1][0] if has else None for has in pairs]
    assert list(lists.filter(marks).tuples("word")) == [[(word,) for word, mark in has if mark] for has in pairs]


# --- lines

PAIR = pa.struct([("name", pa.string()), ("score", pa.float64()), ("held", pa.list_(pa.string()))])
SCHEMA = pa.schema(
    [
        ('100% "so" {}', pa.string()),
        ("number", pa.float64()),
        ("count", pa.int32()),
        ("known", pa.bool_()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("pairs", pa.list_(PAIR)),
    ]
)
TEXTS = st.none() | st.text(st.characters(exclude_categories=("Cs",)), max_size=8) | st.sampled_from('\\"\n\x7f\x1f')
NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.floats(0, 1) | st.integers(-1, 2).map(float)
TIMES = st.none() | st.datetimes(datetime(1, 1, 1), datetime(9999, 1, 1), timezones=st.just(UTC))
PAIRS = st.lists(st.tuples(TEXTS, NUMBERS, st.lists(TEXTS, max_size=2)), max_size=3)
ROWS = st.lists(
    st.tuples(TEXTS, NUMBERS, st.none() | st.integers(-(2**31), 2**31 - 1), st.none() | st.booleans(), TIMES, PAIRS)
)


def written(value):
    return value.isoformat(timespec="microseconds").replace("+00:00", "Z")


def named(pair):
    return dict(zip(("name", "score", "held"), pair, strict=True))


def line(row):
    return json.dumps(row, ensure_ascii=False, default=written) + "\n"


@given(ROWS, st.data())
def test_rows_are_written_as_they_would_be_one_by_one(rows, data):
    objects = [dict(zip(SCHEMA.names, (*row, [named(pair) for pair in pairs]), strict=True)) for *row, pairs in rows]
    lines = as_lines(pa.RecordBatch.from_pylist(objects, schema=SCHEMA))
    assert lines.to_pylist() == list(map(line, objects))
    mask = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    expected = "".join(line(row) for row, there in zip(objects, mask, strict=True) if there)
    assert bytes(content(lines.filter(pa.array(mask, pa.bool_())))) == expected.encode()


# Python and Arrow turn to exponents at different sizes.
SIZES = st.floats(1e-6, 1e-3) | st.floats(1e8, 1e12) | st.floats(1e13, 1e18) | st.integers(0, 10**18).map(float)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | SIZES | SIZES.map(lambda number: -number)))
def test_numbers_are_written_with_the_digits_of_python(numbers):
    rows = pa.record_batch({"number": pa.array(numbers, pa.float64())})
    assert as_lines(rows).to_pylist() == [line({"number": number}) for number in numbers]
