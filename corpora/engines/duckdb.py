"""DuckDB asks a corpus: in memory up to a limit, on disk beyond it. Nothing outside this folder imports DuckDB.

The queries stand in sql/, one in each file, in the SQL that DuckDB and Spark share. What they do not share is a method
of Store; spark.py has a Store with the same methods.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from django.conf import settings
from duckdb import ColumnExpression, FunctionExpression, SQLExpression, StarExpression

from corpora.core.languages import UND
from corpora.core.records import DECLARED
from corpora.core.voters import VOTERS
from corpora.engines.sql import check_there, sql_of

Error = duckdb.Error

# DuckDB sorts and joins on disk beyond this. Its peak goes past it, and the rest of the process comes on top: with a
# draw from 20 million posts 225 MB (python -m tests.benchmarks FOLDER draws). So the process stays below 1 GB.
MEMORY_LIMIT = "600MB"
_BATCH_ROWS = 10_000


class Store:
    """A DuckDB connection on one corpus, with the views `posts` and `votes` (engines/__init__.py)."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection

    def view(self, name: str, files: list[Path], schema: pa.Schema, fields: tuple[str, ...] = ()) -> None:
        """A view over Parquet files, with the schema's columns even if there are no files. CorpusError if one is gone.

        fields: columns that are also given as one column, `fields`, so that a query need not know their names.
        """
        check_there(files)
        if files:
            relation = self.connection.read_parquet([str(file) for file in files])
        else:
            relation = self.connection.from_arrow(schema.empty_table())
        if fields:
            packed = FunctionExpression("struct_pack", *(ColumnExpression(field).alias(field) for field in fields))
            # Records without declared labels have the column all the same, so that a query need not ask.
            more = [] if DECLARED in schema.names else [SQLExpression("NULL::VARCHAR[]").alias(DECLARED)]
            relation = relation.select(StarExpression(), packed.alias("fields"), *more)
        if files:
            relation.create_view(name)
        else:
            relation.create(name)

    def rows(self, name: str, table: pa.Table) -> None:
        """A table of the given rows."""
        self.connection.from_arrow(table).create(name)

    def select(self, name: str, source: str, columns: Mapping[str, str]) -> None:
        """A view of some columns of a view or table; columns: what each is called here -> its name there."""
        named = [ColumnExpression(column).alias(new) for new, column in columns.items()]
        self.connection.table(source).select(*named).create_view(name)

    def first_votes(self) -> None:
        """The view `first_votes`: id, letters, and for a detector such as cld2 the columns cld2 and cld2_score.

        They are the language that it names first (und if it names none) and its score, if any. DuckDB and Spark share
        no way to take the first of a list, so this stands here and in no query.
        """
        firsts = ", ".join(
            f"coalesce({detector}[1].language, '{UND}') AS {detector}, {detector}[1].score AS {detector}_score"
            for detector in VOTERS
        )
        self.connection.table("votes").project(f"id, letters, {firsts}").create_view("first_votes", replace=True)

    def define(self, name: str, query: str) -> None:
        """A view made of a query of sql/, computed whenever it is asked."""
        self._relation(query).create_view(name)

    def keep(self, name: str, query: str) -> None:
        """A table of what a query of sql/ finds now."""
        self._relation(query).create(name)

    def keep_anew(self, name: str, query: str) -> None:
        """The table that `keep` made, replaced by what a query finds, which may read it."""
        self._relation(query).create(f"{name}_anew")
        self.connection.execute(f"DROP TABLE {name}")
        self.connection.execute(f"ALTER TABLE {name}_anew RENAME TO {name}")

    def size(self, name: str) -> int:
        """How many rows a view or table has."""
        return len(self.connection.table(name))

    def query(self, name: str, *parameters: object) -> pa.RecordBatchReader:
        """The rows of sql/<name>.sql, with the parameters for its `?` in order; in batches, for large results."""
        return self._relation(name, *parameters).to_arrow_reader(_BATCH_ROWS)

    def found(self, name: str, *parameters: object) -> list[dict[str, Any]]:
        """All rows of sql/<name>.sql, each by its columns; for results that fit into memory."""
        rows: list[dict[str, Any]] = self.query(name, *parameters).read_all().to_pylist()
        return rows

    def _relation(self, name: str, *parameters: object) -> duckdb.DuckDBPyRelation:
        return self.connection.sql(sql_of(name), params=list(parameters) or None)


def votes_in(texts: pa.Array) -> pa.Array:
    """As in corpora.engines, by a connection that stays: to open one takes longer than the votes of a chunk."""
    of_each = ", ".join(
        f'list_transform(coalesce(from_json(votes, \'{{"{detector}": [["JSON"]]}}\').{detector}, []), lambda vote, '
        f"rank: struct_pack(detector := '{detector}', rank := rank::INT, language := vote[1]->>'$', "
        "score := vote[2]::DOUBLE))"
        for detector in VOTERS
    )
    unpacked = _aside().from_arrow(pa.table({"votes": texts})).project(f"flatten([{of_each}]) AS votes")
    return unpacked.to_arrow_table()["votes"].combine_chunks()


@cache
def _aside() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"autoinstall_known_extensions": False})


def spill_dir() -> Path:
    return Path(settings.DATA_DIR) / "tmp"


@contextmanager
def opened() -> Iterator[Store]:
    """A store without any views."""
    spill = spill_dir()
    spill.mkdir(parents=True, exist_ok=True)
    config: dict[str, Any] = {
        "memory_limit": MEMORY_LIMIT,
        "temp_directory": str(spill),
        "autoinstall_known_extensions": False,  # nothing is downloaded
    }
    with duckdb.connect(config=config) as connection:
        yield Store(connection)
