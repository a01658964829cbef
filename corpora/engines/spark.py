"""The Spark engine. It runs on all cores of this machine, or on a cluster that mounts the data folder at the same path.

Only this module imports pyspark, and it is imported only if the engine is Spark. The queries are in sql/, and Store has
the same methods as the DuckDB store. Results are collected into this process as Arrow tables. Each process has a single
Spark application, in which each store has its own session and views.
"""

import os
import shutil
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from django.conf import settings
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from corpora.core import CorpusError
from corpora.core.languages import UND
from corpora.core.records import DECLARED
from corpora.core.voters import DEFAULT, RANKS, Panel
from corpora.engines import check_files, sql_of

_BATCH_ROWS = 10_000
# Settings that the queries in sql/ require. They override those of the Spark installation.
_FIXED = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}
# Defaults for a short-lived command. They don't apply if the command is run with spark-submit.
_DEFAULTS = {
    "spark.app.name": "assay",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class Store:
    """A Spark session on one corpus, with the `posts` and `votes` views. It has the same methods as engines.Store."""

    def __init__(self, session: SparkSession, panel: Panel = DEFAULT) -> None:
        self.session, self.panel = session, panel
        self.persisted: list[DataFrame] = []

    def view(self, name: str, files: list[Path], schema: pa.Schema, fields: tuple[str, ...] = ()) -> None:
        """Define a view over Parquet files. Without files, the view is empty but has all columns of the schema.

        fields: columns to copy to a struct column named `fields`, so that queries don't depend on their names

        Raise CorpusError if a file is missing.
        """
        check_files(files)
        assert not any(file.name.startswith((".", "_")) for file in files), "Spark ignores hidden files"
        reader = self.session.read.schema(from_arrow_schema(schema))
        frame = reader.parquet(*map(str, files)) if files else self._frame(schema.empty_table())
        if fields:
            packed = F.struct(*(_column(field) for field in fields)).alias("fields")
            none = F.lit(None).cast("array<string>").alias(DECLARED)
            frame = frame.select("*", packed, *([] if DECLARED in schema.names else [none]))
        frame.createOrReplaceTempView(name)

    def rows(self, name: str, table: pa.Table) -> None:
        """Create a view with the rows of an Arrow table."""
        self._frame(table).createOrReplaceTempView(name)

    def select(self, name: str, source: str, columns: Mapping[str, str]) -> None:
        """Define a view with some columns of a table or another view.

        columns: names of the columns in the source, by their new names
        """
        selection = [_column(column).alias(new) for new, column in columns.items()]
        self.session.table(source).select(*selection).createOrReplaceTempView(name)

    def join_votes(self, voted: str, imported: Mapping[str, str]) -> None:
        """Define the `votes` view of the store's panel.

        voted: view with the registered voters' votes; "" for records, because these voters only vote on posts
        imported: for each imported voter, a view with its predictions, ranked or not
        """
        frame = self.session.table(voted or "posts")
        letters = F.col("letters") if voted else F.lit(0).alias("letters")
        frame = frame.select("id", letters, *(_column(name) for name in self.panel.registered))
        for name, view in imported.items():
            predicted = self.session.table(view)
            votes = _rankings(is_ranked="labels" in predicted.columns)
            frame = frame.join(predicted.select("id", votes.alias(name)), "id", "left")
            none = F.array().cast("array<struct<language:string,score:double>>")
            frame = frame.withColumn(name, F.coalesce(_column(name), none))
        frame.createOrReplaceTempView("votes")

    def first_votes(self, voters: Iterable[str] = ()) -> None:
        """Define the `first_votes` view.

        Its columns are `id`, `letters`, and two per voter, such as `cld2` and `cld2_score`. These contain the voter's
        first label (`und` if there is none) and the label's score.

        voters: names of the voters, by default those of the store's panel
        """
        columns: list[Column] = [F.col("id"), F.col("letters")]
        for voter in voters or self.panel.voters:
            best = F.get(_column(voter), F.lit(0))
            columns.append(F.coalesce(best["language"], F.lit(UND)).alias(voter))
            columns.append(best["score"].alias(f"{voter}_score"))
        self.session.table("votes").select(*columns).createOrReplaceTempView("first_votes")

    def define(self, name: str, query: str) -> None:
        """Define a view from a query in sql/. The query runs each time the view is used."""
        self._result(query).createOrReplaceTempView(name)

    def keep(self, name: str, query: str) -> None:
        """Define a view of a query's result.

        Spark computes the result when the view is first used, and then caches it. This is safe because the files don't
        change.
        """
        self.persisted.append(self._result(query).persist())
        self.persisted[-1].createOrReplaceTempView(name)

    # The query can read the view that it replaces, because the new view's plan includes the old view's plan.
    replace = keep

    def size(self, name: str) -> int:
        """Return the number of rows in a view."""
        return self.session.table(name).count()

    def query(self, name: str, *parameters: object) -> pa.RecordBatchReader:
        """Run sql/<name>.sql and return its rows in batches.

        parameters: values for the query's `?` placeholders, in order
        """
        return self._result(name, *parameters).toArrow().to_reader(_BATCH_ROWS)

    def fetch(self, name: str, *parameters: object) -> list[dict[str, Any]]:
        """Run sql/<name>.sql and return its rows as dicts. The result must fit into memory."""
        rows: list[dict[str, Any]] = self.query(name, *parameters).read_all().to_pylist()
        return rows

    def _frame(self, table: pa.Table) -> DataFrame:
        return self.session.createDataFrame(table)

    def _result(self, name: str, *parameters: object) -> DataFrame:
        return self.session.sql(sql_of(name, self.panel.voters, "`"), args=list(parameters))


def _rankings(*, is_ranked: bool) -> Column:
    """Return a column expression that converts imported predictions to the form of detectors' votes.

    is_ranked: whether the predictions are ranked
    """
    label, score = ("labels", "scores") if is_ranked else ("label", "score")
    pairs = F.arrays_zip(label, score) if is_ranked else F.array(F.struct(label, score))
    votes = F.transform(pairs, lambda pair: F.struct(pair[label].alias("language"), pair[score].alias("score")))
    return F.slice(F.filter(votes, lambda vote: vote["language"] != UND), 1, RANKS)


def _column(name: str) -> Column:
    return F.col(f"`{name.replace('`', '``')}`")


@contextmanager
def open_spark() -> Iterator[Store]:
    """Open a store without views.

    Raise CorpusError if Spark cannot be started or a query fails.
    """
    try:
        store = Store(_session())
        try:
            yield store
        finally:
            for frame in store.persisted:
                frame.unpersist()
    except (PySparkException, Py4JError) as error:
        if "No space left" in str(error):  # The caller converts this error (explain_full_disk).
            raise
        # Omit the first line of a JVM error, which only names the Python call.
        lines = [line.strip(" :") for line in str(error).splitlines() if "error occurred while calling" not in line]
        reason = next(filter(None, lines), type(error).__name__).rstrip(".")
        raise CorpusError(
            f"Spark failed: {reason}. Fix the problem and run the command again, or set ASSAY_ENGINE=duckdb."
        ) from error


def _session() -> SparkSession:
    """Create a session without views. Start the process's Spark application if it isn't running yet."""
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not (submitted or _java()):
        raise CorpusError(
            "ASSAY_ENGINE is spark, which requires Java 17 or newer, but Java was not found. Install it (on Debian: "
            "openjdk-17-jre-headless), set JAVA_HOME, or set ASSAY_ENGINE=duckdb."
        )
    # Executors must use the same Python interpreter and import path as this process.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.config("spark.executorEnv.PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    if not submitted:
        for name, value in _DEFAULTS.items():
            builder = builder.config(name, value)
    if settings.SPARK_MASTER:
        builder = builder.master(settings.SPARK_MASTER)
    session = builder.getOrCreate().newSession()
    for name, value in _FIXED.items():
        session.conf.set(name, value)
    return session


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=os.path.join(home, "bin") if home else None)


def map_files(
    files: Sequence[Path],
    columns: Sequence[str],
    function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
    batch_rows: int,
) -> Generator[pa.Table, None, None]:
    """Apply a function to the rows of Parquet files on the executors, and yield one result per file, in order.

    Each file is a separate task, and each executor core processes one file at a time.

    columns: columns to read
    function: function that takes batches with these columns and yields batches of `schema`
    schema: schema of the results
    batch_rows: maximum number of rows per batch
    """
    check_files(files)
    with open_spark() as store:
        session, spark_schema = store.session, from_arrow_schema(schema)
        session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(batch_rows))
        limit = session.sparkContext.defaultParallelism

        def work(file: Path) -> pa.Table:
            # Without coalesce(1), Spark could split the file into several tasks and change the order of rows.
            frame = session.read.parquet(str(file)).select(*columns).coalesce(1)
            return frame.mapInArrow(function, spark_schema).toArrow().cast(schema)

        pending: deque[Future[pa.Table]] = deque()
        threads = ThreadPoolExecutor(limit)
        try:
            for file in files:
                pending.append(threads.submit(work, file))
                if len(pending) == limit:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            if pending:
                session.interruptAll()
            threads.shutdown(cancel_futures=True)
