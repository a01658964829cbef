"""Tables and plots of measures by slice, as sections of evaluation reports.

A table has either a row for each slice and a column for each measure, or a single measure with a dimension's values as
columns.
"""

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from django.utils.safestring import SafeString

from annotate.kinds.forms import FORMS
from annotate.reports.numbers import NOT_MEASURED, coefficient, count, estimate, p_value, percent, points, span
from annotate.reports.plots import Mark, axis_of, forest
from annotate.reports.plots import Row as PlotRow
from annotate.reports.tables import ALL, NAME, NOTE, NUMBER, Cell, Column, Table, beside, dense, many, numbered

# Maximum number of marks in a picture that fits on a printed page: for a single series, and for several series. Further
# rows continue in the next picture, on the same axis.
SINGLES, SEVERAL = 40, 48
# Maximum number of columns that fit in a terminal: for numbers without intervals, and for slices together with numbers
# that have intervals.
ACROSS, WIDE = 8, 5
NOTES = Column("note", "note", NOTE)
ZERO_AT_BEST = ("refused", "ece", "aurc")  # not plotted with other measures, because their best value is near zero
NAMED = ("language",)  # dimensions whose values are codes with a name
MOST_COUNTED = 2  # maximum number of measures in a table with effective counts
TESTS = {"p": "p", "p_holm": "Holm p"}
Figure = Mapping[str, Any]


@dataclass(frozen=True)
class Section:
    """A section of a report.

    slug: name of the section in links.
    words: sentences below the title.
    loud: prominent warning.
    plots: function that returns the pictures.
    paged: whether the tables are only for pages, not for a terminal.
    filters: descriptions of filters for table rows, by the rows' CSS class.
    """

    slug: str
    title: str
    words: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    loud: str = ""
    plots: Callable[[], list[SafeString]] = list
    paged: bool = False
    filters: Mapping[str, str] = field(default_factory=dict)


def pictures(rows: Sequence[PlotRow], title: str, counted: str, series: tuple[str, ...] = ()) -> list[SafeString]:
    """Plot rows in as many pictures as needed, all on the same axis.

    counted: noun for the units counted by the marks.
    """
    axis, limit = axis_of(rows), SEVERAL // len(series) if len(series) > 1 else SINGLES
    size = -(-len(rows) // max(1, -(-len(rows) // limit))) or 1  # parts of nearly equal size
    parts = [rows[start : start + size] for start in range(0, len(rows), size)]
    return [
        forest(part, title=f"{title}, part {n}" if n > 1 else title, axis=axis, counted=counted, series=series)
        for n, part in enumerate(parts, 1)
        # Omit pictures without measurements. Rows that were not measured come last.
        if any(mark is not None and mark.value is not None for row in part for mark in row.marks)
    ]


def mark_of(row: Figure | None) -> Mark | None:
    """Return the mark for a row. It is only a dot if the row has no interval."""
    if not row:
        return None
    rests_on = row.get("count") if row["units"] is None else row["units"]
    ends = (row["value"] or 0.0,) * 2 if row["low"] is None else (row["low"], row["high"])
    return Mark(row["value"], *ends, rests_on)


def _by_value(row: PlotRow) -> tuple[bool, float, str]:
    """Return a sort key by descending value. Rows that were not measured come last."""
    values = [mark.value for mark in row.marks if mark is not None and mark.value is not None]
    missing = row.marks[0] is None or row.marks[0].value is None
    return missing, -values[0] if values else 1, row.label


def noun_of(report: Mapping[str, Any]) -> str:
    """Return the noun for the report's units, which is "item" if the report has the generic "unit"."""
    return "item" if report["unit"] == "unit" else str(report["unit"])


def shown_value(value: str) -> str:
    """Return the display name of a dimension's value."""
    return VALUES.get(value, value)


def capital(string: str) -> str:
    """Capitalize the first letter of a text, unless its first word has an inner capital, as in chrF and nDCG."""
    return string if re.match(r"[a-z]+[A-Z]", string) else string[:1].upper() + string[1:]


def figure(row: Figure) -> Cell:
    measure, value = MEASURES[row["measure"]], row["value"]
    if measure.is_exact and not measure.is_difference:
        return Cell(percent(value) if measure.is_share else count(value), value)
    return Cell((points if measure.is_difference else estimate if measure.is_share else coefficient)(row), value)


def p_column(key: str, heading: str) -> Column:
    return Column(key, heading, NUMBER, lambda row: p_value(row[key]))


def measure_column(report: dict[str, Any]) -> Column:
    def cell(row: Figure) -> Cell:
        name = MEASURES[row["measure"]].name
        return Cell(name, name, method=ANCHORS[method(row["measure"], report.get("form", ""))])

    return Column("measure", "measure", says=cell)


def sections_of(
    report: dict[str, Any], rows: Iterable[dict[str, Any]], cell: Callable[[Figure], Cell]
) -> list[Section]:
    """Return the sections for rows of measures.

    By default, rows with the same dimensions form a section, with a line per slice and a column per measure.

    rows: rows of the report or of its comparison.
    cell: function that returns the cell for a row.
    """
    declared = {
        (measure, tuple(part["of"])): part for part in report.get("sections", ()) for measure in part["measures"]
    }
    layout = _Layout(report, cell, report.get("names", {}), noun_of(report), report.get("form", ""))
    grouped = dict[str, tuple[Mapping[str, Any], list[dict[str, Any]]]]()
    for row in rows:
        slice_keys = row["of"]
        if part := declared.get((row["measure"], tuple(slice_keys))):
            if part.get("apart"):
                value = slice_keys[part["of"][0]]
                title = capital(layout.names.get(value, value))
                part = {**part, "slug": f"{part['slug']}-{value}", "title": title, "of": part["of"][1:]}
        elif task := slice_keys.get("task"):  # each task has its own section, which includes the average
            part = {"slug": task.lower(), "title": task, "of": ("language",)}
        else:
            slug = f"by-{'-'.join(slice_keys)}" if slice_keys else "overall"
            part = {"slug": slug, "title": f"By {_dimensions(slice_keys)}", "of": tuple(slice_keys)}
        grouped.setdefault(part["slug"], (part, []))[1].append(row)
    sections = []
    for part, rows in grouped.values():
        is_one = len({row["measure"] for row in rows}) == 1
        if not part["of"]:
            sections.append(layout.overall(rows))
        elif "across" in part or ("measures" not in part and len(part["of"]) == 2 and is_one):
            sections.append(layout.crossed(part, rows))
        else:
            sections.append(layout.sliced(part, rows))
    return sections


def _dimensions(names: Iterable[str]) -> str:
    return " and ".join(DIMENSIONS.get(name, name) for name in names)


class _Layout(NamedTuple):
    """The layout of a report's rows.

    cell: function that returns the cell for a row.
    names: names of dimensions' values.
    unit: noun for a unit.
    form: form of the answers in the report.
    """

    report: dict[str, Any]
    cell: Callable[[Figure], Cell]
    names: Mapping[str, str]
    unit: str
    form: str

    def overall(self, rows: list[dict[str, Any]]) -> Section:
        columns = (
            measure_column(self.report),
            Column("value", "estimate" if self.cell is figure else "A minus B", NUMBER, self.cell),
            *([numbered("units", f"{self.unit}s")] if any(row["units"] is not None for row in rows) else []),
            NOTES,
        )
        # The headline measures are already in the plot of the main figures at the beginning of the report.
        main = {head["measure"] for head in self.report["head"] if not head["of"]}
        marks = [
            PlotRow(MEASURES[row["measure"]].name, "", (mark_of(row),))
            for row in rows
            if MEASURES[row["measure"]].is_share and row["measure"] not in {*ZERO_AT_BEST, *main}
        ]
        tables = dense(many(len(rows), "measure"), columns, rows)
        plots = partial(pictures, marks, "Main measures", f"{self.unit}s")
        return Section("overall", f"All {self.unit}s", (), tables, plots=plots)

    def sliced(self, part: Mapping[str, Any], rows: list[dict[str, Any]]) -> Section:
        """Return a table with a row for each slice and a column for each measure."""
        notes = {row["note"] for row in rows}
        if len(notes) == 1 and any(notes) and all(row["value"] is None for row in rows):
            return Section(part["slug"], part["title"], (f"{capital(*notes)}.",))
        slices: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {}
        for row in rows:
            slices.setdefault(tuple(row["of"].get(name, ALL) for name in part["of"]), {})[row["measure"]] = row
        measures = list(dict.fromkeys(row["measure"] for row in rows))
        # If all figures are based on the same number of units, show it only once.
        units = {row["units"] for row in rows}
        common = many(next(iter(units)), self.unit) if part.get("apart") and len(units) == 1 else ""
        table_rows: list[dict[str, Any]] = []
        for values, by_measure in slices.items():
            table_rows.append({"note": _notes(by_measure)})
            for index, value in enumerate(values):
                name = self.names.get(value, "") if self.names else "" if value == ALL else beside(value)
                table_rows[-1] |= {f"of{index}": shown_value(value), f"name{index}": name}
            for measure in measures:
                row = by_measure.get(measure, {})
                table_rows[-1][measure] = self.cell(row) if row else Cell("")
                table_rows[-1] |= {f"{measure}_{key}": row.get(key) for key in ("units", "count", *TESTS)}
        columns = self._columns(part["of"], measures, list(slices.values()), has_units=not common)
        tables = dense(many(len(table_rows), "row"), columns, table_rows)
        plotted = part.get("plotted", measures[:1])
        sentences, loud = (f"{common}.",) if common else (), part.get("loud", "")
        plots = partial(self._plots, part, slices, plotted)
        return Section(part["slug"], part["title"], sentences, tables, loud, plots=plots)

    def _columns(
        self,
        dimensions: Sequence[str],
        measures: Sequence[str],
        slices: Sequence[Mapping[str, Figure]],
        *,
        has_units: bool,
    ) -> list[Column]:
        columns: list[Column] = []
        for index, name in enumerate(dimensions):
            columns.append(Column(f"of{index}", DIMENSIONS.get(name, name)))
            columns += [Column(f"name{index}", "name", NAME)] if self.names or name in NAMED else []
        for measure in measures:
            columns.append(Column(measure, MEASURES[measure].name, NUMBER, method=ANCHORS[method(measure, self.form)]))
            for key, heading in (("units", f"{self.unit}s"), ("count", f"effective {self.unit}s")):
                if has_units and _is_shown(key, measure, measures, slices):
                    columns.append(numbered(f"{measure}_{key}", heading))
            figures = [by_measure[measure] for by_measure in slices if measure in by_measure and self.cell is figure]
            keys = {f"{measure}_{key}": TESTS[key] for key in TESTS if any(key in row for row in figures)}
            columns += map(p_column, keys, keys.values())
        return [*columns, NOTES]

    def _plots(
        self, part: Mapping[str, Any], slices: Mapping[tuple[str, ...], Mapping[str, Figure]], plotted: Sequence[str]
    ) -> list[SafeString]:
        """Plot measures by slice.

        slices: rows by the slice's values and by measure.
        plotted: measures to plot.
        """
        plotted = [measure for measure in plotted if any(measure in by_measure for by_measure in slices.values())]
        drawn = []
        for values, by_measure in slices.items():
            if not by_measure.keys().isdisjoint(plotted):
                marks = tuple(mark_of(by_measure.get(measure)) for measure in plotted)
                drawn.append(PlotRow(" ".join(map(shown_value, values)), self.names.get(values[0], ""), marks))
        if not drawn:
            return []
        title = str(part["title"])
        if "measures" not in part:
            title = f"{capital(MEASURES[plotted[0]].name)} {title.lower()}"
        # Sort languages by value, because the table already lists them by code. Other slices keep the table's order.
        if self.names and not all(row.label.isdigit() for row in drawn):
            drawn.sort(key=_by_value)
        return pictures(drawn, title, f"{self.unit}s", tuple(MEASURES[measure].name for measure in plotted))

    def crossed(self, part: Mapping[str, Any], rows: list[dict[str, Any]]) -> Section:
        """Return a table of a single measure, whose columns are the values of the last dimension.

        If rows and columns have the same values, the diagonal is in brackets, and the intervals are notes in the cells.
        """
        *names, last = part["of"]
        table_rows: dict[tuple[str, ...], dict[str, Any]] = {}
        for row in rows:
            *values, head = row["of"].values()
            table_rows.setdefault(tuple(values), {"of": values})[head] = row
        heads = list(part.get("across") or dict.fromkeys(row["of"][last] for row in rows))
        for table_row in table_rows.values():
            table_row["note"] = _notes({head: table_row[head] for head in heads if head in table_row}, heads)
            table_row |= {f"of{n}": value for n, value in enumerate(table_row["of"])}
        is_matrix, measure = any(values[0] in heads for values in table_rows), rows[0]["measure"]

        def cell(head: str, row: Figure) -> Cell:
            figure_row = row.get(head)
            if figure_row and self.cell is figure and is_matrix and figure_row["low"] is not None:
                written = f"({percent(figure_row['value'])})" if row["of"][0] == head else percent(figure_row["value"])
                return Cell(written, figure_row["value"], note=span(figure_row["low"], figure_row["high"]))
            return self.cell(figure_row) if figure_row else Cell(NOT_MEASURED)

        down = [Column(f"of{n}", DIMENSIONS.get(name, name)) for n, name in enumerate(names)]
        anchor = ANCHORS[method(measure, self.form)]
        across = [Column(head, head, NUMBER, partial(cell, head), anchor) for head in heads]
        step, caption = ACROSS if is_matrix else WIDE - len(down), many(len(table_rows), "row")
        parts = ([*down, *across[start : start + step], NOTES] for start in range(0, len(across), step))
        tables = tuple(chain.from_iterable(dense(caption, columns, table_rows.values()) for columns in parts))
        title = (
            part["title"] if "measures" in part else f"{capital(MEASURES[measure].name)} by {_dimensions(part['of'])}"
        )
        brackets = ("Brackets mark cells with the same value in row and column.",) if is_matrix else ()
        marks = [
            PlotRow(" ".join(values), "", tuple(mark_of(table_row.get(head)) for head in heads))
            for values, table_row in table_rows.items()
        ]
        plots = lambda: pictures(marks, title, f"{self.unit}s", tuple(heads)) if part.get("plotted") else []  # noqa: E731
        return Section(part["slug"], title, brackets, tables, plots=plots)


def _is_shown(key: str, measure: str, measures: Sequence[str], slices: Collection[Mapping[str, Figure]]) -> bool:
    """Return whether a measure has its own column of units or of effective counts.

    Measures that are based on the same units share a column.

    key: "units" or "count".
    """
    rows = [by_measure[measure] for by_measure in slices if measure in by_measure]
    if key == "count":
        # Show effective counts only for a few measures, because more columns wouldn't fit.
        differs = any(row["count"] is not None and count(row["count"]) != count(row["units"]) for row in rows)
        return differs and len(measures) <= MOST_COUNTED
    counts = [
        {name: row["units"] for name, row in by_measure.items() if row["units"] is not None} for by_measure in slices
    ]
    resting = [name for name in measures if any(name in units for units in counts)]
    several = any(len({*units.values()}) > 1 for units in counts)
    return measure in resting and (measure == resting[-1] or (several and not MEASURES[measure].is_exact))


def _notes(rows: Mapping[str, Figure], heads: Collection[str] = ()) -> str:
    """Return the notes on a slice, each with the names of the columns that it applies to.

    rows: the row for each column.
    heads: columns that are not measures.
    """
    notes: dict[str, list[str]] = {}
    for name, row in rows.items():
        if row["note"]:
            notes.setdefault(row["note"].rstrip("."), []).append(name if name in heads else MEASURES[name].name)
    if len(notes) == 1 and len(next(iter(notes.values()))) == len(rows):
        return next(iter(notes))
    return "; ".join(f"{', '.join(names)}: {note}" for note, names in notes.items())


# --- Names of measures and dimensions, from measures.toml. Plug-in forms declare additional measures.


class Measure(NamedTuple):
    """A measure.

    name: heading of its column.
    about: sentence that explains the measure; may be empty.
    is_share: whether values are percentages.
    is_exact: whether the measure has no interval, because it is a count or a plain mean.
    is_difference: whether values are signed percentage points.
    """

    name: str
    about: str = ""
    is_share: bool = True
    is_exact: bool = False
    is_difference: bool = False


class Names(dict[str, Measure]):
    """Measures by key, including those of plug-in forms."""

    def __missing__(self, measure: str) -> Measure:
        return {name: Measure(*words) for form in FORMS.values() for name, words in form.measures.items()}[measure]


_DECLARED = tomllib.loads(Path(__file__).with_name("measures.toml").read_text(encoding="utf-8"))
MEASURES = Names({name: Measure(**fields) for name, fields in _DECLARED["measures"].items()})
DIMENSIONS: Mapping[str, str] = _DECLARED["dimensions"]
VALUES: Mapping[str, str] = _DECLARED["values"]
# The measures explained by each row in the table of methods in docs/explanation/measuring.md.
METHODS: Mapping[str, Collection[str]] = {row: measures.split() for row, measures in _DECLARED["methods"].items()}
DIFFERENCE = "Difference of two systems"  # the row that explains differences in any measure
# Anchors in the documentation, by row in the table of methods.
ANCHORS = {row: f"row-{row.lower().replace(' ', '-')}" for row in (*METHODS, DIFFERENCE)}


def method(measure: str, form: str) -> str:
    """Return the row in the table of methods that explains a measure.

    form: form of the answers in the report.
    """
    rows = [row for row, measures in METHODS.items() if measure in measures] or ["One label per unit"]
    return rows[0] if form == "posts" else rows[-1]
