"""The work of the benchmark row_formats: `FOLDER write ROWS` writes the files, `FOLDER NAME` reads one."""

import csv
import json
import re
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from corpora.core.records import FIELDS
from corpora.sources.compression import format_of
from corpora.sources.readers import Columns, read_rows

BATCH = 50_000
SCHEMA = pa.schema([(field, pa.string()) for field in FIELDS])


def row(number: int) -> dict[str, str]:
    text = f"Guten Morgen, das ist der Satz Nummer {number} über das Wetter und die „Welt“ von heute."
    common = {"author": f"a{number % 5000}", "posted_at": "2024-01-02", "url": f"https://example.org/{number}"}
    return {"id": f"p{number}", "text": text} | common


def write(folder: Path, count: int) -> None:
    with ExitStack() as stack:
        lines, array, line, table = (
            stack.enter_context((folder / name).open("w", encoding="utf-8", newline=""))
            for name in ("rows.jsonl", "lines.json", "one_line.json", "rows.csv")
        )
        packed = pa.ipc.IpcWriteOptions(compression="lz4")
        columnar = (
            stack.enter_context(pq.ParquetWriter(folder / "rows.parquet", SCHEMA)),
            stack.enter_context(pa.ipc.new_file(folder / "rows.arrow", SCHEMA)),
            stack.enter_context(pa.ipc.new_file(folder / "packed.feather", SCHEMA, options=packed)),
        )
        cells = csv.DictWriter(table, FIELDS)
        cells.writeheader()
        for first in range(0, count, BATCH):
            rows = [row(number) for number in range(first, min(first + BATCH, count))]
            texts = [json.dumps(record, ensure_ascii=False) for record in rows]
            lines.writelines(f"{text}\n" for text in texts)
            array.write(("[\n" if not first else ",\n") + ",\n".join(texts))
            line.write(("[" if not first else ", ") + ", ".join(texts))
            cells.writerows(rows)
            for writer in columnar:
                writer.write_table(pa.Table.from_pylist(rows, SCHEMA))
        array.write("\n]\n")
        line.write("]")


def allocated() -> float:
    """Return the memory that the process has allocated now, in MB."""
    return int(re.findall(r"^RssAnon:\s+(\d+)", Path("/proc/self/status").read_text(), re.MULTILINE)[0]) / 1024


def read(path: Path) -> list[object]:
    """Read a file. Return its name, its rows, rows per second of CPU, its size, and memory at the start and peak."""
    start, most, rows, began = allocated(), 0.0, 0, time.process_time()
    for _ in read_rows(path, format_of(path) or "", Columns({field: field for field in FIELDS})):
        rows += 1
        if rows % 10_000 == 0:
            most = max(most, allocated())
    pace = rows / (time.process_time() - began)
    return [path.name, rows, int(pace), path.stat().st_size >> 20, int(start), int(most)]


if __name__ == "__main__":
    folder, name = Path(sys.argv[1]), sys.argv[2]
    if name == "write":
        write(folder, int(sys.argv[3]))
    else:
        print(json.dumps(read(folder / name)))
