"""The people of all tasks in one table, and their timesheet as a file; in the terms of work/everybody.py."""

from collections.abc import Iterable
from datetime import date
from typing import Any

from annotate.kinds.labels import label_name
from annotate.reports.csv_files import written
from annotate.reports.numbers import count
from annotate.reports.tables import NUMBER, SENTENCE, Cell, Column, Table, estimated, numbers, table, timed

HEADINGS = ("name", "username", "day", "task", "answers", "skips", "decisions", "active hours")


def everybody_table(people: Iterable[dict[str, Any]], asked: str) -> Table:
    heads = (
        Column("name", "annotator", says=_name),
        Column("languages", "reads", SENTENCE, _languages),
        Column("tasks", "tasks", SENTENCE, lambda row: Cell(", ".join(row["tasks"]), len(row["tasks"]))),
        *numbers({"answers": "answers", "decisions": "decisions"}),
        *(_hours(key, words) for key, words in (("today", "hours today"), ("week", "in 7 days"), ("all", "in all"))),
        estimated("right", "right in gold answers"),
        estimated("same", "same as the label"),
        Column("paused", "paused in", NUMBER, lambda row: Cell(count(row["paused"]), row["paused"])),
        timed("last", "last seen"),
    )
    return table("Everybody", heads, people, slug="everybody", asked=asked)


def _name(row: dict[str, Any]) -> Cell:
    notes = [row["username"]] if row["username"] != row["name"] else []
    notes += ["adjudicates"] if row["adjudicates"] else []
    notes += [] if row["active"] else ["locked out"]
    return Cell(row["name"], row["name"].casefold(), note=", ".join(notes))


def _languages(row: dict[str, Any]) -> Cell:
    """The best first."""
    ordered = sorted(row["languages"].items(), key=lambda of: (-of[1], of[0]))
    return Cell(", ".join(f"{label_name(code)} {level}" for code, level in ordered), [code for code, _ in ordered])


def _hours(key: str, words: str) -> Column:
    def hours(row: dict[str, Any]) -> Cell:
        return Cell(f"{row['hours'][key]:,.1f}" if row["hours"][key] else "0", round(row["hours"][key], 2))

    return Column(key, words, NUMBER, hours)


def timesheet_csv(rows: Iterable[dict[str, Any]]) -> str:
    """A line a person, day and task; hours to two digits."""
    return written(
        HEADINGS,
        (
            [
                *(row[key] for key in ("name", "username")),
                _day(row["day"]),
                *(row[key] for key in ("task", "answers", "skips", "decisions")),
                f"{row['hours']:.2f}",
            ]
            for row in rows
        ),
    )


def _day(day: date) -> str:
    return day.isoformat()
