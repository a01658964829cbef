"""Schemas of a corpus's Parquet files: posts, records, votes, predictions, messages and scores.

This module must not import an engine, because workers of votes/vote_run.py import it. A worker that has loaded DuckDB
prints pages of errors when it exits.
"""

from collections.abc import Iterable

import pyarrow as pa

from corpora.core.records import DECLARED
from corpora.core.voters import DEFAULT


def _required(**types: pa.DataType) -> list[pa.Field]:
    """Return non-nullable columns of these types."""
    return [pa.field(name, kind, nullable=False) for name, kind in types.items()]


_TEXT, _SCORE = pa.string(), pa.float64()
POST_SCHEMA = pa.schema(
    [
        *_required(id=_TEXT, text=_TEXT, author=_TEXT),
        pa.field("posted_at", pa.timestamp("us", tz="UTC")),
        *_required(url=_TEXT),
    ]
)


def schema_of(fields: tuple[str, ...], declared: bool = False) -> pa.Schema:
    """Return the schema of a corpus's parts.

    All parts have the columns of posts. Parts with records also have the language, the fields and the declared labels.

    fields: names of the records' fields; empty for posts
    declared: whether the records have declared labels
    """
    columns = dict.fromkeys(("language", *fields) if fields else (), _TEXT)
    return pa.schema([*POST_SCHEMA, *_required(**columns, **({DECLARED: pa.list_(_TEXT)} if declared else {}))])


_RANKING = pa.list_(pa.struct([("language", _TEXT), ("score", _SCORE)]))


def votes_schema(voters: Iterable[str] = DEFAULT.voters) -> pa.Schema:
    """Return the schema of a file with these voters' votes."""
    return pa.schema(_required(id=_TEXT, letters=pa.int32(), **dict.fromkeys(voters, _RANKING)))


PREDICTIONS_SCHEMA = pa.schema([*_required(id=_TEXT, label=_TEXT), pa.field("score", _SCORE)])

# Ranked labels, with one row for each document that has labels. The labels are sorted best first.
RANKED_SCHEMA = pa.schema(_required(id=_TEXT, labels=pa.list_(_TEXT), scores=pa.list_(_SCORE)))

# Staged messages. The columns file, line and turn are a message's position in the files. The turn is 1 unless the row
# contains a whole thread.
MESSAGES_SCHEMA = pa.schema(
    [
        *_required(file=pa.int32(), line=pa.int64(), turn=pa.int32()),
        *_required(**dict.fromkeys(("id", "parent", "text", "thread"), _TEXT)),
        *_required(**dict.fromkeys(("low", "deleted", "empty"), pa.bool_())),
        *_required(language=_TEXT, author=_TEXT),
        POST_SCHEMA.field("posted_at"),
    ]
)

# Replies that did not become pairs. Language and certainty are null if no language was detected.
LEFT_OUT_SCHEMA = pa.schema(
    [
        *_required(**dict.fromkeys(("id", "message_id", "thread", "reason"), _TEXT)),
        *(pa.field("language", _TEXT), pa.field("certainty", _SCORE)),
    ]
)

# Scores, with one row for each pair and scorer.
# score: the higher score of the pair's message and reply; null if neither has a score
# lacking: whether an expected score is missing
# dropped: whether the score exceeds the scorer's threshold
SCORES_SCHEMA = pa.schema(
    [
        *_required(id=_TEXT, scorer=_TEXT),
        pa.field("score", _SCORE),
        *_required(lacking=pa.bool_(), dropped=pa.bool_()),
    ]
)
