"""Schemas of a corpus's Parquet files: posts, records, votes, predictions, messages and scores.

This module must not import an engine, because workers of votes/vote_run.py import it. A worker that has loaded DuckDB
prints pages of errors when it exits.
"""

from collections.abc import Iterable

import pyarrow as pa

from corpora.core.records import DECLARED
from corpora.core.voters import DEFAULT

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
    """Return the schema of a corpus's parts.

    All parts have the columns of posts. Parts with records also have the language, the fields and the declared labels.

    fields: the names of the records' fields; empty for posts
    declared: whether the records have declared labels
    """
    names = ("language", *fields) if fields else ()
    columns = (pa.field(name, pa.string(), nullable=False) for name in names)
    return pa.schema([*POST_SCHEMA, *columns, *((_LABELS,) if declared else ())])


_RANKING = pa.list_(pa.struct([("language", pa.string()), ("score", pa.float64())]))


def votes_schema(voters: Iterable[str] = DEFAULT.voters) -> pa.Schema:
    """Return the schema of a file with votes by these voters."""
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

# Ranked labels. There is one row for each document that has labels, and its labels are sorted from best to worst.
RANKED_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("labels", pa.list_(pa.string()), nullable=False),
        pa.field("scores", pa.list_(pa.float64()), nullable=False),
    ]
)

# Staged messages. The columns file, line and turn are the position of a message. The turn is 1 unless the row in the
# file contains a whole thread.
MESSAGES_SCHEMA = pa.schema(
    [
        pa.field("file", pa.int32(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
        pa.field("turn", pa.int32(), nullable=False),
        *(pa.field(name, pa.string(), nullable=False) for name in ("id", "parent", "text", "thread")),
        *(pa.field(name, pa.bool_(), nullable=False) for name in ("low", "deleted", "empty")),
        *(pa.field(name, pa.string(), nullable=False) for name in ("language", "author")),
        POST_SCHEMA.field("posted_at"),
    ]
)

# Replies that did not become pairs of the corpus. Language and certainty are null if no language was detected.
LEFT_OUT_SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in ("id", "message_id", "thread", "reason")),
        pa.field("language", pa.string()),
        pa.field("certainty", pa.float64()),
    ]
)

# Scores. There is one row for each pair and scorer.
# score: the higher score of the pair's message and reply, or null if neither has one
# lacking: whether an expected score is missing
# dropped: whether the score exceeds the scorer's threshold
SCORES_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("scorer", pa.string(), nullable=False),
        pa.field("score", pa.float64()),
        pa.field("lacking", pa.bool_(), nullable=False),
        pa.field("dropped", pa.bool_(), nullable=False),
    ]
)
