"""What the report of an evaluation says: a section for each kind of slice, each a table of (slice, measures).

The report is the dict that `evaluate` writes as JSON:

    rows        {measure, of, value, low, high, units, count, note}; `of` is the slice, dimension -> value, and empty
                for all units. Rows with the same dimensions are one section: a row for each slice, a column for each
                measure. Rows may have p and p_holm of a test
    sections    optional: {slug, title, of, measures}, a section of its own for the rows of these measures with these
                dimensions. loud: a warning in it; plotted: its measures that are drawn, the first one by default;
                across: the values of the last dimension, if these stand across, of one measure; apart: whether each
                value of the first dimension has its own
    head        {measure, of} of the rows that head the report
    unit        the noun for a unit, such as "post"
    names       optional: value of a dimension -> its name, as of a language code
    words       slug of a section -> sentences below its title
    reading     sentences on how the numbers are to be read; those on measures are in measure_names.py
    comparison  {other, rows}; its rows have better, p and p_holm besides, and `value` is the difference. Where some
                measures are tested and others not, the rows are laid out like the figures too. test: what p is, where
                it is not McNemar's or a paired test
    reliability optional: {confidence, accuracy, low, high, units} of each bin; coverage: {coverage, accuracy} of each
                threshold
    confusion   {labels, cells}; errors: {id, gold, predicted}, and language, people (label -> share of
                their answers) and fields where known; told, warnings: sentences

This module knows measures and dimensions by their names alone: a form that brings one adds a line to measure_names.py.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from annotate.core.measures.figure_rows import LOSSES
from annotate.reports.curves import Spot, curve
from annotate.reports.heat_map import Cell as Confusion
from annotate.reports.heat_map import heat_map
from annotate.reports.measure_names import ANCHORS, DIFFERENCE, DIMENSIONS, MEASURES, method
from annotate.reports.numbers import (
    NOT_MEASURED,
    coefficient,
    coefficients_apart,
    count,
    estimate,
    p_value,
    percent,
    points,
    span,
)
from annotate.reports.plots import Mark
from annotate.reports.plots import Row as PlotRow
from annotate.reports.sections import Section, by_value, mark_of, pictures
from annotate.reports.tables import DIGEST, NAME, NOTE, NUMBER, Cell, Column, beside, dense, many, numbered
from corpora.core.languages import UND

KIND = "evaluation"
TITLE = 30  # letters of the names of sets in the title
COMMONEST = 25  # confusions in the table
CONFUSED = 20  # labels in the heat map that has its numbers in the cells
# Columns side by side on a terminal: of figures without intervals; and of values down and figures with intervals.
ACROSS, WIDE = 8, 5
MOST_FIELDS = 4  # of a record, beside an error
FILTERS = 12  # pairs of gold and predicted label by which errors are filtered
LISTED = 200  # errors in the table; the file has them all


def section(slug: str, title: str, of: str, measures: str, *, drawn: int | None = None, **more: Any) -> dict[str, Any]:
    """A section of a report. of, measures: words with spaces between them. drawn: how many of the measures are plotted,
    from the first on. more: what else may be in it."""
    listed = measures.split()
    if drawn is not None:
        more["plotted"] = listed[:drawn]
    return {"slug": slug, "title": title, "of": of.split(), "measures": listed} | more


class Contents(NamedTuple):
    """What a report says, however it is written down."""

    title: str
    headlines: list[tuple[str, str, str]]
    sections: list[Section]
    how_to_read: tuple[str, ...]


def contents(report: dict) -> Contents:
    system = report["predictor"]["spelled"]
    if comparison := report.get("comparison"):
        system = f"{system} against {comparison['other']['spelled']}"
    names = ", ".join(gold["name"] for gold in report["gold"])
    sets = names if len(names) <= TITLE else many(len(report["gold"]), "gold set")
    used = dict.fromkeys(row["measure"] for row in report["rows"])
    reading = (*report["reading"], *(MEASURES[name].about for name in used if MEASURES[name].about))
    return Contents(f"{system}, measured on {sets}", headlines(report), sections(report), reading)


def methods(report: dict) -> list[tuple[str, str]]:
    """(anchor, words) of each row of the table of methods that explains a figure of the report."""
    measures: dict[str, dict[str, None]] = {}
    for row in report["rows"]:
        measures.setdefault(method(row["measure"], report.get("form", "")), {})[MEASURES[row["measure"]].name] = None
    if report.get("comparison"):
        measures[DIFFERENCE] = {}
    return [(ANCHORS[row], f"{row}: {', '.join(names)}" if names else row) for row, names in measures.items()]


def headlines(report: dict) -> list[tuple[str, str, str]]:
    found = [
        (
            _capital(MEASURES[row["measure"]].name),
            _cell(row).shown,
            ", ".join(
                [*_where(report, row), row["note"] if row["units"] is None else many(row["units"], report["unit"])]
            ),
        )
        for head in report["head"]
        for row in report["rows"]
        if (row["measure"], row["of"]) == (head["measure"], head["of"])
    ]
    if comparison := report.get("comparison"):
        heads = report["head"][:1]
        measured = [row for row in comparison["rows"] if row["value"] is not None]
        first = [row for row in measured if {"measure": row["measure"], "of": row["of"]} in heads]
        found.append(("Comparison", *_who_is_better(report, first or measured or comparison["rows"])))
    return found


def _where(report: dict, row: Mapping[str, Any]) -> list[str]:
    """The values of the slice; a number has its dimension before it."""
    names = report.get("names", {})
    return [
        f"{DIMENSIONS.get(name, name)} {value}" if value.isdigit() else names.get(value, value)
        for name, value in row["of"].items()
    ]


def _capital(words: str) -> str:
    return words if words[1:2].isupper() else words[:1].upper() + words[1:]


def sections(report: dict) -> list[Section]:
    found = _measured_sections(report, report["rows"], _cell)
    if report.get("comparison"):
        found += _comparison(report)
    if report.get("reliability"):
        found.append(_reliability(report))
    if report.get("confusion"):
        found.append(_confusion(report))
    if "errors" in report:
        found.append(_errors(report))
    words = report["words"]
    return [
        replace(section, words=(*words.get(section.slug, ()), *section.words)) for section in [*found, _gold(report)]
    ]


def _measured_sections(report: dict, rows: Iterable[dict], cell: Callable[[Mapping[str, Any]], Cell]) -> list[Section]:
    """Sections of slices down and measures across. cell: what is written of a row."""
    declared = {
        (measure, tuple(part["of"])): part for part in report.get("sections", ()) for measure in part["measures"]
    }
    grouped: dict[str, tuple[Mapping[str, Any], list[dict]]] = {}
    for row in rows:
        part = declared.get((row["measure"], tuple(row["of"]))) or _by(row["of"])
        if part.get("apart"):
            first, *of = part["of"]
            value = row["of"][first]
            title = _capital(report.get("names", {}).get(value, value))
            part = {**part, "slug": f"{part['slug']}-{value}", "title": title, "of": of}
        grouped.setdefault(part["slug"], (part, []))[1].append(row)
    found = []
    for part, rows in grouped.values():
        is_one = len({row["measure"] for row in rows}) == 1
        if not part["of"]:
            found.append(_overall(report, rows, cell))
        elif "across" in part or ("measures" not in part and len(part["of"]) == 2 and is_one):
            found.append(_crossed(report, part, rows, cell))
        else:
            found.append(_sliced(report, part, rows, cell))
    return found


def _by(of: Mapping[str, str]) -> dict[str, Any]:
    """The section of all rows with these dimensions. Those of a task have a section of its own, with its average."""
    if task := of.get("task"):
        return {"slug": task.lower(), "title": task, "of": ("language",)}
    words = " and ".join(DIMENSIONS.get(name, name) for name in of)
    return {"slug": f"by-{'-'.join(of)}" if of else "overall", "title": f"By {words}", "of": tuple(of)}


# --- figures


def _cell(row: Mapping[str, Any]) -> Cell:
    measure, value = MEASURES[row["measure"]], row["value"]
    if measure.is_difference:
        return Cell(points(row), value)
    if measure.is_exact:
        return Cell(percent(value) if measure.is_share else count(value), value)
    return Cell(estimate(row) if measure.is_share else coefficient(row), value)


NOTES = Column("note", "note", NOTE)
ZERO_AT_BEST = ("refused", "ece", "aurc")  # shares that a plot of the others would hide


def _measure_column(report: dict) -> Column:
    def cell(row: Mapping[str, Any]) -> Cell:
        name = MEASURES[row["measure"]].name
        return Cell(name, name, method=ANCHORS[method(row["measure"], report.get("form", ""))])

    return Column("measure", "measure", says=cell)


def _overall(report: dict, rows: list[dict], cell: Callable[[Mapping[str, Any]], Cell]) -> Section:
    columns = (
        _measure_column(report),
        Column("value", "estimate" if cell is _cell else "A less B", NUMBER, cell),
        *([numbered("units", f"{report['unit']}s")] if any(row["units"] is not None for row in rows) else []),
        NOTES,
    )

    def plots() -> list:
        shown = [row for row in rows if MEASURES[row["measure"]].is_share and row["measure"] not in ZERO_AT_BEST]
        marks = [PlotRow(MEASURES[row["measure"]].name, "", (mark_of(row, row["units"]),)) for row in shown]
        return pictures(marks, "Main measures", counted=f"{report['unit']}s")

    return Section("overall", "All units", (), dense(many(len(rows), "measure"), columns, rows), plots=plots)


def _sliced(
    report: dict, part: Mapping[str, Any], rows: list[dict], cell: Callable[[Mapping[str, Any]], Cell]
) -> Section:
    """A table with a row for each slice and a column for each measure."""
    notes = {row["note"] for row in rows}
    if len(notes) == 1 and any(notes) and all(row["value"] is None for row in rows):
        return Section(part["slug"], part["title"], (f"{_capital(*notes)}.",))
    slices: dict[tuple[str, ...], dict[str, dict]] = {}
    for row in rows:
        slices.setdefault(tuple(row["of"].get(name, "all") for name in part["of"]), {})[row["measure"]] = row
    measures = list(dict.fromkeys(row["measure"] for row in rows))
    # A table that all rests on the same units says it once.
    units, names = {row["units"] for row in rows}, report.get("names", {})
    common = many(*units, report["unit"]) if part.get("apart") and len(units) == 1 else ""
    columns: list[Column] = []
    for place, name in enumerate(part["of"]):
        columns.append(Column(f"of{place}", DIMENSIONS.get(name, name)))
        columns += [Column(f"name{place}", "name", NAME)] if names or name in NAMED else []
    for measure in measures:
        anchor = ANCHORS[method(measure, report.get("form", ""))]
        columns.append(Column(measure, MEASURES[measure].name, NUMBER, method=anchor))
        for key, heading in (("units", f"{report['unit']}s"), ("count", "counts as")):
            if not common and _is_shown(key, measure, measures, slices.values()):
                columns.append(numbered(f"{measure}_{key}", heading))
        figures = [found[measure] for found in slices.values() if measure in found and cell is _cell]
        tested = [key for key in TESTS if any(key in row for row in figures)]
        columns += [Column(f"{measure}_{key}", TESTS[key], NUMBER, _tested(f"{measure}_{key}")) for key in tested]
    shown: list[dict[str, Any]] = []
    for values, found in slices.items():
        shown.append({"note": _notes(found)})
        for place, value in enumerate(values):
            shown[-1] |= {f"of{place}": value, f"name{place}": names.get(value, "") if names else beside(value)}
        for measure in measures:
            row = found.get(measure, {})
            shown[-1] |= {measure: cell(row) if row else Cell("")}
            shown[-1] |= {f"{measure}_{key}": row.get(key) for key in ("units", "count", *TESTS)}
    tables = dense(many(len(shown), "row"), [*columns, NOTES], shown)
    plots = partial(_slice_plots, report, part, slices, part.get("plotted", measures[:1]))
    words = (f"{common}.",) if common else ()
    return Section(part["slug"], part["title"], words, tables, part.get("loud", ""), plots=plots)


def _slice_plots(
    report: dict, part: Mapping[str, Any], slices: Mapping[tuple[str, ...], Mapping[str, dict]], plotted: Sequence[str]
) -> list:
    """plotted: the measures that are drawn. slices: values of the slice -> measure -> its figure."""
    names = report.get("names", {})
    plotted = [measure for measure in plotted if any(measure in found for found in slices.values())]
    drawn = [
        PlotRow(" ".join(values), names.get(values[0], ""), tuple(map(_mark, map(found.get, plotted))))
        for values, found in slices.items()
        if any(measure in found for measure in plotted)
    ]
    if not drawn:
        return []
    series = tuple(MEASURES[measure].name for measure in plotted)
    title = str(part["title"])
    if "measures" not in part:
        title = f"{_capital(MEASURES[plotted[0]].name)} {title.lower()}"
    # Languages are found by their code in the table; other slices stand in its order.
    ordered = by_value(drawn) if names and not all(row.label.isdigit() for row in drawn) else drawn
    return pictures(ordered, title, series, counted=f"{report['unit']}s")


def _crossed(
    report: dict, part: Mapping[str, Any], rows: list[dict], cell: Callable[[Mapping[str, Any]], Cell]
) -> Section:
    """A table of one measure with the values of the last dimension across. Of a matrix, which has some values down too,
    the diagonal is in brackets, and intervals stand behind the figures where there is room."""
    *names, last = part["of"]
    listed: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in rows:
        *values, head = row["of"].values()
        listed.setdefault(tuple(values), {"of": values})[head] = row
    heads = list(part.get("across") or dict.fromkeys(row["of"][last] for row in rows))
    for each in listed.values():
        each["note"] = _notes({head: each[head] for head in heads if head in each}, heads)
        each |= {f"of{n}": value for n, value in enumerate(each["of"])}
    down = [Column(f"of{n}", DIMENSIONS.get(name, name)) for n, name in enumerate(names)]
    is_matrix = any(values[0] in heads for values in listed)
    row_of_method = ANCHORS[method(rows[0]["measure"], report.get("form", ""))]
    across = [Column(head, head, NUMBER, _crossing(head, is_matrix, cell), row_of_method) for head in heads]
    step = ACROSS if is_matrix else WIDE - len(down)
    tables = (
        dense(many(len(listed), "row"), [*down, *across[begun : begun + step], NOTES], listed.values())
        for begun in range(0, len(across), step)
    )
    measure, words = rows[0]["measure"], " and ".join(DIMENSIONS.get(name, name) for name in part["of"])
    title = part["title"] if "measures" in part else f"{_capital(MEASURES[measure].name)} by {words}"
    brackets = ("In brackets: the same value down and across.",) if is_matrix else ()

    def plots() -> list:
        marks = [
            PlotRow(" ".join(values), "", tuple(_mark(found.get(head)) for head in heads))
            for values, found in listed.items()
        ]
        return pictures(marks, title, tuple(heads), counted="units") if part.get("plotted") else []

    return Section(part["slug"], title, brackets, tuple(chain.from_iterable(tables)), plots=plots)


def _crossing(head: str, is_matrix: bool, written: Callable[[Mapping[str, Any]], Cell]) -> Callable[[dict], Cell]:
    def cell(row: dict) -> Cell:
        made = row.get(head)
        if not made:
            return Cell(NOT_MEASURED)
        if written is not _cell or not is_matrix or made["low"] is None:
            return written(made)
        shown = percent(made["value"])
        shown = f"({shown})" if row["of"][0] == head else shown
        return Cell(shown, made["value"], note=span(made["low"], made["high"]))

    return cell


NAMED = ("language",)  # dimensions whose values are codes with a name
MOST_COUNTED = 2  # measures in a table that has their effective counts
TESTS = {"p": "p", "p_holm": "Holm p"}


def _is_shown(key: str, measure: str, measures: Sequence[str], slices: Collection[Mapping[str, dict]]) -> bool:
    """Whether a measure has a column of its units, once for measures that rest on the same ones, or of its counts."""
    rows = [found[measure] for found in slices if measure in found]
    if key == "count":
        # More of them have no room.
        differs = any(row["count"] is not None and count(row["count"]) != count(row["units"]) for row in rows)
        return differs and len(measures) <= MOST_COUNTED
    resting = [each for each in measures if any(found[each]["units"] is not None for found in slices if each in found)]
    several = any(len({row["units"] for row in found.values() if row["units"] is not None}) > 1 for found in slices)
    return measure in resting and (measure == resting[-1] or (several and not MEASURES[measure].is_exact))


def _mark(row: Mapping[str, Any] | None) -> Mark | None:
    return mark_of(row, row["units"]) if row else None


def _notes(found: Mapping[str, dict], heads: Collection[str] = ()) -> str:
    """The notes of a slice's figures, each with the columns that it is about. heads: those that are no measures."""
    notes: dict[str, list[str]] = {}
    for name, row in found.items():
        if row["note"]:
            notes.setdefault(row["note"].rstrip("."), []).append(name if name in heads else MEASURES[name].name)
    if len(notes) == 1 and len(next(iter(notes.values()))) == len(found):
        return next(iter(notes))
    return "; ".join(f"{', '.join(names)}: {note}" for note, names in notes.items())


# --- two systems


def _names_of(report: dict) -> tuple[str, str]:
    """Of the two systems that a report compares."""
    return report["predictor"]["spelled"], report["comparison"]["other"]["spelled"]


def _better_of(apart: Mapping[str, Any] | None, names: tuple[str, str]) -> str:
    """The name of the better one, if the interval of the difference says so, as it is printed; else nothing."""
    return (
        dict(zip(("first", "second"), names, strict=True)).get(apart["better"], "")
        if apart and _is_decided(apart)
        else ""
    )


def _is_decided(apart: Mapping[str, Any]) -> bool:
    """Whether zero lies outside the printed interval, whose ends have three decimals of the fraction."""
    return bool(apart.get("better") and all(end is not None and round(end, 3) for end in (apart["low"], apart["high"])))


def _difference(row: Mapping[str, Any]) -> Cell:
    if row["value"] is None or MEASURES[row["measure"]].is_share:
        return Cell(points(row), row["value"])
    return Cell(coefficients_apart(row), row["value"])


def _who_is_better(report: dict, rows: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """A figure and a sentence: of the first row, or of how many labels each is better."""
    first, second = names = _names_of(report)
    row = rows[0] if rows else None
    if row is None or "label" in row["of"]:
        better = [_better_of(each, names) for each in rows]
        counts = " and ".join(f"{name} in {better.count(name)}" for name in names)
        return NOT_MEASURED, f"of {many(len(rows), 'figure')} by label, {counts} is better"
    if row["low"] is None:
        return _difference(row).shown, f"not compared: {row['note'] or 'no interval'}"
    better = _better_of(row, names)
    said = f"{better} is better" if better else "neither is shown to be better"
    where = ", ".join([MEASURES[row["measure"]].name, *_where(report, row)])
    return _difference(row).shown, f"{said}: {first} less {second}, in {where}"


def _comparison(report: dict) -> list[Section]:
    rows = report["comparison"]["rows"]
    first, second = names = _names_of(report)
    tested = {row["measure"] for row in rows if row["p"] is not None}
    spread = {tuple(row["of"]) for row in rows if tested and row["value"] is not None and row["measure"] not in tested}
    listed = [row for row in rows if tuple(row["of"]) not in spread or row["p"] is not None]
    words = [
        f"A is {first}, B is {second}, on the same {report['unit']}s. Each figure is what A reaches less what B "
        "reaches, shares in percentage points, with its 95% interval. The better one is named where zero lies outside "
        "the interval."
        + " Of losses and of the mean absolute error less is better."
        * any(row["measure"] in LOSSES for row in rows)
    ]
    if tested:
        test = report["comparison"].get("test", "a two-sided paired test, McNemar’s exact one for accuracy")
        words.append(
            f"p is that of {test}. Holm p is corrected for "
            f"{many(sum(row['p'] is not None for row in rows), 'test')}: those below 0.05 hold all together."
        )
    if spread:
        words.append("In the tables of all differences, * marks those where zero lies outside the interval.")
    others = report["comparison"].get("other_rows")
    beside = {name: {_key(row): row for row in own} for name, own in (("A", report["rows"]), ("B", others)) if others}
    columns = [
        _measure_column(report),
        Column("of", "of", says=_of),
        *(Column(name, name, NUMBER, partial(_beside, figures)) for name, figures in beside.items()),
        Column("value", "A less B", NUMBER, _difference, ANCHORS[DIFFERENCE]),
        numbered("units", f"{report['unit']}s"),
        *(Column(key, TESTS[key], NUMBER, _tested(key)) for key in TESTS if tested),
        Column("better", "better", says=lambda row: _better_of(row, names)),
        NOTES,
    ]
    made = dense(many(len(listed), "comparison"), columns, listed)
    differences = _measured_sections(report, (row for row in rows if tuple(row["of"]) in spread), _starred)
    return [
        Section("comparison", f"{first} and {second} compared", tuple(words), made),
        *(
            replace(each, slug=f"comparison-{each.slug}", title=f"{each.title}, A less B", plots=list)
            for each in differences
        ),
    ]


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["measure"], *row["of"].items()


def _beside(figures: Mapping[tuple[Any, ...], Mapping[str, Any]], row: Mapping[str, Any]) -> Cell:
    """What one of two systems reaches by itself, beside the difference of both."""
    own = figures.get(_key(row))
    return _cell(own) if own else Cell(NOT_MEASURED, None)


def _starred(row: Mapping[str, Any]) -> Cell:
    cell = _difference(row)
    return replace(cell, shown=f"{cell.shown}{'*' * _is_decided(row)}")


def _tested(key: str) -> Callable[[dict], str]:
    return lambda row: p_value(row[key])


def _of(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{DIMENSIONS.get(name, name)} {value}" for name, value in row["of"].items()) or "all"


# --- scores


RELIABILITY = (
    Column("confidence", "mean confidence", NUMBER, lambda row: percent(row["confidence"])),
    Column("accuracy", "accuracy", NUMBER, lambda row: estimate({**row, "value": row["accuracy"]}), ANCHORS["Scores"]),
    numbered("units", "units"),
    NOTES,
)


def _reliability(report: dict) -> Section:
    bins = report["reliability"]

    def plots() -> list:
        spots = [
            Spot(row["confidence"], row["accuracy"], row["low"], row["high"], many(row["units"], "unit"))
            for row in bins
            if row["accuracy"] is not None
        ]
        curves = [Spot(row["coverage"], row["accuracy"]) for row in report["coverage"]]
        return [
            curve(spots, title="Reliability", across="confidence", up="accuracy", diagonal=True),
            curve(curves, title="Accuracy by coverage", across="units answered", up="accuracy", joined=True),
        ]

    words = (
        "Where the scores are calibrated, dots lie on the dashed line: below it the system is too sure of itself, "
        "above it less sure than it could be.",
    )
    tables = dense(many(len(bins), "bin"), RELIABILITY, bins)
    return Section("reliability", "Calibration", words, tables, plots=plots)


# --- confusions, errors, sets


def _confusion(report: dict) -> Section:
    cells = [tuple(cell) for cell in report["confusion"]["cells"]]
    totals: dict[str, float] = {}
    for gold, _, weight in cells:
        totals[gold] = totals.get(gold, 0.0) + weight
    rows = [
        {"gold": gold, "said": said, "units": weight, "share": weight / totals[gold]}
        for gold, said, weight in top_confusions(cells, COMMONEST)
    ]
    names = report.get("names", {})
    columns = (
        Column("gold", "gold"),
        Column("gold_name", "name", NAME, lambda row: names.get(row["gold"], "")),
        Column("said", "predicted"),
        Column("said_name", "name", NAME, lambda row: names.get(row["said"], "")),
        numbered("units", f"{report['unit']}s"),
        Column("share", "of the gold label", NUMBER, lambda row: percent(row["share"])),
    )
    caption = f"the {len(rows)} commonest confusions" if len(rows) > 1 else "confusions"
    return Section("confusion", "Confusions", (), dense(caption, columns, rows), plots=lambda: _heat_maps(report))


def top_confusions(cells: Iterable[Confusion], most: int) -> list[Confusion]:
    """The commonest errors; those with the most posts come first."""
    wrong = [(gold, predicted, weight) for gold, predicted, weight in cells if gold != predicted and weight > 0]
    return sorted(wrong, key=lambda cell: (-cell[2], cell[0], cell[1]))[:most]


def confused_labels(cells: Sequence[Confusion], most: int) -> list[str]:
    """The labels of the commonest errors, `most` of them at most, in order of their code, und at the end."""
    chosen: dict[str, None] = {}
    for gold, predicted, _ in top_confusions(cells, len(cells)):
        if len(chosen.keys() | {gold, predicted}) <= most:
            chosen |= dict.fromkeys((gold, predicted))
    return sorted(chosen, key=lambda label: (label == UND, label))


def _heat_maps(report: dict) -> list:
    labels, cells = report["confusion"]["labels"], report["confusion"]["cells"]
    predicted = f"{report['predictor']['spelled']} says"
    commonest = confused_labels(cells, CONFUSED)
    shown = [("Confusions among the labels that are confused most", commonest)] if len(labels) > CONFUSED else []
    return [
        heat_map(chosen, cells, title=title, predicted=predicted)
        for title, chosen in [*shown, ("Confusion matrix", labels)]
        if chosen
    ]


def _errors(report: dict) -> Section:
    errors = report["errors"][:LISTED]
    read = " that people read" if report["form"] == "posts" else ""
    units = f"{many(report['error_base'], report['unit'])}{read}"
    words = (
        f"In {count(report['error_count'])} of {units} the prediction differs from the gold label. "
        "errors.jsonl, which --out writes, lists them all"
        + (
            f"; the page has the first {LISTED}, and its filters count only these."
            if report["error_count"] > LISTED
            else "."
        ),
    )
    pairs = Counter((each["gold"], each["predicted"]) for each in errors)
    fields = list(dict.fromkeys(name for each in errors for name in each.get("fields") or ()))[:MOST_FIELDS]
    marks = {pair: f"pair-{place}" for place, (pair, _) in enumerate(pairs.most_common(FILTERS))}
    filters = {mark: f"{gold} taken for {said} ({pairs[gold, said]})" for (gold, said), mark in marks.items()}
    columns = (
        Column("id", "id", says=lambda row: Cell(row["id"], mark=marks.get((row["gold"], row["predicted"]), ""))),
        Column("gold", "gold"),
        Column("predicted", "predicted"),
        Column("language", "language", NAME, lambda row: row.get("language", "")),
        Column("people", "people", NAME, _people),
        *(Column(f"field {name}", name, NOTE) for name in fields),
    )
    of_fields = [{f"field {name}": (each.get("fields") or {}).get(name, "") for name in fields} for each in errors]
    rows = [each | own for each, own in zip(errors, of_fields, strict=True)]
    tables = dense(many(len(rows), "error"), columns, rows)
    return Section("errors", "Errors", words, tables, paged=True, filters=filters if len(filters) > 1 else {})


def _people(row: Mapping[str, Any]) -> str:
    """The shares of people's answers, the commonest first."""
    shares = sorted(row.get("people", {}).items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{label} {percent(share)}" for label, share in shares)


def _gold(report: dict) -> Section:
    words = [f"Predictions: {report['predictor']['spelled']}.", *report["told"]]
    if comparison := report.get("comparison"):
        words.insert(1, f"Compared with: {comparison['other']['spelled']}.")
    columns = (
        Column("name", "gold set"),
        Column("design", "design", NAME, lambda gold: gold.get("design", "")),
        numbered("rows", f"{report['unit']}s"),
        Column("finished", "finished", says=lambda gold: "yes" if gold["finished"] else "NO"),
        Column("predictor", "drawn by", NAME, lambda gold: gold.get("predictor", "")),
        Column("folder_name", "folder", NAME),
        Column("digest", "SHA-256", DIGEST),
    )
    tables = dense(many(len(report["gold"]), "gold set"), columns, report["gold"])
    return Section("gold", "What was measured against what", tuple(words), tables)
