"""The beginning of an evaluation report: the result in one sentence, one plot of the main figures, and the caveats."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.utils.safestring import SafeString

from annotate.reports import text_plots
from annotate.reports.numbers import amount
from annotate.reports.plots import Row, axis_of, forest
from annotate.reports.slice_tables import DIMENSIONS, MEASURES, capital, figure, mark_of, noun_of, shown_value
from annotate.reports.tables import many

Figure = Mapping[str, Any]
# Values of dimensions that the sentence does not mention, because they stand for everything.
EVERYTHING = ("with und", "all")


def sentence(report: dict[str, Any]) -> str:
    """Return the result in one sentence: the system, its main figure with the interval, on how many items.

    If two systems are compared, the sentence also has the difference.
    """
    measured = [row for row in report["rows"] if row["value"] is not None]
    heads = _heads(report, measured) or measured[:1]
    exact = next((row for row in heads[1:] if row["low"] is not None), None)
    # A figure without an interval is followed by the first one that has an interval.
    told = [*heads[:1], *([exact] if exact and heads[0]["low"] is None else [])]
    figures = "; ".join(_told(report, row) for row in told) or f"too few items for a main figure ({_items(report)})"
    return f"{report['predictor']['spelled']}: {figures}{_difference(report)}."


def _items(report: Mapping[str, Any]) -> int:
    return sum(gold["rows"] for gold in report["gold"])


def _heads(report: Mapping[str, Any], rows: Sequence[Figure]) -> list[Figure]:
    return [
        row for head in report["head"] for row in rows if (row["measure"], row["of"]) == (head["measure"], head["of"])
    ]


def _told(report: Mapping[str, Any], row: Figure) -> str:
    on = f" on {many(row['units'], noun_of(report))}" if row["units"] else f", {row['note']}" if row["note"] else ""
    return f"{_name(report, row)} {figure(row).shown}{on}"


def _name(report: Mapping[str, Any], row: Figure) -> str:
    """Return the measure, followed by the slice in brackets unless the slice is everything."""
    slice_values = ", ".join(where(report, row, without=EVERYTHING))
    return f"{MEASURES[row['measure']].name}{f' ({slice_values})' if slice_values else ''}"


def where(report: Mapping[str, Any], row: Figure, without: Sequence[str] = ()) -> list[str]:
    """Return the values that define the row's slice. A number is preceded by the name of its dimension."""
    names = report.get("names", {})
    return [
        f"{DIMENSIONS.get(name, name)} {value}" if value.isdigit() else names.get(value, shown_value(value))
        for name, value in row["of"].items()
        if value not in without
    ]


# --- The difference of two systems


def is_decided(row: Figure) -> bool:
    """Return whether the printed interval excludes zero. It is printed with shares rounded to three decimals."""
    return bool(row.get("better") and all(end is not None and round(end, 3) for end in (row["low"], row["high"])))


def better_of(report: Mapping[str, Any], row: Figure) -> str:
    """Return the name of the better system. Return an empty string if the printed interval contains zero."""
    names = {"first": report["predictor"]["spelled"], "second": report["comparison"]["other"]["spelled"]}
    return names.get(row["better"], "") if is_decided(row) else ""


def _difference(report: Mapping[str, Any]) -> str:
    """Return the part of the sentence on the difference, in the first head's measure if that was compared.

    If only labels were compared, it counts for how many of them each system is better.
    """
    if not (comparison := report.get("comparison")):
        return ""
    first_system, second_system = report["predictor"]["spelled"], comparison["other"]["spelled"]
    measured = [row for row in comparison["rows"] if row["value"] is not None]
    main = [row for row in measured if {"measure": row["measure"], "of": row["of"]} in report["head"][:1]]
    row = next(iter(main or measured or comparison["rows"]), None)
    if row is None or "label" in row["of"]:
        winners = [better_of(report, each) for each in comparison["rows"]]
        counts = " and ".join(f"{name} is better in {winners.count(name)}" for name in (first_system, second_system))
        return f"; of {many(len(winners), 'figure')} by label, {counts}"
    if row["value"] is None or row["low"] is None:
        return f"; not compared with {second_system} ({row['note'] or 'no interval'})"
    about = "" if main else f"in {_name(report, row)}, "
    undecided = "" if is_decided(row) else ", so neither is shown to be better"
    size, interval = amount(row, is_share=MEASURES[row["measure"]].is_share)
    return f"; {about}{size} than {second_system} {interval}{undecided}"


# --- The plot of the main figures


def _plotted(report: Mapping[str, Any]) -> tuple[list[Row], tuple[str, ...]]:
    """Return the rows of the plot, which have a mark for each system, and the names of the systems."""
    comparison = report.get("comparison") or {}
    systems = {report["predictor"]["spelled"]: report["rows"]}
    if comparison.get("other_rows"):
        systems[comparison["other"]["spelled"]] = comparison["other_rows"]
    by_name = dict[str, Row]()
    for head in _heads(report, report["rows"]):
        by_system = [_same(head, figures) for figures in systems.values()]
        if MEASURES[head["measure"]].is_share and head["value"] is not None:
            # If a measure has figures for several sets of posts or labels, plot the first one.
            whole = {
                **head,
                "of": {name: value for name, value in head["of"].items() if name not in ("posts", "labels")},
            }
            name = capital(_name(report, whole))
            by_name.setdefault(name, Row(name, "", tuple(map(mark_of, by_system))))
    rows = list(by_name.values())
    compared = [row for row in rows if all(row.marks)] if len(systems) > 1 else []
    if compared:
        return compared, tuple(systems)
    return [row._replace(marks=row.marks[:1]) for row in rows], ()


def _same(row: Figure, figures: Sequence[Figure]) -> Figure | None:
    key = row["measure"], row["of"]
    return next((each for each in figures if (each["measure"], each["of"]) == key), None)


def plot(report: Mapping[str, Any]) -> SafeString:
    rows, systems = _plotted(report)
    return forest(rows, title="Main figures", counted=f"{noun_of(report)}s", series=systems) if rows else SafeString()


def plot_in_text(report: Mapping[str, Any]) -> list[str]:
    """Return the plot as lines of characters, for Markdown and for a terminal."""
    rows, systems = _plotted(report)
    lines = [
        (f"{row.label}: {systems[index]}" if systems else row.label, mark)
        for row in rows
        for index, mark in enumerate(row.marks)
        if mark and mark.value is not None
    ]
    return text_plots.intervals(lines, axis_of(rows))


# --- Caveats


def caveats(warnings: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each warning as its first sentence, which is always visible, and the rest, which is folded."""
    for warning in warnings:
        first, *rest = re.split(r"(?<=[.!?])\s+(?=[A-Z“])", warning, maxsplit=1)
        yield first, "".join(rest)
