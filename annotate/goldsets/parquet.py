"""Rows into Parquet files, batch by batch, so that no file's rows are all in memory at once."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

BATCH = 2000


@contextmanager
def parquet_files(paths: Mapping[str, Path], schema: pa.Schema) -> Iterator[Callable[[str, dict[str, Any]], None]]:
    """Yields a function that writes a row into one of these files, by its key; a file without rows is not made."""
    batches: dict[str, list[dict[str, Any]]] = {part: [] for part in paths}
    writers: dict[str, pq.ParquetWriter] = {}
    with ExitStack() as files:

        def flush(part: str) -> None:
            if part not in writers:
                writers[part] = files.enter_context(pq.ParquetWriter(paths[part], schema, compression="zstd"))
            writers[part].write_batch(pa.RecordBatch.from_pylist(batches[part], schema=schema))
            batches[part].clear()

        def write(part: str, row: dict[str, Any]) -> None:
            batches[part].append(row)
            if len(batches[part]) == BATCH:
                flush(part)

        yield write
        for part, batch in batches.items():
            if batch:
                flush(part)
