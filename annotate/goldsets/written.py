"""The rows in a set, as its files have them: what is made of all of them need not keep their texts meanwhile."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


@dataclass(frozen=True)
class Written:
    """jsonl: the file of all rows in their order. whole: the Parquet file of a set that is not split, which is not
    there if the set has no rows.
    """

    jsonl: Path
    whole: Path | None

    def each(self, columns: Collection[str]) -> Iterator[dict[str, Any]]:
        """Row by row those of the columns that it has."""
        with self.jsonl.open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                row = json.loads(line)
                yield {column: row[column] for column in columns if column in row}

    def columns(self, *names: str) -> Iterator[pa.RecordBatch]:
        """Columns of a set that is not split, in batches."""
        if self.whole and self.whole.exists():
            with pq.ParquetFile(self.whole) as file:
                yield from file.iter_batches(columns=list(names))
