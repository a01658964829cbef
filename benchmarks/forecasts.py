"""Forecasts of simulated campaigns with 20 readers: how often they end within the range, and how wide it is.

No data are needed. The people of the campaigns (forecasts_work.py) differ from the assumptions of the forecast. Each
campaign is forecast before it begins or after some days, with the knowledge of a manager. The range is designed for the
first four populations. The others are more difficult and only reported.
"""

from statistics import median

from benchmarks.forecasts_work import WORLDS, Row
from benchmarks.place import in_places
from benchmarks.tables import share, show


def add_options(parser) -> None:
    parser.add_argument("--campaigns", type=int, default=100, help="of each population (default %(default)s)")


def run(folder, options) -> None:
    rows = []
    for name, campaigns in in_places("benchmarks.forecasts_work", WORLDS, options.campaigns, options.seed):
        rows.append(row_of(name, [Row(*row) for row in campaigns]))
    head = ("population", "campaigns", "within", "earlier", "later", "days", "foretold", "range", "languages within")
    show("When campaigns of 20 readers end", head, rows)


def within(rows) -> int:
    return sum(row.foretold[0] <= row.end <= row.foretold[2] for row in rows)


def row_of(name: str, rows: list[Row]) -> tuple[object, ...]:
    low, middle, high = (median(row.foretold[place] for row in rows) for place in range(3))
    languages = [language for row in rows for language in row.languages]
    held = sum(low <= end <= high for end, low, _, high in languages)
    return (
        name,
        len(rows),
        share(within(rows), len(rows)),
        share(sum(row.end < row.foretold[0] for row in rows), len(rows)),
        share(sum(row.end > row.foretold[2] for row in rows), len(rows)),
        f"{median(row.end for row in rows):.1f}",
        f"{middle:.1f}",
        f"{low:.1f} to {high:.1f}",
        share(held, len(languages)),
    )
