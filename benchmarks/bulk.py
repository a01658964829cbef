"""Import, open_task and export_gold of many posts: rows per second, compared with floors, and peak memory.

No data are needed. Posts, votes and answers are generated. A floor processes the same rows without Assay: it converts
JSON to Parquet, inserts the task's rows into tables with the same indexes, or fetches the same tables and writes the
set's rows to Parquet. Floors and steps alternate, each in a separate process, on an installation with a quarter of the
posts and on one with all posts. Memory should be the same for both.
"""

import json
from pathlib import Path

from benchmarks.place import new_place
from benchmarks.sampling import show_profile
from benchmarks.tables import show

MEASURED = {"import": "import_corpus", "open": "open_task", "export": "export_gold"}
# Each step needs the ones before.
STEPS = ("posts", "import", "import_floor", "vote", "open", "open_floor", "answer", "export", "export_floor")
HEADS = ["", "rows", "rows/s", "floor rows/s", "times the floor's seconds", "MB at the start", "MB at most"]


def add_options(parser) -> None:
    parser.add_argument(
        "--bulk-posts", type=int, default=100_000, help="posts; the full benchmark has 1,000,000 (default %(default)s)"
    )


def run(folder: Path, options) -> None:
    """FOLDER is not read."""
    for posts in (options.bulk_posts // 4, options.bulk_posts):
        with new_place() as place:
            place.env |= {"DJANGO_SETTINGS_MODULE": "deploy.settings"}
            place.manage("django", "migrate", "-v0")
            work = ("-m", "benchmarks.bulk_work")
            took = {step: json.loads(place.run(*work, step, str(place.folder), str(posts))) for step in STEPS}
            show(
                f"{posts:,} posts on {place.database}",
                HEADS,
                [_row(name, took[step], took[f"{step}_floor"]) for step, name in MEASURED.items()],
            )
    for step, name in MEASURED.items():
        show_profile(f"Where the time of {name} goes", took[step]["where"])


def _row(name: str, ours: dict, floor: dict) -> list[object]:
    pace, most = ours["rows"] / ours["seconds"], floor["rows"] / floor["seconds"]
    return [name, ours["rows"], int(pace), int(most), most / pace, int(ours["start"]), int(ours["peak"])]
