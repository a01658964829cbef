"""The same rows in each file format: rows read per second of CPU, and peak memory.

No data are needed. Each file is read in a separate process, at a quarter of the size and at full size. Memory should be
the same for both. Memory is what the process allocates; the pages of a file that is mapped into memory do not count.
"""

import json
from pathlib import Path

from benchmarks.place import new_place
from benchmarks.tables import show

FILES = ("rows.jsonl", "lines.json", "one_line.json", "rows.csv", "rows.parquet", "rows.arrow", "packed.feather")
HEADS = ["file", "rows", "rows/s", "MB of the file", "MB at the start", "MB at most"]


def add_options(parser) -> None:
    parser.add_argument("--format-rows", type=int, default=1_000_000, help="rows in each file (default %(default)s)")


def run(folder: Path, options) -> None:
    """FOLDER is not read."""
    for rows in (options.format_rows // 4, options.format_rows):
        with new_place() as place:
            work = ("-m", "benchmarks.row_formats_work", str(place.folder))
            place.run(*work, "write", str(rows))
            show(f"{rows:,} rows", HEADS, [json.loads(place.run(*work, name)) for name in FILES])
