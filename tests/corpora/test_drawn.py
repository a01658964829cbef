"""What was drawn, on its way into the database."""

import json

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from corpora.core.voters import VOTERS, unanimous
from corpora.draws.samples import rows_in
from corpora.storage.schemas import votes_schema

SCORES = st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-3, 3).map(float)
CODES = st.sampled_from(["de", "zh-CN", 'a "quoted" one', "naïve", "back\\slash"])
LISTS = st.lists(st.fixed_dictionaries({"language": CODES, "score": SCORES}), max_size=3)
ROWS = st.lists(st.fixed_dictionaries({"id": st.text(), "letters": st.just(1), **dict.fromkeys(VOTERS, LISTS)}))


@given(ROWS, st.integers(0, 3))
def test_votes_are_written_as_they_were_given_with_what_is_unanimous_in_them(rows, start):
    batch = pa.RecordBatch.from_pylist(rows, schema=votes_schema()).slice(start)
    for row, given_row in zip(rows_in(batch), rows[start:], strict=True):
        pairs = {name: [[vote["language"], vote["score"]] for vote in given_row[name]] for name in VOTERS}
        read = json.loads(row["votes"])
        assert read == pairs
        assert [type(score) for votes in read.values() for _, score in votes] == [
            type(score) for votes in pairs.values() for _, score in votes
        ]
        assert row["unanimous"] == unanimous(pairs)
        assert (row["id"], row["letters"]) == (given_row["id"], 1)
