"""Rows into Parquet files, batch by batch, so that no file's rows are all in memory at once."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

BATCH = 2000  # rows of a row group


@contextmanager
def parquet_files(paths: Mapping[str, Path], schema: pa.Schema) -> Iterator[Callable[[str, pa.RecordBatch], None]]:
    """Yields a function that writes rows into one of these files, by its key; a file without rows is not made, but
    the first where none has any, so that a reader finds columns and no rows. However the rows come, the files are the
    same.
    """
    waiting = dict.fromkeys(paths, pa.RecordBatch.from_pylist([], schema=schema))
    writers: dict[str, pq.ParquetWriter] = {}
    with ExitStack() as files:

        def flush(part: str, rows: pa.RecordBatch) -> None:
            if part not in writers:
                writers[part] = files.enter_context(pq.ParquetWriter(paths[part], schema, compression="zstd"))
            writers[part].write_batch(rows)

        def write(part: str, rows: pa.RecordBatch) -> None:
            rows = pa.concat_batches([waiting[part], rows])
            whole = rows.num_rows - rows.num_rows % BATCH
            for start in range(0, whole, BATCH):
                flush(part, rows.slice(start, BATCH))
            waiting[part] = rows.slice(whole)

        yield write
        for part, rows in waiting.items():
            if rows.num_rows:
                flush(part, rows)
        if not writers:
            # Without a group of rows, since the datasets library cannot read an empty one.
            files.enter_context(pq.ParquetWriter(next(iter(paths.values())), schema, compression="zstd"))


@contextmanager
def parquet_rows(paths: Mapping[str, Path], schema: pa.Schema) -> Iterator[Callable[[str, dict[str, Any]], None]]:
    """The same for one row at a time."""
    batches: dict[str, list[dict[str, Any]]] = {part: [] for part in paths}
    with parquet_files(paths, schema) as into_files:

        def flush(part: str) -> None:
            into_files(part, pa.RecordBatch.from_pylist(batches[part], schema=schema))
            batches[part].clear()

        def write(part: str, row: dict[str, Any]) -> None:
            batches[part].append(row)
            if len(batches[part]) == BATCH:
                flush(part)

        yield write
        for part in batches:
            flush(part)
