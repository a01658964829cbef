"""Made-up rows through every importer: how many were accepted, refused or there before, and whether any was lost.

No data are needed.
"""

import json
from pathlib import Path

from benchmarks.place import BenchmarkFailed, new_place
from benchmarks.tables import show

HEADS = ["importer", "files", "rows", "accepted", "refused", "duplicates", "files refused whole", "faults"]


def add_options(parser) -> None:
    parser.add_argument("--files", type=int, default=30, help="of each importer and format (default %(default)s)")


def run(folder: Path, options) -> None:
    """The folder is not read."""
    with new_place() as place:
        place.env |= {"DJANGO_SETTINGS_MODULE": "deploy.settings"}
        place.manage("django", "migrate", "-v0")
        made = ["-m", "benchmarks.rows_work", str(place.folder), str(options.files), options.seed]
        rows = [json.loads(line) for line in place.run(*made).splitlines()]
    faults = [fault for row in rows for fault in row.pop("lost")]
    found = [[*row.values()] for row in rows]
    total = ["all", *(sum(column) for column in zip(*(row[1:] for row in found), strict=True))]
    show(f"{total[2]:,} rows", HEADS, [*found, total])
    if faults:
        raise BenchmarkFailed(f"{len(faults):,} files were not accounted for, such as:\n" + "\n".join(faults[:5]))
