"""Columns of exported rows: the lines of JSON and the Arrow columns that rows would give one by one."""

import json
from datetime import UTC, datetime

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from annotate.goldsets.arrays import Lists, apart, as_batch, as_lines

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
TEXTS = st.none() | st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-1, 2)
TIMES = st.datetimes(datetime(1800, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
PAIRS = st.lists(st.tuples(TEXTS, NUMBERS, st.lists(TEXTS, max_size=2)), max_size=3)
ROWS = st.lists(
    st.tuples(TEXTS, NUMBERS, st.none() | st.integers(-(2**31), 2**31 - 1), st.none() | st.booleans(), TIMES, PAIRS)
)


def written(value):
    return value.isoformat(timespec="microseconds").replace("+00:00", "Z")


def named(pair):
    return dict(zip(("name", "score", "held"), pair, strict=True))


@given(ROWS)
def test_rows_are_written_column_by_column_as_they_would_be_one_by_one(rows):
    columns = {name: [row[place] for row in rows] for place, name in enumerate(SCHEMA.names)}
    values = apart(columns, SCHEMA)
    objects = [dict(zip(SCHEMA.names, (*row, [named(pair) for pair in pairs]), strict=True)) for *row, pairs in rows]
    assert as_lines(values, SCHEMA) == [json.dumps(row, ensure_ascii=False, default=written) for row in objects]
    batch = as_batch(values, SCHEMA)
    batch.validate(full=True)
    assert batch.equals(pa.RecordBatch.from_pylist(objects, schema=SCHEMA))


def test_a_column_of_lists_may_come_taken_apart():
    schema = pa.schema([("pairs", pa.list_(pa.struct([("name", pa.string()), ("rank", pa.int32())])))])
    values = apart({"pairs": Lists([0, 2, 2], [["a", "b"], [1, 2]])}, schema)
    rows = [{"pairs": [{"name": "a", "rank": 1}, {"name": "b", "rank": 2}]}, {"pairs": []}]
    assert as_lines(values, schema) == list(map(json.dumps, rows))
    assert as_batch(values, schema).to_pylist() == rows
