"""What the report of an evaluation says: a section for each kind of slice, each a table of (slice, measures).

The report is the dict that `evaluate` writes as JSON:

    rows        {measure, of, value, low, high, units, count, note}; `of` is the slice, dimension -> value, and empty
                for all units. Rows with the same dimensions are one section: a row for each slice, a column for each
                measure
    head        {measure, of} of the rows that head the report
    words       slug of a section -> sentences below its title
    reading     sentences on how the numbers are to be read; those on measures are in MEASURES
    comparison  {other, rows}; its rows have better, p and p_holm besides, and `value` is the difference
    confusion   {labels, cells}; errors: {id, gold, predicted, fields}; told, warnings: sentences

This module knows measures and dimensions by their names alone, so a form that brings a measure adds a line to MEASURES
and nothing else.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from annotate.kinds.labels import label_name
from annotate.reports.evaluated import better_of, names_of, sets_of
from annotate.reports.heat_map import confused_labels, heat_map, top_confusions
from annotate.reports.numbers import coefficient, count, estimate, p_value, percent, points
from annotate.reports.plots import Row as PlotRow
from annotate.reports.sections import Section, by_value, dense, mark_of, pictures
from annotate.reports.tables import NAME, NOTE, NUMBER, Cell, Column, Table, beside, many, numbered, table

KIND = "evaluation"
COMMONEST = 25  # confusions in the table
CONFUSED = 20  # labels in the heat map that has its numbers in the cells
LISTED = 200  # errors in the table; the file has them all


class Measure(NamedTuple):
    """name: at the head of a column. about: what it is, a sentence. is_share: whether it is written in percent."""

    name: str
    about: str
    is_share: bool = True


MEASURES: Mapping[str, Measure] = {
    "accuracy": Measure("accuracy", "Accuracy is the share of units whose predicted label is the gold label."),
    "precision": Measure(
        "precision", "The precision of a label is the share of the units predicted so whose gold label it is."
    ),
    "recall": Measure("recall", "The recall of a label is the share of the units with this gold label that are found."),
    "f1": Measure("F1", "F1 is the harmonic mean of precision and recall."),
    "macro_precision": Measure("macro precision", ""),
    "macro_recall": Measure("macro recall", ""),
    "macro_f1": Measure(
        "macro F1",
        "Macro means are plain means over the labels that occur, in gold or predicted; a label that is never predicted "
        "counts 0. The micro means of precision, recall and F1 are all the accuracy here, as each unit has one label.",
    ),
    "kappa": Measure(
        "Cohen’s kappa",
        "Cohen’s kappa is the agreement of predicted and gold labels beyond chance, 1 at best (Cohen 1960).",
        is_share=False,
    ),
    "mcc": Measure(
        "MCC",
        "MCC is Matthews’ correlation of predicted and gold labels, 1 at best, 0 for chance (Gorodkin 2004).",
        is_share=False,
    ),
    "mae": Measure(
        "mean absolute error", "The mean absolute error is in grades: how many grades a prediction is off.", False
    ),
    "weighted_kappa": Measure(
        "weighted kappa", "Weighted kappa counts an error by the square of its distance in grades (Cohen 1968).", False
    ),
    "ndcg": Measure(
        "nDCG", "nDCG is the mean over groups of units, such as the pages of a query, ranked by their predicted grades."
    ),
}
DIMENSIONS: Mapping[str, str] = {"people": "agreement among people"}
# The section in which the rows of all units stand, and those of single labels.
OVERALL, BY_LABEL = (), ("label",)


def how_to_read(report: dict) -> tuple[str, ...]:
    used = dict.fromkeys(row["measure"] for row in report["rows"])
    return (*report["reading"], *(MEASURES[name].about for name in used if MEASURES[name].about))


HOW_TO_READ: Callable[[dict], tuple[str, ...]] = how_to_read


def headlines(report: dict) -> list[tuple[str, str, str]]:
    found = [
        (MEASURES[row["measure"]].name.capitalize(), _written(row), many(row["units"], "unit"))
        for head in report["head"]
        for row in report["rows"]
        if (row["measure"], row["of"]) == (head["measure"], head["of"])
    ]
    if comparison := report.get("comparison"):
        row = comparison["rows"][0]
        found.append(("Comparison", _difference(row).shown, _who_is_better(report, row)))
    return found


def sections(report: dict) -> list[Section]:
    grouped: dict[tuple[str, ...], list[dict]] = {}
    for row in report["rows"]:
        grouped.setdefault(tuple(row["of"]), []).append(row)
    overall = grouped.pop(OVERALL, [])
    found = [_overall(overall)] if overall else []
    found += [_sliced(of, rows) for of, rows in grouped.items()]
    if report.get("comparison"):
        found.append(_comparison(report))
    if report.get("confusion"):
        found.append(_confusion(report))
    if "errors" in report:
        found.append(_errors(report))
    return [_with_words(section, report["words"].get(section.slug, ())) for section in [*found, _gold(report)]]


def _with_words(section: Section, words: Sequence[str]) -> Section:
    return replace(section, words=(*words, *section.words))


# --- figures


def _written(row: Mapping[str, Any]) -> str:
    return estimate(row) if MEASURES[row["measure"]].is_share else coefficient(row)


def _cell(row: Mapping[str, Any] | None) -> Cell:
    return Cell(_written(row), row["value"]) if row else Cell("")


NOTES = Column("note", "note", NOTE)
UNITS = numbered("units", "units")


def _overall(rows: list[dict]) -> Section:
    columns = (
        Column("measure", "measure", says=lambda row: MEASURES[row["measure"]].name),
        Column("value", "estimate", NUMBER, _cell),
        UNITS,
        NOTES,
    )

    def plots() -> list:
        shown = [row for row in rows if MEASURES[row["measure"]].is_share]
        marks = [PlotRow(MEASURES[row["measure"]].name, "", (mark_of(row, row["units"]),)) for row in shown]
        return pictures(marks, "Main measures", counted="units")

    return Section("overall", "All units", (), dense(table(many(len(rows), "measure"), columns, rows)), plots=plots)


def _sliced(of: Sequence[str], rows: list[dict]) -> Section:
    """A table with a row for each slice and a column for each measure."""
    words = " and ".join(DIMENSIONS.get(name, name) for name in of)
    slices: dict[tuple[str, ...], dict[str, dict]] = {}
    for row in rows:
        slices.setdefault(tuple(row["of"].values()), {})[row["measure"]] = row
    measures = list(dict.fromkeys(row["measure"] for row in rows))
    # What a label has of precision and recall rests on other units than another measure of it.
    by_measure = len({each["units"] for found in slices.values() for each in found.values()}) > len(slices)
    listed = [{"of": values, **found, "note": _notes(found)} for values, found in slices.items()]
    columns: list[Column] = [
        *(Column(f"of{place}", name, says=_value(place)) for place, name in enumerate(of)),
        *(Column(f"name{place}", "name", NAME, _name(place)) for place, name in enumerate(of) if name in NAMED),
    ]
    for measure in measures:
        columns.append(Column(measure, MEASURES[measure].name, NUMBER, _measured(measure)))
        if by_measure or measure == measures[-1]:
            columns.append(numbered(f"{measure}_units", "units", _units(measure)))
    first = measures[0]

    def plots() -> list:
        shown = [PlotRow(" ".join(each["of"]), "", (mark_of(each.get(first), each[first]["units"]),)) for each in listed
                 if first in each]  # fmt: skip
        return pictures(by_value(shown), f"{MEASURES[first].name.capitalize()} by {words}", counted="units")

    tables = dense(table(many(len(listed), "row"), [*columns, NOTES], listed))
    return Section(f"by-{'-'.join(of)}", f"By {words}", (), tables, plots=plots)


NAMED = ("language",)  # dimensions whose values are codes with a name


def _value(place: int) -> Callable[[dict], str]:
    return lambda row: row["of"][place]


def _name(place: int) -> Callable[[dict], str]:
    return lambda row: beside(row["of"][place], label_name(row["of"][place]))


def _measured(measure: str) -> Callable[[dict], Cell]:
    return lambda row: _cell(row.get(measure))


def _units(measure: str) -> Callable[[dict], float | None]:
    return lambda row: row[measure]["units"] if measure in row else None


def _notes(found: Mapping[str, dict]) -> str:
    """The notes of a slice's figures, each with the measures that it is about."""
    notes: dict[str, list[str]] = {}
    for measure, row in found.items():
        if row["note"]:
            notes.setdefault(row["note"], []).append(MEASURES[measure].name)
    if len(notes) == 1 and len(next(iter(notes.values()))) == len(found):
        return next(iter(notes))
    return "; ".join(f"{', '.join(names)}: {note}" for note, names in notes.items())


# --- two systems


def _difference(row: Mapping[str, Any]) -> Cell:
    if row["value"] is None or MEASURES[row["measure"]].is_share:
        return Cell(points(row), row["value"])
    return Cell(coefficient(row), row["value"])


def _who_is_better(report: dict, row: Mapping[str, Any]) -> str:
    first, second = names_of(report)
    better = better_of(row, (first, second))
    said = f"{better} is better" if better else "neither is shown to be better"
    return f"{said}: {first} less {second}, in {MEASURES[row['measure']].name}"


def _comparison(report: dict) -> Section:
    found = report["comparison"]
    first, second = names = names_of(report)
    tested = sum(row["p"] is not None for row in found["rows"])
    words = (
        f"A is {first}, B is {second}, on the same units. Each figure is what A reaches less what B reaches, shares in "
        "percentage points, with its 95% interval. The better one is named where zero lies outside the interval.",
        f"p is that of a two-sided paired test, McNemar’s exact one for accuracy. Holm p is corrected for "
        f"{many(tested, 'test')}: those below 0.05 hold all together.",
    )
    columns = (
        Column("measure", "measure", says=lambda row: MEASURES[row["measure"]].name),
        Column("of", "units", says=_of),
        Column("value", "A less B", NUMBER, _difference),
        Column("p", "p", NUMBER, lambda row: p_value(row["p"])),
        Column("p_holm", "Holm p", NUMBER, lambda row: p_value(row["p_holm"])),
        Column("better", "better", says=lambda row: better_of(row, names)),
        NOTES,
    )
    rows = table(many(len(found["rows"]), "comparison"), columns, found["rows"])
    return Section("comparison", f"{first} and {second} compared", words, dense(rows))


def _of(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{DIMENSIONS.get(name, name)} {value}" for name, value in row["of"].items()) or "all"


# --- confusions, errors, sets


CONFUSIONS = (
    Column("gold", "gold"),
    Column("said", "predicted"),
    numbered("units", "units"),
    Column("share", "of the gold label", NUMBER, lambda row: percent(row["share"])),
)


def _confusion(report: dict) -> Section:
    cells = [tuple(cell) for cell in report["confusion"]["cells"]]
    totals: dict[str, float] = {}
    for gold, _, weight in cells:
        totals[gold] = totals.get(gold, 0.0) + weight
    rows = [
        {"gold": gold, "said": said, "units": weight, "share": weight / totals[gold]}
        for gold, said, weight in top_confusions(cells, COMMONEST)
    ]
    tables = (table(f"the {len(rows)} commonest confusions", CONFUSIONS, rows),) if rows else ()
    return Section("confusion", "Confusions", (), tables, plots=lambda: _heat_maps(report))


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
    errors = report["errors"]
    words = (
        f"{count(len(errors))} of {many(report['gold'][0]['rows'], 'unit')} have another predicted label than their "
        "gold label. With --out, errors.jsonl has them all"
        + (f", and the page the first {LISTED}." if len(errors) > LISTED else "."),
    )
    columns = (
        Column("id", "id"),
        Column("gold", "gold"),
        Column("predicted", "predicted"),
        Column("text", "text", NOTE, lambda row: "\n".join((row.get("fields") or {}).values())),
    )
    return Section("errors", "Errors", words, dense(_table_of(errors[:LISTED], columns)), paged=True)


def _table_of(rows: Iterable[dict], columns: Sequence[Column]) -> Table:
    listed = list(rows)
    return table(many(len(listed), "error"), columns, listed)


def _gold(report: dict) -> Section:
    words = [f"Predictions: {report['predictor']['spelled']}.", *report["told"]]
    if comparison := report.get("comparison"):
        words.insert(1, f"Compared with: {comparison['other']['spelled']}.")
    return Section(
        "gold", "What was measured against what", tuple(words), (table("gold set", sets_of("units"), report["gold"]),)
    )
