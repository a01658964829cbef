"""Rows of Arrow as lines: the bytes that json.dumps would write of each."""

import json
from datetime import UTC, datetime

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from annotate.goldsets.unit_rows import as_lines, content

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
    kept = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    told = "".join(line(row) for row, there in zip(objects, kept, strict=True) if there)
    assert bytes(content(lines.filter(pa.array(kept, pa.bool_())))) == told.encode()


def test_some_of_the_lines_are_those_and_no_others():
    lines = pa.array(["a\n", "bc\n", "é\n", "d\n"])
    assert bytes(content(lines.slice(1, 2))) == "bc\né\n".encode()
    assert bytes(content(lines.slice(4))) == b""


# Python and Arrow turn to exponents at different sizes.
SIZES = st.floats(1e-6, 1e-3) | st.floats(1e8, 1e12) | st.floats(1e13, 1e18) | st.integers(0, 10**18).map(float)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False) | SIZES | SIZES.map(lambda number: -number)))
def test_numbers_are_written_with_the_digits_of_python(numbers):
    rows = pa.record_batch({"number": pa.array(numbers, pa.float64())})
    assert as_lines(rows).to_pylist() == [line({"number": number}) for number in numbers]
