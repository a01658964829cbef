"""Search in EuroVoc: whether the first letters of a label find it among the first ten results, and how fast.

For each label, the query is the first four letters of its first word and the first two of its second. The searches run
once in EuroVoc (eurovoc/concepts.json, schemes.json), and once with generated concepts whose labels consist of
EuroVoc's words. The search is timed, and so is the server's response to an annotator's input, with labels, paths and
schemes.
"""

import json
from pathlib import Path

from benchmarks.material import MissingData
from benchmarks.place import BenchmarkFailed, new_place
from benchmarks.tables import share, show

LEAST_FOUND = 0.98
MOST_MS = (20, 50)  # the server's median answer, without and with made concepts


def add_options(parser) -> None:
    parser.add_argument(
        "--vocabulary-concepts", type=int, default=100_000, help="EuroVoc's and the made ones (default %(default)s)"
    )


def run(folder: Path, options) -> None:
    files = [folder / "eurovoc" / name for name in ("concepts.json", "schemes.json")]
    if missing := [file for file in files if not file.is_file()]:
        raise MissingData(f"There is no {missing[0]}.")
    with new_place() as place:
        place.env |= {"DJANGO_SETTINGS_MODULE": "deploy.settings"}
        place.manage("django", "migrate", "-v0")
        command = ("-m", "benchmarks.vocabulary_work", *files, str(options.vocabulary_concepts), options.seed)
        rows = json.loads(place.run(*command))
    show(
        f"EuroVoc on {place.database}",
        [
            *("concepts", "labels", "import s", "found", "median ms", "99% ms", "longest ms", "one letter, longest ms"),
            *("answer, median ms", "99% ms"),
        ],
        [
            [
                row["concepts"],
                row["labels"],
                f"{row['import_s']:.0f}",
                share(row["found"], row["asked"]),
                *(f"{row[name]:.1f}" for name in ("median_ms", "p99_ms", "longest_ms", "letter_ms")),
                *(f"{row[name]:.1f}" for name in ("answer_ms", "answer_p99_ms")),
            ]
            for row in rows
        ],
    )
    if rows[0]["found"] < LEAST_FOUND * rows[0]["asked"]:
        raise BenchmarkFailed(f"Only {rows[0]['found']:,} of {rows[0]['asked']:,} labels were found.")
    for row, most in zip(rows, MOST_MS, strict=True):
        if row["answer_ms"] >= most:
            raise BenchmarkFailed(
                f"With {row['concepts']:,} concepts the median answer takes {row['answer_ms']:.1f} ms."
            )
