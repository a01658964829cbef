"""Spark asks a corpus: on all cores of this machine, or on a cluster whose machines have the data folder at its path.

Nothing outside this module imports pyspark, and it is imported only where it is the engine. The queries are those of
sql/, and the methods of Store those of DuckDB's. What a query finds is brought to this process, as Arrow. One session
serves the process; each store has its own views beside it.
"""

import os
import shutil
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from corpora.core.voters import VOTERS
from corpora.engines import check_there, sql_of

_BATCH_ROWS = 10_000
# What sql/ relies on, whatever an installation of Spark is set to.
_FIXED = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}
# What a command that asks and ends does without; an installation of Spark, or spark-submit, may set them otherwise.
_USUAL = {
    "spark.app.name": "assay",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class Store:
    """A Spark session on one corpus, with the views `posts` and `votes` (engines/__init__.py)."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self.kept: list[DataFrame] = []

    def view(self, name: str, files: list[Path], schema: pa.Schema, fields: tuple[str, ...] = ()) -> None:
        """A view over Parquet files, with the schema's columns even if there are no files. CorpusError if one is gone.

        fields: columns that are also given as one column, `fields`, so that a query need not know their names.
        """
        check_there(files)
        assert not any(file.name.startswith((".", "_")) for file in files), "Spark reads no rows of hidden files"
        reader = self.session.read.schema(from_arrow_schema(schema))
        frame = reader.parquet(*map(str, files)) if files else self._given(schema.empty_table())
        if fields:
            packed = F.struct(*(_column(field) for field in fields)).alias("fields")
            none = F.lit(None).cast("array<string>").alias(DECLARED)
            frame = frame.select("*", packed, *([] if DECLARED in schema.names else [none]))
        frame.createOrReplaceTempView(name)

    def rows(self, name: str, table: pa.Table) -> None:
        """A table of the given rows."""
        self._given(table).createOrReplaceTempView(name)

    def select(self, name: str, source: str, columns: Mapping[str, str]) -> None:
        """A view of some columns of a view or table; columns: what each is called here -> its name there."""
        named = [_column(column).alias(new) for new, column in columns.items()]
        self.session.table(source).select(*named).createOrReplaceTempView(name)

    def first_votes(self) -> None:
        """The view `first_votes`: id, letters, and for a detector such as cld2 the columns cld2 and cld2_score.

        They are the language that it names first (und if it names none) and its score, if any.
        """
        columns: list[Column] = [F.col("id"), F.col("letters")]
        for detector in VOTERS:
            first = F.get(F.col(detector), F.lit(0))
            columns.append(F.coalesce(first["language"], F.lit(UND)).alias(detector))
            columns.append(first["score"].alias(f"{detector}_score"))
        self.session.table("votes").select(*columns).createOrReplaceTempView("first_votes")

    def define(self, name: str, query: str) -> None:
        """A view made of a query of sql/, computed whenever it is asked."""
        self._found(query).createOrReplaceTempView(name)

    def keep(self, name: str, query: str) -> None:
        """A table of what a query of sql/ finds. Files do not change, so it is computed once it is first asked."""
        self.kept.append(self._found(query).persist())
        self.kept[-1].createOrReplaceTempView(name)

    # A view keeps what it was made of, so the query may read the table that it replaces.
    keep_anew = keep

    def size(self, name: str) -> int:
        """How many rows a view or table has."""
        return self.session.table(name).count()

    def query(self, name: str, *parameters: object) -> pa.RecordBatchReader:
        """The rows of sql/<name>.sql, with the parameters for its `?` in order; in batches, for large results."""
        return self._found(name, *parameters).toArrow().to_reader(_BATCH_ROWS)

    def found(self, name: str, *parameters: object) -> list[dict[str, Any]]:
        """All rows of sql/<name>.sql, each by its columns; for results that fit into memory."""
        rows: list[dict[str, Any]] = self.query(name, *parameters).read_all().to_pylist()
        return rows

    def _given(self, table: pa.Table) -> DataFrame:
        return self.session.createDataFrame(table)

    def _found(self, name: str, *parameters: object) -> DataFrame:
        return self.session.sql(sql_of(name), args=list(parameters))


def _column(name: str) -> Column:
    return F.col(f"`{name.replace('`', '``')}`")


@contextmanager
def opened() -> Iterator[Store]:
    """A store without any views. CorpusError if Spark cannot be started, or fails."""
    try:
        store = Store(_session())
        try:
            yield store
        finally:
            for frame in store.kept:
                frame.unpersist()
    except (PySparkException, Py4JError) as error:
        if "No space left" in str(error):  # which the caller explains
            raise
        # Of what the JVM has raised, the first line says only through what Python has asked.
        lines = [line.strip(" :") for line in str(error).splitlines() if "error occurred while calling" not in line]
        reason = next(filter(None, lines), type(error).__name__).rstrip(".")
        raise CorpusError(
            f"Spark has failed: {reason}. Mend that and run the command again, or set ASSAY_ENGINE=duckdb."
        ) from error


def _session() -> SparkSession:
    """A session of its own, with no views, in the one Spark of this process, which is started if need be."""
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not (submitted or _java()):
        raise CorpusError(
            "ASSAY_ENGINE is spark, which needs Java 17 or newer, and none is found here. Install it (on Debian "
            "openjdk-17-jre-headless) or set JAVA_HOME to it, or set ASSAY_ENGINE=duckdb."
        )
    # The executors' Python is this one, and finds what this one does.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.config("spark.executorEnv.PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    if not submitted:
        for name, value in _USUAL.items():
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


def mapped(
    files: Sequence[Path],
    columns: Sequence[str],
    function: Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]],
    schema: pa.Schema,
    batch_rows: int,
) -> Iterator[pa.Table]:
    """What the executors make of the rows of each Parquet file, in the order of files and rows. One task has a file.

    function: takes batches of `columns` with up to `batch_rows` rows, and gives batches of the schema. As many files
    are under way as the executors have cores.
    """
    check_there(files)
    with opened() as store:
        session, wanted = store.session, from_arrow_schema(schema)
        session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(batch_rows))
        at_once = session.sparkContext.defaultParallelism

        def work(file: Path) -> pa.Table:
            # coalesce: a file that Spark would cut is one task all the same, so the rows stay in order
            frame = session.read.parquet(str(file)).select(*columns).coalesce(1)
            return frame.mapInArrow(function, wanted).toArrow().cast(schema)

        under_way: deque[Future[pa.Table]] = deque()
        threads = ThreadPoolExecutor(at_once)
        try:
            for file in files:
                under_way.append(threads.submit(work, file))
                if len(under_way) == at_once:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:
            if under_way:
                session.interruptAll()
            threads.shutdown(cancel_futures=True)
