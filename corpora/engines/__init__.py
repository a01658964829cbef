"""How a corpus is queried. Callers import from here and name no engine.

DuckDB asks on one machine, in memory up to a limit and on disk beyond it; Spark (spark.py) on one or many. The setting
ENGINE says which. Both run the queries in sql/, one a file, in the SQL that they share. What they do not share is a
method of Store; spark.py has a Store with the same methods. DuckDB is imported when a corpus is first asked: the
server's pages rarely ask one.
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
# DuckDB sorts and joins on disk beyond this. Its peak goes past it, and the rest of the process comes on top: with a
# draw from 20 million posts 225 MB (python -m tests.benchmarks FOLDER draws). So the process stays below 1 GB.
MEMORY_LIMIT = "600MB"
_BATCH_ROWS = 10_000


def sql_of(name: str) -> str:
    """The query of a file. `every_voter` stands for the columns of all voters, and `majority_of_voters` for the
    language that more than half of them name first, else und.
    """
    text = (SQL / f"{name}.sql").read_text(encoding="utf-8")
    votes = {name: " + ".join(f"CAST({name} = {other} AS INT)" for other in VOTERS) for name in VOTERS}
    cases = " ".join(f"WHEN 2 * ({each}) > {len(VOTERS)} THEN {name}" for name, each in votes.items())
    text = text.replace("majority_of_voters", f"CASE {cases} ELSE 'und' END")
    return re.sub(r"(\w+\.)?every_voter", lambda found: ", ".join(f"{found[1] or ''}{name}" for name in VOTERS), text)


def check_there(files: Iterable[Path]) -> None:
    """CorpusError if a file of the corpus is gone."""
    if missing := next((file for file in files if not file.exists()), None):
        raise CorpusError(f"The corpus has lost its file {missing}; restore it from a backup.")


@dataclass
class Store:
    """A DuckDB connection on one corpus, with the views `posts` and `votes`."""

    connection: Any

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
            packed = ", ".join(f'"{field}" := "{field}"' for field in fields)
            # Records without declared labels have the column all the same, so that a query need not ask.
            more = "" if DECLARED in schema.names else f", NULL::VARCHAR[] AS {DECLARED}"
            relation = relation.project(f"*, struct_pack({packed}) AS fields{more}")
        if files:
            relation.create_view(name)
        else:
            relation.create(name)

    def rows(self, name: str, table: pa.Table) -> None:
        """A table of the given rows."""
        self.connection.from_arrow(table).create(name)

    def select(self, name: str, source: str, columns: Mapping[str, str]) -> None:
        """A view of some columns of a view or table; columns: what each is called here -> its name there."""
        named = ", ".join(f'"{column}" AS "{new}"' for new, column in columns.items())
        self.connection.table(source).project(named).create_view(name)

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
        self.connection.sql(sql_of(query)).create_view(name)

    def keep(self, name: str, query: str) -> None:
        """A table of what a query of sql/ finds now."""
        self.connection.sql(sql_of(query)).create(name)

    def keep_anew(self, name: str, query: str) -> None:
        """The table that `keep` made, replaced by what a query finds, which may read it."""
        self.keep(f"{name}_anew", query)
        self.connection.execute(f"DROP TABLE {name}")
        self.connection.execute(f"ALTER TABLE {name}_anew RENAME TO {name}")

    def size(self, name: str) -> int:
        """How many rows a view or table has."""
        return len(self.connection.table(name))

    def query(self, name: str, *parameters: object) -> pa.RecordBatchReader:
        """The rows of sql/<name>.sql, with the parameters for its `?` in order; in batches, for large results."""
        return self.connection.sql(sql_of(name), params=list(parameters) or None).to_arrow_reader(_BATCH_ROWS)

    def found(self, name: str, *parameters: object) -> list[dict[str, Any]]:
        """All rows of sql/<name>.sql, each by its columns; for results that fit into memory."""
        rows: list[dict[str, Any]] = self.query(name, *parameters).read_all().to_pylist()
        return rows


@contextmanager
def _opened() -> Iterator[Store]:
    """A store of DuckDB without any views."""
    import duckdb

    spill = Path(settings.DATA_DIR) / "tmp"
    spill.mkdir(parents=True, exist_ok=True)
    config: dict[str, Any] = {
        "memory_limit": MEMORY_LIMIT,
        "temp_directory": str(spill),
        "autoinstall_known_extensions": False,  # nothing is downloaded
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
    """Turn a full disk, as the system or the engine reports it, into a sentence."""
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
    """A store over the first `parts` parts of a corpus and the votes on them; all of both by default.

    `manifest` is the one that the caller has read, if it wants no later one; without it the one on disk is read.
    engine: in place of the one that is set.
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
    """How a function is applied to files on all machines of the engine (spark.mapped); None if it has but this one."""
    return None if settings.ENGINE == "duckdb" else _spark().mapped


def votes_in(texts: pa.Array) -> pa.Array:
    """Votes as items have them, in JSON, each as a list of (detector, rank, language, score), in the order of the
    detectors. DuckDB unpacks them, whichever engine is set: no object is made of a vote.
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
    """A connection that stays: to open one takes longer than the votes of a chunk."""
    import duckdb

    return duckdb.connect(config={"autoinstall_known_extensions": False})


def posts_by_author(corpus_name: str, author: str, limit: int) -> list[dict[str, Any]]:
    """Up to `limit` posts of one (hashed) author, the latest first: id, text, posted_at (UTC or None), url.

    A page waits for them, so DuckDB is asked, whichever engine is set. CorpusError if they cannot be read, for whatever
    reason.
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
