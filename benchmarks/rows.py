"""Generated rows for every importer: the numbers of accepted, rejected and duplicate rows, and whether any was lost.

No data are needed.
"""

import json
from pathlib import Path

from benchmarks.place import BenchmarkFailed, new_place
from benchmarks.tables import show

HEADS = ["importer", "files", "rows", "accepted", "refused", "duplicates", "files refused whole", "faults"]


def add_options(parser) -> None:
    parser.add_argument("--files", type=int, default=30, help="files per importer and format (default %(default)s)")


def run(folder: Path, options) -> None:
    """FOLDER is not read."""
    with new_place() as place:
        place.env |= {"DJANGO_SETTINGS_MODULE": "deploy.settings"}
        place.manage("django", "migrate", "-v0")
        made = ["-m", "benchmarks.rows_work", str(place.folder), str(options.files), options.seed]
        rows = [json.loads(line) for line in place.run(*made).splitlines()]
    faults = [fault for row in rows for fault in row.pop("lost")]
    table = [[*row.values()] for row in rows]
    total = ["all", *(sum(column) for column in zip(*(row[1:] for row in table), strict=True))]
    show(f"{total[2]:,} rows", HEADS, [*table, total])
    if faults:
        raise BenchmarkFailed(f"{len(faults):,} files have unexplained rows, for example:\n" + "\n".join(faults[:5]))
