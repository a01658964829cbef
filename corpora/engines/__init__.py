"""Queries on a corpus, run by the engine in the setting ENGINE.

DuckDB runs on a single machine, in memory up to a limit and on disk beyond it. Spark (spark.py) runs on a single
machine or on a cluster. The queries are in sql/, one per file, in SQL that both engines understand. Operations without
common SQL are methods of Store, and the Store class in spark.py has the same methods. DuckDB is imported only when the
first query runs, because the server's pages rarely need it.
"""

import errno
import json
import re
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
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
from corpora.core.voters import DEFAULT, RANKS, Panel
from corpora.storage.layout import Manifest, corpus_dir, fetch_manifest, manifest_of
from corpora.storage.schemas import PREDICTIONS_SCHEMA, RANKED_SCHEMA, schema_of, votes_schema

SQL = Path(__file__).parent / "sql"
# If sorts and joins need more memory than this, DuckDB spills to disk. Its peak can exceed the limit, and the rest of
# the process needs 225 MB for a draw from 20 million posts (python -m benchmarks FOLDER draws). With this limit, the
# process stays below 1 GB.
MEMORY_LIMIT = "600MB"
_BATCH_ROWS = 10_000


def sql_of(name: str, voters: Sequence[str], quote: str = '"') -> str:
    """Return the text of a query in sql/, with two placeholders expanded:

    - every_voter becomes the columns of the voters.
    - majority_of_voters becomes the language that most of the default panel rank first, or `und` if there is none.

    voters: names of the voters
    quote: the engine's quotation mark for identifiers
    """
    text = (SQL / f"{name}.sql").read_text(encoding="utf-8")
    quoted, default = [f"{quote}{voter}{quote}" for voter in voters], DEFAULT.voters
    votes = {name: " + ".join(f"CAST({name} = {other_voter} AS INT)" for other_voter in default) for name in default}
    cases = " ".join(f"WHEN 2 * ({agreement}) > {len(default)} THEN {name}" for name, agreement in votes.items())
    text = text.replace("majority_of_voters", f"CASE {cases} ELSE 'und' END")
    return re.sub(r"(\w+\.)?every_voter", lambda match: ", ".join(f"{match[1] or ''}{name}" for name in quoted), text)


def texts(**columns: Iterable[str]) -> pa.Table:
    """Return an Arrow table of strings for `Store.rows`, from the values of each column."""
    return pa.table({name: pa.array(list(values), pa.string()) for name, values in columns.items()})


def check_files(files: Iterable[Path]) -> None:
    """Raise CorpusError if one of a corpus's files is missing."""
    if missing := next((file for file in files if not file.exists()), None):
        raise CorpusError(f"The corpus file {missing} is missing. Restore it from a backup.")


@dataclass
class Store:
    """A DuckDB connection to a corpus, whose data is in the `posts` and `votes` views.

    panel: voters whose votes are in the `votes` view
    """

    connection: Any
    panel: Panel = DEFAULT

    def view(self, name: str, files: list[Path], schema: pa.Schema, fields: tuple[str, ...] = ()) -> None:
        """Define a view over Parquet files. Without files, the view is empty but has all columns of the schema.

        fields: columns to copy to a struct column named `fields`, so that queries don't depend on their names

        Raise CorpusError if a file is missing.
        """
        check_files(files)
        if files:
            relation = self.connection.read_parquet([str(file) for file in files])
        else:
            relation = self.connection.from_arrow(schema.empty_table())
        if fields:
            packed = ", ".join(f'"{field}" := "{field}"' for field in fields)
            # Queries on records select the declared labels, so add an empty column if there are none.
            declared_column = "" if DECLARED in schema.names else f", NULL::VARCHAR[] AS {DECLARED}"
            relation = relation.project(f"*, struct_pack({packed}) AS fields{declared_column}")
        if files:
            relation.create_view(name)
        else:
            relation.create(name)

    def rows(self, name: str, table: pa.Table) -> None:
        """Create a table with the rows of an Arrow table."""
        self.connection.from_arrow(table).create(name)

    def select(self, name: str, source: str, columns: Mapping[str, str]) -> None:
        """Define a view with some columns of a table or another view.

        columns: names of the columns in the source, by their new names
        """
        projection = ", ".join(f'"{column}" AS "{new}"' for new, column in columns.items())
        self.connection.table(source).project(projection).create_view(name)

    def join_votes(self, voted: str, imported: Mapping[str, str]) -> None:
        """Define the `votes` view of the store's panel.

        voted: view with the registered voters' votes; "" for records, because these voters only vote on posts
        imported: for each imported voter, a view with its predictions, ranked or not

        Like first_votes, this is not a query in sql/, because DuckDB and Spark have no common SQL for lists.
        """
        registered = [f'base."{name}"' for name in self.panel.registered]
        joins, lists = [], []
        for name, view in imported.items():
            if "labels" in self.connection.table(view).columns:
                pairs = f"lambda entry, place: struct_pack(language := entry, score := {view}.scores[place])"
                votes = f"coalesce(list_transform({view}.labels[:{RANKS}], {pairs}), [])"
            else:
                vote = f"struct_pack(language := {view}.label, score := {view}.score)"
                votes = f"list_filter([{vote}], lambda entry: entry.language <> '{UND}')"
            lists.append(f'{votes} AS "{name}"')
            joins.append(f"LEFT JOIN {view} ON base.id = {view}.id")
        columns = ", ".join(["base.id", "base.letters" if voted else "0 AS letters", *registered, *lists])
        query = f"SELECT {columns} FROM {voted or 'posts'} AS base {' '.join(joins)}"  # noqa: S608 - names only
        self.connection.sql(query).create_view("votes")

    def first_votes(self, voters: Iterable[str] = ()) -> None:
        """Define the `first_votes` view.

        Its columns are `id`, `letters`, and two per voter, such as `cld2` and `cld2_score`. These contain the voter's
        first label (`und` if there is none) and the label's score.

        voters: names of the voters, by default those of the store's panel
        """
        firsts = ", ".join(
            f"""coalesce("{name}"[1].language, '{UND}') AS "{name}", "{name}"[1].score AS "{name}_score\""""
            for name in voters or self.panel.voters
        )
        self.connection.table("votes").project(f"id, letters, {firsts}").create_view("first_votes", replace=True)

    def define(self, name: str, query: str) -> None:
        """Define a view from a query in sql/. The query runs each time the view is used."""
        self.connection.sql(self._sql(query)).create_view(name)

    def keep(self, name: str, query: str) -> None:
        """Create a table from the result of a query in sql/."""
        self.connection.sql(self._sql(query)).create(name)

    def replace(self, name: str, query: str) -> None:
        """Replace a table created by `keep` with the result of a query. The query can read the old table."""
        self.keep(f"{name}_new", query)
        self.connection.execute(f"DROP TABLE {name}")
        self.connection.execute(f"ALTER TABLE {name}_new RENAME TO {name}")

    def size(self, name: str) -> int:
        """Return the number of rows in a view or table."""
        return len(self.connection.table(name))

    def query(self, name: str, *parameters: object) -> pa.RecordBatchReader:
        """Run sql/<name>.sql and return its rows in batches.

        parameters: values for the query's `?` placeholders, in order
        """
        return self.connection.sql(self._sql(name), params=list(parameters) or None).to_arrow_reader(_BATCH_ROWS)

    def fetch(self, name: str, *parameters: object) -> list[dict[str, Any]]:
        """Run sql/<name>.sql and return its rows as dicts. The result must fit into memory."""
        rows: list[dict[str, Any]] = self.query(name, *parameters).read_all().to_pylist()
        return rows

    def _sql(self, name: str) -> str:
        return sql_of(name, self.panel.voters)


@contextmanager
def _open_duckdb() -> Iterator[Store]:
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
            f"ASSAY_ENGINE is spark, but {error.name} is not installed. Install Assay with "
            "`pip install '.[spark]'`, or set ASSAY_ENGINE=duckdb."
        ) from error


@contextmanager
def explain_full_disk(consequence: str) -> Iterator[None]:
    """Convert errors about a full disk, from the operating system or the engine, to CorpusError.

    consequence: the consequence to report, such as "nothing was drawn"
    """
    try:
        yield
    except CorpusError:
        raise
    except Exception as error:
        is_full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        text = str(error)
        if is_full or "No space left" in text or "max_temp_directory_size" in text:
            raise CorpusError(
                f"The disk is full: {consequence}. The existing files are unchanged. "
                f"Free space in {settings.DATA_DIR} and run the command again."
            ) from error
        raise


@contextmanager
def open_store(
    name: str,
    parts: int | None = None,
    manifest: Manifest | None = None,
    engine: str | None = None,
    panel: Panel = DEFAULT,
) -> Iterator[Store]:
    """Open a store with a corpus's `posts` and `votes` views.

    parts: number of parts to include, starting with the first; None for all
    manifest: the corpus's manifest; None to load it
    engine: engine that overrides the setting ENGINE
    panel: voters whose votes are in the `votes` view; callers first check (predictions/panels.py) that all have voted
    """
    open_engine = _open_duckdb if (engine or settings.ENGINE) == "duckdb" else _spark().open_spark
    manifest, directory = manifest or fetch_manifest(name), corpus_dir(name)
    with open_engine() as store:
        posts = [directory / "parts" / part.name for part in manifest.parts] if manifest else []
        votes = [directory / "votes" / part.name for part in manifest.votes] if manifest else []
        fields = manifest.fields if manifest else ()
        store.view("posts", posts[:parts], schema_of(fields, bool(manifest and manifest.declared)), fields)
        store.panel = panel
        voted = "voted" if panel.imported else "votes"
        store.view(voted, votes[:parts], votes_schema(manifest.voters if manifest else DEFAULT.voters))
        if manifest and panel.imported:
            entries = {str(entry): entry for entry in manifest.predictions}
            views = {voter: f"imported_{number}" for number, voter in enumerate(panel.imported)}
            for voter, view in views.items():
                schema = RANKED_SCHEMA if entries[voter].ranked else PREDICTIONS_SCHEMA
                store.view(view, [directory / "predictions" / entries[voter].file], schema)
            store.join_votes("" if fields else voted, views)
        yield store


def cluster_map() -> Callable[..., Generator[pa.Table, None, None]] | None:
    """Return the function that processes files on a Spark cluster (spark.map_files), or None on DuckDB."""
    return None if settings.ENGINE == "duckdb" else _spark().map_files


def votes_in(texts: pa.Array, voters: Collection[str]) -> pa.Array:
    """Convert items' votes from JSON to lists of (detector, rank, language, score) structs, in the voters' order.

    The conversion always uses DuckDB, which doesn't create a Python object for each vote.
    """
    form = json.dumps({detector: [["VARCHAR"]] for detector in voters} or "JSON")  # DuckDB rejects an empty object
    lists = ", ".join(
        f"list_transform(coalesce(votes.\"{detector}\", []), lambda vote, rank: struct_pack(detector := '{detector}', "
        "rank := rank::INT, language := vote[1], score := vote[2]::DOUBLE))"
        for detector in voters
    )
    rows = _conversion_connection().from_arrow(pa.table({"votes": texts})).project(f"from_json(votes, '{form}') votes")
    return rows.project(f"flatten([{lists}]) AS votes").to_arrow_table()["votes"].combine_chunks()


@cache
def _conversion_connection() -> Any:
    """Return a DuckDB connection. Cached, because opening it takes longer than converting a batch of votes."""
    import duckdb

    return duckdb.connect(config={"autoinstall_known_extensions": False})


def posts_by_author(corpus_name: str, author: str, limit: int) -> list[dict[str, Any]]:
    """Return up to `limit` posts of an author, latest first. Each has an id, text, posted_at (UTC or None) and url.

    The query always runs on DuckDB, because a page needs the result immediately.

    author: the author's hash

    Raise CorpusError if the posts cannot be read.
    """
    if not author:
        return []
    from duckdb import Error

    try:
        with open_store(corpus_name, None, manifest_of(corpus_name), "duckdb") as store:
            return store.fetch("posts_by_author", author, limit)
    except (CorpusError, OSError, ValueError, Error, pa.ArrowException) as error:
        reason = str(error).split("\n")[0].rstrip(".")
        raise CorpusError(
            f"The posts of corpus {corpus_name} cannot be read: {reason}. "
            f"Check {corpus_dir(corpus_name)} and the free space in {Path(settings.DATA_DIR) / 'tmp'}."
        ) from error
