"""Generated requests to every operation of the API: whether the responses match the schema.

Schemathesis generates them from the schema. No data are needed.
"""

import json
from pathlib import Path

from benchmarks.place import BenchmarkFailed, new_place
from benchmarks.tables import show

HEADS = ["operation", "cases", "2xx", "other 4xx", "404", "5xx", "undescribed"]


def add_options(parser) -> None:
    parser.add_argument("--cases", type=int, default=250, help="maximum requests per operation (default %(default)s)")


def run(folder: Path, options) -> None:
    """FOLDER is not read."""
    with new_place() as place:
        place.env |= {"DJANGO_SETTINGS_MODULE": "deploy.settings"}
        place.manage("django", "migrate", "-v0")
        lines = place.run("-m", "benchmarks.api_work", str(options.cases)).splitlines()
    rows = [json.loads(line) for line in lines]
    faults = [fault for row in rows for fault in row.pop("faults")]
    table = [[*row.values()] for row in rows]
    total = ["all", *(sum(column) for column in zip(*(row[1:] for row in table), strict=True))]
    show(f"{total[1]:,} cases", HEADS, [*table, total])
    if faults:
        raise BenchmarkFailed(
            f"{len(faults):,} responses differ from the schema, for example:\n" + "\n".join(faults[:5])
        )
