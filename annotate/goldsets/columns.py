"""The columns of exported sets, in their order, with their types in Parquet."""

import pyarrow as pa

Column = tuple[str, pa.DataType]
_TIME = pa.timestamp("us", tz="UTC")
_TEXT = pa.string()

JUDGMENT = pa.struct(
    [(name, _TEXT) for name in ("annotator", "kind", "label", "reason", "comment")]
    + [("round", pa.int32()), ("queue", _TEXT), ("shown_at", _TIME), ("answered_at", _TIME)]
    + [("active_seconds", pa.float64()), ("voided_at", _TIME), ("voided_by", _TEXT)]
)
TRANSITION = pa.struct(
    [(name, _TEXT) for name in ("event", "from_stage", "to_stage")]
    + [("round", pa.int32()), ("queue", _TEXT), ("label", _TEXT), ("by", _TEXT), ("at", _TIME)]
)
VOTE = pa.struct([("detector", _TEXT), ("rank", pa.int32()), ("language", _TEXT), ("score", pa.float64())])
HISTORY = [("judgments", pa.list_(JUDGMENT)), ("transitions", pa.list_(TRANSITION))]
FIELDS = [
    ("id", _TEXT),
    ("label", _TEXT),
    ("asked", _TEXT),
    ("text", _TEXT),
    ("stage", _TEXT),
    ("stratum", _TEXT),
    ("agreed", _TEXT),
    ("chance", pa.float64()),
    ("audit_chance", pa.float64()),
    ("round", pa.int32()),
    ("judged_as", _TEXT),
    ("reused_from", _TEXT),
    ("posted_at", _TIME),
    ("author", _TEXT),
    ("url", _TEXT),
    ("letters", pa.int32()),
    ("votes", pa.list_(VOTE)),
    ("candidates", pa.list_(_TEXT)),
    *HISTORY,
]
# What leads to a text, and is kept with it.
WITH_TEXT_ONLY = ("text", "author", "url")
BEFORE_FIELDS = [("id", _TEXT), ("language", _TEXT), ("split", _TEXT)]
AFTER_FIELDS = [
    ("label", _TEXT),
    ("dawid_skene", _TEXT),
    ("posterior", pa.float64()),
    ("stage", _TEXT),
    ("chance", pa.float64()),
    ("judged_as", _TEXT),
    ("posted_at", _TIME),
    ("author", _TEXT),
    ("url", _TEXT),
    *HISTORY,
]
# Said in JSON alone, of records that are left out.
LEFT_OUT = ("left_out", "left_out_why")
# No field of a record can have the name of another column.
TAKEN = {*(name for name, _ in (*BEFORE_FIELDS, *AFTER_FIELDS)), *LEFT_OUT}


def of_posts(*, with_text: bool) -> list[Column]:
    return [column for column in FIELDS if with_text or column[0] not in WITH_TEXT_ONLY]


def of_records(fields: tuple[str, ...], *, with_text: bool) -> list[Column]:
    after = [column for column in AFTER_FIELDS if with_text or column[0] not in WITH_TEXT_ONLY]
    return [*BEFORE_FIELDS, *((field, _TEXT) for field in fields if with_text), *after]
