"""The columns of a corpus's Parquet parts: posts or records, votes, predictions, and of pairs also scores.

This module imports no engine: a votes/vote_run.py worker that has loaded DuckDB ends with pages of complaints.
"""

from collections.abc import Iterable

import pyarrow as pa

from corpora.core.records import DECLARED
from corpora.core.voters import VOTERS

POST_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("author", pa.string(), nullable=False),
        pa.field("posted_at", pa.timestamp("us", tz="UTC")),
        pa.field("url", pa.string(), nullable=False),
    ]
)


_LABELS = pa.field(DECLARED, pa.list_(pa.string()), nullable=False)


def schema_of(fields: tuple[str, ...], declared: bool = False) -> pa.Schema:
    """The columns of a corpus's parts: those of posts, and for records also the language, each field, and the labels
    that came with them, if any did."""
    names = ("language", *fields) if fields else ()
    columns = (pa.field(name, pa.string(), nullable=False) for name in names)
    return pa.schema([*POST_SCHEMA, *columns, *((_LABELS,) if declared else ())])


_RANKING = pa.list_(pa.struct([("language", pa.string()), ("score", pa.float64())]))


def votes_schema(voters: Iterable[str] = VOTERS) -> pa.Schema:
    """The columns of the votes of these voters, by default of all."""
    return pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("letters", pa.int32(), nullable=False),
            *(pa.field(voter, _RANKING, nullable=False) for voter in voters),
        ]
    )


PREDICTIONS_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("label", pa.string(), nullable=False),
        pa.field("score", pa.float64()),
    ]
)

# One row for each document that has labels, these best first, with as many scores.
RANKED_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("labels", pa.list_(pa.string()), nullable=False),
        pa.field("scores", pa.list_(pa.float64()), nullable=False),
    ]
)

# Messages on their way into pairs. file, line, turn: where a message stands; a turn only where a row is a whole thread.
MESSAGES_SCHEMA = pa.schema(
    [
        pa.field("file", pa.int32(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
        pa.field("turn", pa.int32(), nullable=False),
        *(pa.field(name, pa.string(), nullable=False) for name in ("id", "parent", "text", "thread")),
        *(pa.field(name, pa.bool_(), nullable=False) for name in ("low", "deleted", "empty")),
        *(pa.field(name, pa.string(), nullable=False) for name in ("language", "author")),
    ]
)

# Replies that are no pairs of the corpus; language and certainty only where they were looked for.
LEFT_OUT_SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in ("id", "message_id", "thread", "reason")),
        pa.field("language", pa.string()),
        pa.field("certainty", pa.float64()),
    ]
)

# One row for each pair of a corpus and scorer. score: the greater of those that its sides have, if any; lacking:
# whether one that it should have is missing; dropped: whether the score is above the scorer's threshold.
SCORES_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("scorer", pa.string(), nullable=False),
        pa.field("score", pa.float64()),
        pa.field("lacking", pa.bool_(), nullable=False),
        pa.field("dropped", pa.bool_(), nullable=False),
    ]
)
