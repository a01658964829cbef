"""Lazy tables for notebooks, and wrappers for calls from notebooks.

Database calls run outside the notebook's event loop. All errors are raised as AssayError with a short message.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import pyarrow as pa
import pyarrow.dataset as ds
from django.db import Error as DatabaseError
from django.utils.html import format_html, format_html_join

from annotate.actions.action import ActionError
from annotate.core.option import OptionError
from annotate.core.refusals import Refusal
from annotate.evaluation.subjects import EvaluationError
from annotate.exit_status import PROGRAM_ERRORS
from annotate.goldsets.set_folder import GoldSetError
from annotate.notebook.installation import AssayError, check_installed
from annotate.reports.table_formats import as_lines
from annotate.reports.tables import Column, many, table
from corpora.core import CorpusError
from corpora.core.records import RecordError
from corpora.system import DatabaseAway

# --- Calls

P = ParamSpec("P")
R = TypeVar("R")
# Exceptions with messages for users.
READABLE = (ActionError, OptionError, Refusal, EvaluationError, GoldSetError, CorpusError, RecordError, DatabaseAway)

# Jupyter runs cells in an event loop, where Django refuses database queries (SynchronousOnlyOperation) because they
# would block the loop. Queries therefore run in a second thread, as in asgiref's sync_to_async. It is always the same
# thread, because a database connection belongs to a thread. DJANGO_ALLOW_ASYNC_UNSAFE isn't an alternative, because it
# would disable the check in the whole process.
_EXECUTOR = ThreadPoolExecutor(max_workers=1, thread_name_prefix="assay")


def outside_loop(call: Callable[[], R], stop: Callable[[], None] | None = None) -> R:
    """Call a function and return its result. Inside an event loop, the call runs in the database thread.

    stop: stops the call. If the user interrupts the call, `stop` runs, and the interrupt is raised once the call has
        ended.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return call()
    future = _EXECUTOR.submit(call)
    try:
        return future.result()
    except KeyboardInterrupt:
        if stop:
            stop()
            future.exception()  # wait until the call has ended
        raise


@contextmanager
def readable_errors(what: str = "") -> Iterator[None]:
    """Convert errors to AssayError.

    what: description of the data being read, for file errors without a file name.
    """
    try:
        yield
    except READABLE as error:
        # Drop the cause: the message is complete, and a notebook would show the cause's long traceback.
        raise AssayError(str(error)) from None
    except DatabaseError as error:
        if isinstance(error, PROGRAM_ERRORS):
            raise
        message = " ".join(str(error).split()).rstrip(".")
        raise AssayError(
            f"The database cannot be used: {message}. Check DATABASE_URL, and run `assay serve` once to set it up."
        ) from error
    except (OSError, pa.ArrowException) as error:
        message = str(error).split("\n")[0].rstrip(".")
        raise AssayError(f"{what or 'A file'} cannot be read: {message}.") from error


def database(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that queries the database, so that notebooks can call it."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        check_installed()
        with readable_errors():
            return outside_loop(lambda: function(*args, **kwargs))

    return run


if TYPE_CHECKING:
    import pandas as pd

BATCH_ROWS = 10_000
SHOWN = 10  # rows shown in a notebook
LONGEST = 140  # maximum number of visible characters per value
WORDY = 40  # length above which a value gets a minimum width, in characters


class Rows:
    """A lazy table.

    Iteration yields dicts and keeps only one batch in memory, and len() counts the rows without loading them. Only
    to_arrow() and to_pandas() load the whole table. To filter rows or select columns first, use `dataset`, the
    underlying pyarrow Dataset.
    """

    def __init__(self, dataset: ds.Dataset, what: str, folder: Path | None = None) -> None:
        self.dataset, self.what = dataset, what
        self._place = f"{what} in {folder}" if folder else what

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.dataset.schema.names)

    def __len__(self) -> int:
        with readable_errors(self._place):
            return int(self.dataset.count_rows())

    def __bool__(self) -> bool:
        return len(self) > 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self._read(BATCH_ROWS)

    def head(self, rows: int = SHOWN) -> list[dict[str, Any]]:
        """Return the first rows as dicts."""
        return list(islice(self._read(max(rows, 1)), rows))

    def _read(self, at_once: int) -> Iterator[dict[str, Any]]:
        # Read one file at a time with little readahead, because files may be larger than memory.
        with readable_errors(self._place):
            for file in self.dataset.get_fragments():
                for batch in file.to_batches(schema=self.dataset.schema, batch_size=at_once, batch_readahead=1):
                    yield from batch.to_pylist()

    def to_arrow(self, columns: Collection[str] | None = None) -> pa.Table:
        """Load all rows into an Arrow table.

        columns: names of the columns to load; by default, all columns.

        Raise AssayError if there is no such column.
        """
        if unknown := [column for column in columns or () if column not in self.columns]:
            raise AssayError(f"{self.what} has no column {unknown[0]!r}. Its columns are: {', '.join(self.columns)}.")
        with readable_errors(self._place):
            return self.dataset.to_table(columns=None if columns is None else list(columns))

    def to_pandas(self, columns: Collection[str] | None = None) -> "pd.DataFrame":
        """Load all rows into a DataFrame.

        columns: names of the columns to load; by default, all columns.

        Raise AssayError if there is no such column, or if pandas is not installed.
        """
        check_pandas()
        rows: pd.DataFrame = self.to_arrow(columns).to_pandas()
        return rows

    def __repr__(self) -> str:
        """Return the first rows as a table for a terminal."""
        rows = [{column: _cut(row[column]) for column in self.columns} for row in self.head()]
        columns = [Column(column, column) for column in self.columns]
        return f"{self._caption}\n{as_lines(table(self.what, columns, rows))}"

    @property
    def _caption(self) -> str:
        return f"{self.what}: {many(len(self), 'row')}{f', first {SHOWN} shown' if len(self) > SHOWN else ''}"

    def _repr_html_(self) -> str:
        """Return the first rows as an HTML table with all values escaped."""
        heads = format_html_join("", "<th>{}</th>", ((column,) for column in self.columns))
        rows = format_html_join("", "<tr>{}</tr>", ((_cells(row),) for row in self.head()))
        return format_html("<table><caption>{}</caption><tr>{}</tr>{}</table>", self._caption, heads, rows)


def _cells(row: Mapping[str, Any]) -> str:
    return format_html_join(
        "", "<td dir='auto' style='{}'>{}</td>", ((_style(cell), _cut(cell)) for cell in row.values())
    )


def _style(value: Any) -> str:
    """Return the CSS for a value.

    By default, Jupyter aligns all cells to the right and makes text columns too narrow.
    """
    if isinstance(value, int | float):
        return "text-align: end"
    return "text-align: start; min-width: 18em" if len(str(value)) > WORDY else "text-align: start"


def _cut(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def check_pandas() -> None:
    if find_spec("pandas") is None:
        raise AssayError("DataFrames require pandas, which is not installed. Run pip install pandas.")


def from_files(files: Sequence[Path], schema: pa.Schema | None, what: str) -> Rows:
    """Return the rows of Parquet files, in order.

    files: the files.
    schema: schema of the files; required only if `files` may be empty.
    what: description of the table, for captions and messages.
    """
    if not files and schema is not None:
        return Rows(ds.dataset(schema.empty_table()), what)
    folder = files[0].parent
    with readable_errors(f"{what} in {folder}"):
        return Rows(ds.dataset([str(file) for file in files], schema=schema, format="parquet"), what, folder)


def from_dicts(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], what: str) -> Rows:
    """Return a table from rows in memory."""
    table = pa.table({column: [row.get(column) for row in rows] for column in columns})
    return Rows(ds.dataset(table), what)
