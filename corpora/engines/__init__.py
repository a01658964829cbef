"""Queries on a corpus, run by the engine that the setting ENGINE names.

DuckDB runs on one machine, in memory up to a limit and then on disk; Spark (spark.py) runs on one machine or a cluster.
Both run the queries in sql/, one per file, written in the SQL that they share. The rest are methods of Store, which
spark.py implements with the same interface. DuckDB is imported at the first query, because the server's pages rarely
need it.
"""

import errno
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
from django.conf import settings

from corpora.core import CorpusError
from corpora.core.languages import UND
from corpora.core.records import DECLARED
from corpora.core.voters import VOTERS
from corpora.storage.layout import Manifest, corpus_dir, manifest_of, read_manifest
from corpora.storage.schemas import schema_of, votes_schema

SQL = Path(__file__).parent / "sql"
# DuckDB sorts and joins on disk above this limit. The peak is higher, and the rest of the process adds to it: 225 MB
# for a draw from 20 million posts (python -m tests.benchmarks FOLDER draws). The process stays below 1 GB.
MEMORY_LIMIT = "600MB"
_BATCH_ROWS = 10_000


def sql_of(name: str) -> str:
    """Return a query of sql/, with its placeholders replaced.

    `every_voter` becomes the columns of all voters, and `majority_of_voters` the language that more than half of them
    rank first, or und.
    """
    text = (SQL / f"{name}.sql").read_text(encoding="utf-8")
    votes = {name: " + ".join(f"CAST({name} = {other} AS INT)" for other in VOTERS) for name in VOTERS}
    cases = " ".join(f"WHEN 2 * ({each}) > {len(VOTERS)} THEN {name}" for name, each in votes.items())
    text = text.replace("majority_of_voters", f"CASE {cases} ELSE 'und' END")
    return re.sub(r"(\w+\.)?every_voter", lambda found: ", ".join(f"{found[1] or ''}{name}" for name in VOTERS), text)


def check_there(files: Iterable[Path]) -> None:
    """Check that files of the corpus exist.

    CorpusError: one is missing
    """
    if missing := next((file for file in files if not file.exists()), None):
        raise CorpusError(f"The corpus has lost its file {missing}; restore it from a backup.")


@dataclass
class Store:
    """A DuckDB connection to one corpus, with the views `posts` and `votes`."""

    connection: Any

    def view(self, name: str, files: list[Path], schema: pa.Schema, fields: tuple[str, ...] = ()) -> None:
        """Define a view over Parquet files, with the columns of the schema even if there are no files.

        fields: columns to repeat as one struct column, `fields`, so that queries need not name them
        CorpusError: a file is missing
        """
        check_there(files)
        if files:
            relation = self.connection.read_parquet([str(file) for file in files])
        else:
            relation = self.connection.from_arrow(schema.empty_table())
        if fields:
            packed = ", ".join(f'"{field}" := "{field}"' for field in fields)
            # Add the column to records without declared labels, so that queries can rely on it.
            more = "" if DECLARED in schema.names else f", NULL::VARCHAR[] AS {DECLARED}"
            relation = relation.project(f"*, struct_pack({packed}) AS fields{more}")
        if files:
            relation.create_view(name)
        else:
            relation.create(name)

    def rows(self, name: str, table: pa.Table) -> None:
        """Create a table from rows."""
        self.connection.from_arrow(table).create(name)

    def select(self, name: str, source: str, columns: Mapping[str, str]) -> None:
        """Define a view of some columns of a view or table.

        columns: source column by new name
        """
        named = ", ".join(f'"{column}" AS "{new}"' for new, column in columns.items())
        self.connection.table(source).project(named).create_view(name)

    def first_votes(self) -> None:
        """Define the view `first_votes`: id, letters, and two columns for each detector, such as cld2 and cld2_score.

        They hold the language that the detector ranks first (und for none) and its score. DuckDB and Spark have no
        common SQL for the first element of a list, so this is not a query in sql/.
        """
        firsts = ", ".join(
            f"coalesce({detector}[1].language, '{UND}') AS {detector}, {detector}[1].score AS {detector}_score"
            for detector in VOTERS
        )
        self.connection.table("votes").project(f"id, letters, {firsts}").create_view("first_votes", replace=True)

    def define(self, name: str, query: str) -> None:
        """Define a view from a query of sql/, which is computed at each use."""
        self.connection.sql(sql_of(query)).create_view(name)

    def keep(self, name: str, query: str) -> None:
        """Create a table from the result of a query of sql/."""
        self.connection.sql(sql_of(query)).create(name)

    def keep_anew(self, name: str, query: str) -> None:
        """Replace a table that `keep` created with the result of a query, which may read it."""
        self.keep(f"{name}_anew", query)
        self.connection.execute(f"DROP TABLE {name}")
        self.connection.execute(f"ALTER TABLE {name}_anew RENAME TO {name}")

    def size(self, name: str) -> int:
        """Return the number of rows of a view or table."""
        return len(self.connection.table(name))

    def query(self, name: str, *parameters: object) -> pa.RecordBatchReader:
        """Run sql/<name>.sql and return its rows in batches.

        parameters: values for its `?` placeholders, in order
        """
        return self.connection.sql(sql_of(name), params=list(parameters) or None).to_arrow_reader(_BATCH_ROWS)

    def found(self, name: str, *parameters: object) -> list[dict[str, Any]]:
        """Run sql/<name>.sql and return its rows as dicts, for results that fit into memory."""
        rows: list[dict[str, Any]] = self.query(name, *parameters).read_all().to_pylist()
        return rows


@contextmanager
def _opened() -> Iterator[Store]:
    """Open a DuckDB store without views."""
    import duckdb

    spill = Path(settings.DATA_DIR) / "tmp"
    spill.mkdir(parents=True, exist_ok=True)
    config: dict[str, Any] = {
        "memory_limit": MEMORY_LIMIT,
        "temp_directory": str(spill),
        "autoinstall_known_extensions": False,  # no downloads
    }
    with duckdb.connect(config=config) as connection:
        yield Store(connection)


def _spark() -> ModuleType:
    try:
        return import_module("corpora.engines.spark")
    except ImportError as error:
        raise CorpusError(
            f"ASSAY_ENGINE is spark, and {error.name} is not installed. Install Assay with its extra, as in "
            "`pip install '.[spark]'`, or set ASSAY_ENGINE=duckdb."
        ) from error


@contextmanager
def full_disk_explained(what: str) -> Iterator[None]:
    """Turn an error about a full disk, from the system or the engine, into a CorpusError.

    what: what was not done, as in "no draw was made"
    """
    try:
        yield
    except CorpusError:
        raise
    except Exception as error:
        full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        text = str(error)
        if full or "No space left" in text or "max_temp_directory_size" in text:
            raise CorpusError(
                f"The disk is full: {what}. What was there before stays. "
                f"Free space in {settings.DATA_DIR} and run the command again."
            ) from error
        raise


@contextmanager
def asking(
    name: str, parts: int | None = None, manifest: Manifest | None = None, engine: str | None = None
) -> Iterator[Store]:
    """Open a store over a corpus and its votes.

    parts: number of parts to include, from the first; None for all
    manifest: the manifest to use; None to read the current one
    engine: overrides the setting ENGINE
    """
    opened = _opened if (engine or settings.ENGINE) == "duckdb" else _spark().opened
    manifest, directory = manifest or read_manifest(name), corpus_dir(name)
    with opened() as store:
        posts = [directory / "parts" / part.name for part in manifest.parts] if manifest else []
        votes = [directory / "votes" / part.name for part in manifest.votes] if manifest else []
        fields = manifest.fields if manifest else ()
        store.view("posts", posts[:parts], schema_of(fields, bool(manifest and manifest.declared)), fields)
        store.view("votes", votes[:parts], votes_schema())
        yield store


def spread() -> Callable[..., Iterator[pa.Table]] | None:
    """Return the function that maps over files on all machines (spark.mapped), or None if there is only this one."""
    return None if settings.ENGINE == "duckdb" else _spark().mapped


def votes_in(texts: pa.Array) -> pa.Array:
    """Convert items' votes from JSON to lists of (detector, rank, language, score), in the order of the detectors.

    DuckDB does the conversion with either engine, without creating an object for each vote.
    """
    of_each = ", ".join(
        f'list_transform(coalesce(from_json(votes, \'{{"{detector}": [["JSON"]]}}\').{detector}, []), lambda vote, '
        f"rank: struct_pack(detector := '{detector}', rank := rank::INT, language := vote[1]->>'$', "
        "score := vote[2]::DOUBLE))"
        for detector in VOTERS
    )
    unpacked = _aside().from_arrow(pa.table({"votes": texts})).project(f"flatten([{of_each}]) AS votes")
    return unpacked.to_arrow_table()["votes"].combine_chunks()


@cache
def _aside() -> Any:
    """Return a cached connection, because opening one takes longer than converting a chunk of votes."""
    import duckdb

    return duckdb.connect(config={"autoinstall_known_extensions": False})


def posts_by_author(corpus_name: str, author: str, limit: int) -> list[dict[str, Any]]:
    """Return up to `limit` posts of an author, latest first, with id, text, posted_at (UTC or None) and url.

    DuckDB is used with either engine, because a page waits for the result.

    author: the author's hash
    CorpusError: the posts cannot be read
    """
    if not author:
        return []
    from duckdb import Error

    try:
        with asking(corpus_name, None, manifest_of(corpus_name), "duckdb") as store:
            return store.found("posts_by_author", author, limit)
    except (CorpusError, OSError, ValueError, Error, pa.ArrowException) as error:
        reason = str(error).split("\n")[0].rstrip(".")
        raise CorpusError(
            f"The posts of corpus {corpus_name} cannot be read: {reason}. "
            f"Check {corpus_dir(corpus_name)} and the room in {Path(settings.DATA_DIR) / 'tmp'}."
        ) from error
