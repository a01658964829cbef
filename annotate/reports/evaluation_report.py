"""The content of an evaluation report: sections with tables of measures by slice.

A report is the dict that `evaluate` writes as JSON. It has these keys:

    rows        {measure, of, value, low, high, units, count, note}. `of` defines the slice by its dimensions' values,
                and is empty for all units. By default, rows with the same dimensions form a section with a line per
                slice and a column per measure. Rows can also have `p` and `p_holm`, from a test.
    sections    optional: {slug, title, of, measures}. These measures with these dimensions form a separate section.
                `loud`: a warning. `plotted`: measures to plot, by default only the first. `across`: values of the last
                dimension that become columns, if the section has a single measure. `apart`: whether each value of the
                first dimension has its own section.
    head        {measure, of} of the headline rows
    unit        noun for a unit, such as "post"
    names       optional: names for values of dimensions, such as language codes
    words       sentences below a section's title, by the section's slug; `commands` are shown in a footnote
    reading     sentences on how to read the numbers; sentences on measures are in measures.toml
    comparison  {other, rows}. `value` is the difference. The rows also have `better`, `p` and `p_holm`. If only
                some measures are tested, the rows are also laid out like the figures. `test`: name of the test,
                unless it is McNemar's or a paired test.
    runs        optional, for several training runs: {chosen, runs, rows}. `chosen`: the run that is best on dev. The
                rest of the report is about this run. `runs`: {name, dev, rows} of each run. `rows`: each figure's
                mean, with its deviation and the values of the runs
    reliability optional: {confidence, accuracy, low, high, units} of each bin
    coverage    with reliability: {coverage, accuracy} at each threshold
    confusion   {labels, cells}. `weighted`: whether the cells count items by their weights
    errors      {id, gold, predicted}. If known, also `language`, `people` (share of annotators' answers by label)
                and `fields`
    told        sentences about the evaluation
    warnings    sentences

This module refers to measures and dimensions only by name. To add a measure, add a line to measures.toml.
"""

import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from django.utils.safestring import SafeString

from annotate.core.measures.figure_rows import LOSSES
from annotate.reports.numbers import (
    NOT_MEASURED,
    amount,
    coefficient,
    coefficient_difference,
    count,
    estimate,
    percent,
    points,
)
from annotate.reports.slice_tables import (
    ANCHORS,
    DIFFERENCE,
    DIMENSIONS,
    MEASURES,
    NOTES,
    TESTS,
    Figure,
    Section,
    figure,
    measure_column,
    method,
    noun_of,
    p_column,
    sections_of,
    shown_value,
)
from annotate.reports.square_plots import Cell as Confusion
from annotate.reports.square_plots import Spot, curve, heat_map
from annotate.reports.tables import NAME, NOTE, NUMBER, Cell, Column, dense, many, numbered, table
from corpora.core.languages import UND

KIND = "evaluation"
COMMANDS = "commands"  # key in `words` for the commands in the footnote
TITLE = 30  # maximum length of the names of sets in the title
COMMONEST = 25  # maximum number of confusions in the table
CONFUSED = 20  # maximum number of labels in the heat map of the most confused labels
MOST_FIELDS = 4  # maximum number of record fields shown with an error
FILTERS = 12  # maximum number of (gold, predicted) pairs that have a filter
LISTED = 200  # maximum number of errors in the table; errors.jsonl has all of them


def section(slug: str, title: str, of: str, measures: str, *, drawn: int | None = None, **more: Any) -> dict[str, Any]:
    """Return a section of a report.

    of, measures: names separated by spaces.
    drawn: number of measures to plot, starting with the first.
    more: additional keys of the section.
    """
    measure_names = measures.split()
    if drawn is not None:
        more["plotted"] = measure_names[:drawn]
    return {"slug": slug, "title": title, "of": of.split(), "measures": measure_names} | more


class Texts(NamedTuple):
    """The fixed texts of a kind of report.

    reading: sentences on how to read the numbers.
    words: sentences by section.
    """

    sections: list[dict[str, Any]]
    reading: list[str]
    words: Mapping[str, str]


_TEXTS = tomllib.loads(Path(__file__).with_name("evaluation_texts.toml").read_text(encoding="utf-8"))


def texts(kind: str) -> Texts:
    declared = {"sections": (), "reading": [], "words": {}} | _TEXTS[kind]
    return Texts(
        [section(**section_table) for section_table in declared["sections"]], declared["reading"], declared["words"]
    )


class Contents(NamedTuple):
    """The content of a report, independent of its format.

    notes: digests of the gold sets, and commands for further work.
    """

    title: str
    sentence: str
    sections: list[Section]
    how_to_read: tuple[str, ...]
    notes: list[str]


def contents(report: dict[str, Any]) -> Contents:
    system = report["predictor"]["spelled"]
    if comparison := report.get("comparison"):
        system = f"{system} against {comparison['other']['spelled']}"
    names = ", ".join(gold["name"] for gold in report["gold"])
    sets = names if len(names) <= TITLE else many(len(report["gold"]), "gold set")
    used = dict.fromkeys(row["measure"] for row in report["rows"])
    parts = sections(report)
    columns = [column.heading for part in parts for table in part.tables for column in table.columns]
    has_effective = any(heading.startswith("effective ") for heading in columns)
    general = (words for words in report["reading"] if has_effective or not words.startswith("“Effective "))
    reading = (*general, *(MEASURES[name].about for name in used if MEASURES[name].about))
    notes = [
        *report["words"].get(COMMANDS, ()),
        *(f"SHA-256 of {gold['name']}: {gold['digest']}" for gold in report["gold"]),
    ]
    return Contents(f"{system}, measured on {sets}", sentence(report), parts, reading, notes)


def methods(report: dict[str, Any]) -> list[tuple[str, str]]:
    """Return (anchor, text) pairs for the rows in the table of methods that explain figures in the report."""
    measures: dict[str, dict[str, None]] = {}
    for row in report["rows"]:
        measures.setdefault(method(row["measure"], report.get("form", "")), {})[MEASURES[row["measure"]].name] = None
    measures |= {DIFFERENCE: {}} if report.get("comparison") else {}
    return [(ANCHORS[row], f"{row}: {', '.join(names)}" if names else row) for row, names in measures.items()]


def sections(report: dict[str, Any]) -> list[Section]:
    parts, sentences = sections_of(report, report["rows"], figure), report["words"]
    parts = [_runs(report["runs"]), *parts] if report.get("runs") else parts
    parts += _comparison(report) if report.get("comparison") else []
    parts += [_reliability(report)] if report.get("reliability") else []
    parts += [_confusion(report)] if report.get("confusion") else []
    parts += [_errors(report)] if "errors" in report else []
    return [replace(part, words=(*sentences.get(part.slug, ()), *part.words)) for part in [*parts, _gold(report)]]


# --- The result in a single sentence


# Values of dimensions that are omitted in the sentence, because they don't restrict the slice.
EVERYTHING = ("with und", "all")


def sentence(report: dict[str, Any]) -> str:
    """Return the result as a sentence: the system, its main figure with the interval, and the number of items.

    If two systems are compared, the sentence also states the difference.
    """
    measured, items = (
        [row for row in report["rows"] if row["value"] is not None],
        sum(g["rows"] for g in report["gold"]),
    )
    heads = head_rows(report, measured) or measured[:1]
    exact = next((row for row in heads[1:] if row["low"] is not None), None)
    # If the main figure has no interval, add the first headline figure with an interval.
    main_rows = [*heads[:1], *([exact] if exact and heads[0]["low"] is None else [])]
    figures = "; ".join(_told(report, row) for row in main_rows) or f"too few items for a main figure ({items})"
    return f"{report['predictor']['spelled']}: {figures}{_difference(report)}."


def head_rows(report: Mapping[str, Any], rows: Sequence[Figure]) -> list[Figure]:
    return [
        row for head in report["head"] for row in rows if (row["measure"], row["of"]) == (head["measure"], head["of"])
    ]


def _told(report: Mapping[str, Any], row: Figure) -> str:
    on = f" on {many(row['units'], noun_of(report))}" if row["units"] else f", {row['note']}" if row["note"] else ""
    return f"{name_of(report, row)} {figure(row).shown}{on}"


def name_of(report: Mapping[str, Any], row: Figure, without: Collection[str] = ()) -> str:
    """Return the measure's name, followed by the slice in brackets unless the slice is the whole set.

    A number is preceded by the name of its dimension.

    without: dimensions to omit.
    """
    names = report.get("names", {})
    slice_values = ", ".join(
        f"{DIMENSIONS.get(name, name)} {value}" if value.isdigit() else names.get(value, shown_value(value))
        for name, value in row["of"].items()
        if value not in EVERYTHING and name not in without
    )
    return f"{MEASURES[row['measure']].name}{f' ({slice_values})' if slice_values else ''}"


def is_decided(row: Figure) -> bool:
    """Return whether the printed interval excludes zero. Shares are rounded to three decimal places."""
    return bool(row.get("better") and all(end is not None and round(end, 3) for end in (row["low"], row["high"])))


def better_of(report: Mapping[str, Any], row: Figure) -> str:
    """Return the name of the better system, or "" if the printed interval contains zero."""
    names = {"first": report["predictor"]["spelled"], "second": report["comparison"]["other"]["spelled"]}
    return names.get(row["better"], "") if is_decided(row) else ""


def _difference(report: Mapping[str, Any]) -> str:
    """Return a clause about the difference in the first headline measure; "" without a comparison. If only labels
    were compared, the clause counts the labels where each system is better.
    """
    if not (comparison := report.get("comparison")):
        return ""
    first_system, second_system = report["predictor"]["spelled"], comparison["other"]["spelled"]
    measured = [row for row in comparison["rows"] if row["value"] is not None]
    main = [row for row in measured if {"measure": row["measure"], "of": row["of"]} in report["head"][:1]]
    row = next(iter(main or measured or comparison["rows"]), None)
    if row is None or "label" in row["of"]:
        winners = [better_of(report, row) for row in comparison["rows"]]
        counts = " and ".join(f"{name} is better in {winners.count(name)}" for name in (first_system, second_system))
        return f"; of {many(len(winners), 'figure')} by label, {counts}"
    if row["value"] is None or row["low"] is None:
        return f"; not compared with {second_system} ({row['note'] or 'no interval'})"
    about = "" if main else f"in {name_of(report, row)}, "
    undecided = "" if is_decided(row) else ", so neither is shown to be better"
    size, interval = amount(row, is_share=MEASURES[row["measure"]].is_share)
    return f"; {about}{size} than {second_system} {interval}{undecided}"


# --- Comparison of two systems


def _difference_cell(row: Mapping[str, Any]) -> Cell:
    is_share = row["value"] is None or MEASURES[row["measure"]].is_share
    return Cell((points if is_share else coefficient_difference)(row), row["value"])


def _comparison(report: dict[str, Any]) -> list[Section]:
    compared, unit = report["comparison"], noun_of(report)
    rows, title = compared["rows"], f"{report['predictor']['spelled']} and {compared['other']['spelled']} compared"
    tested = [row for row in rows if row["p"] is not None]
    measures = {row["measure"] for row in tested}
    # Dimensions where only some of the measures are tested.
    spread = {
        tuple(row["of"]) for row in rows if tested and row["value"] is not None and row["measure"] not in measures
    }
    shown_rows = [row for row in rows if tuple(row["of"]) not in spread or row["p"] is not None]

    def starred(row: Mapping[str, Any]) -> Cell:
        cell = _difference_cell(row)
        return replace(cell, shown=f"{cell.shown}{'*' * is_decided(row)}")

    def beside(figures: Mapping[tuple[Any, ...], Mapping[str, Any]], row: Mapping[str, Any]) -> Cell:
        """Return the cell with a system's own figure."""
        system_row = figures.get((row["measure"], *row["of"].items()))
        return figure(system_row) if system_row else Cell(NOT_MEASURED, None)

    both = {"A": report["rows"], "B": compared["other_rows"]} if compared.get("other_rows") else {}
    figures_by_system = {
        name: {(row["measure"], *row["of"].items()): row for row in system_rows} for name, system_rows in both.items()
    }
    columns = [
        measure_column(report),
        Column("of", "of", says=_of),
        *(Column(name, name, NUMBER, partial(beside, figures)) for name, figures in figures_by_system.items()),
        Column("value", "A minus B", NUMBER, _difference_cell, ANCHORS[DIFFERENCE]),
        numbered("units", f"{unit}s"),
        *(p_column(key, TESTS[key]) for key in TESTS if tested),
        Column("better", "better", says=partial(better_of, report)),
        NOTES,
    ]
    tables = dense(many(len(shown_rows), "comparison"), columns, shown_rows)
    untested = sections_of(report, (row for row in rows if tuple(row["of"]) in spread), starred)
    renamed = (
        replace(part, slug=f"comparison-{part.slug}", title=f"{part.title}, A minus B", plots=list) for part in untested
    )
    return [Section("comparison", title, _words(report, len(tested), is_spread=bool(spread)), tables), *renamed]


def _words(report: dict[str, Any], tests: int, *, is_spread: bool) -> tuple[str, ...]:
    """Return the sentences that explain a comparison.

    tests: number of p-values.
    is_spread: whether the report also has tables of untested differences.
    """
    compared = report["comparison"]
    first_system, second_system = report["predictor"]["spelled"], compared["other"]["spelled"]
    sentences = [
        f"A is {first_system} and B is {second_system}, measured on the same {noun_of(report)}s. Each figure is A’s "
        "result minus B’s with its 95% interval; shares are in percentage points. A system is named as better if "
        "the interval excludes zero."
    ]
    if any(row["measure"] in LOSSES for row in compared["rows"]):
        sentences[0] += " For losses and the mean absolute error, lower is better."
    if tests:
        test = compared.get("test", "a two-sided paired test (McNemar’s exact test for accuracy)")
        corrected = (
            f"Holm p is corrected for {many(tests, 'test')}: all differences below 0.05 are significant together."
        )
        sentences.append(f"p is from {test}. {corrected}")
    if is_spread:
        sentences.append("In the tables of all differences, * marks intervals that exclude zero.")
    return tuple(sentences)


def _of(row: Mapping[str, Any]) -> str:
    values = (
        shown_value(value) if name == "posts" else f"{DIMENSIONS.get(name, name)} {value}"
        for name, value in row["of"].items()
    )
    return ", ".join(values) or "all"


# --- Several training runs of a system


def _runs(runs: Mapping[str, Any]) -> Section:
    """Return a table of the runs with their headline figures, and a table of the means over the runs."""
    heads = [row for row in runs["rows"] if row["is_head"]]
    rows = [
        {
            "name": f"{run['name']} (best on dev)" if run["name"] == runs["chosen"] else run["name"],
            "dev": run["dev"],
            **{row["name"]: row["values"][index] for row in heads},
        }
        for index, run in enumerate(runs["runs"])
    ]
    first, on_dev = (heads[0]["measure"], f"{heads[0]['name']} on dev") if heads else ("", "dev")
    columns = [
        Column("name", "run"),
        *([Column("dev", on_dev, NUMBER, partial(_plain, first, "dev"))] if runs["chosen"] else []),
        *(Column(row["name"], row["name"], NUMBER, partial(_plain, row["measure"], row["name"])) for row in heads),
    ]
    means = [
        Column("name", "measure"),
        Column("value", "mean", NUMBER, figure),
        Column("deviation", "standard deviation", NUMBER, lambda row: _plain(row["measure"], "deviation", row)),
    ]
    chosen = f"{runs['chosen']}, which is best on dev" if runs["chosen"] else "the first run"
    words = (
        f"The interval of a mean is Student’s, over {many(len(rows), 'run')}: it covers the choice of the run, not "
        f"that of the items. The other sections are on {chosen}."
    )
    return Section("runs", "Runs", (words,), (table("Runs", columns, rows), table("Means", means, heads)))


def _plain(measure: str, key: str, row: Mapping[str, Any]) -> Cell:
    """Return the cell for a number without an interval."""
    value = row[key]
    if value is None:
        return Cell(NOT_MEASURED, None)
    return Cell(percent(value) if MEASURES[measure].is_share else coefficient({"value": value, "low": None}), value)


# --- Scores


RELIABILITY = (
    Column("confidence", "mean confidence", NUMBER, lambda row: percent(row["confidence"])),
    Column("accuracy", "accuracy", NUMBER, lambda row: estimate({**row, "value": row["accuracy"]}), ANCHORS["Scores"]),
    numbered("units", "items"),
    NOTES,
)


def _reliability(report: dict[str, Any]) -> Section:
    bins = report["reliability"]

    def plots() -> list[SafeString]:
        spots = [
            Spot(row["confidence"], row["accuracy"], row["low"], row["high"], many(row["units"], "item"))
            for row in bins
            if row["accuracy"] is not None
        ]
        curves = [Spot(row["coverage"], row["accuracy"]) for row in report["coverage"]]
        return [
            curve(spots, title="Reliability", across="confidence", up="accuracy", diagonal=True),
            curve(curves, title="Accuracy by coverage", across="items answered", up="accuracy", joined=True),
        ]

    sentences = (
        "If scores are calibrated, the dots lie on the dashed line. Dots below it mean that the system is "
        "overconfident, dots above it that it is underconfident.",
    )
    tables = dense(many(len(bins), "bin"), RELIABILITY, bins)
    return Section("reliability", "Calibration", sentences, tables, plots=plots)


# --- Confusions, errors, sets


def _confusion(report: dict[str, Any]) -> Section:
    labels, cells = report["confusion"]["labels"], report["confusion"]["cells"]
    totals, names = Counter[str](), report.get("names", {})
    is_weighted = report["confusion"]["weighted"]
    counted = f"{'weighted ' * is_weighted}{noun_of(report)}s"
    for gold, _, weight in cells:
        totals[gold] += weight
    rows = [
        {"gold": gold, "said": predicted, "units": weight, "share": weight / totals[gold]}
        for gold, predicted, weight in top_confusions(cells, COMMONEST)
    ]
    columns = (
        Column("gold", "gold"),
        Column("gold_name", "name", NAME, lambda row: names.get(row["gold"], "")),
        Column("said", "predicted"),
        Column("said_name", "name", NAME, lambda row: names.get(row["said"], "")),
        numbered("units", counted),
        Column("share", "of the gold label", NUMBER, lambda row: percent(row["share"])),
    )

    def heat_maps() -> list[SafeString]:
        predicted = f"predicted by {report['predictor']['spelled']}"
        most = confused_labels(cells, CONFUSED) if len(labels) > CONFUSED else ()
        maps = {"Most confused labels": most, "Confusion matrix": labels}
        return [heat_map(shown, cells, title=title, predicted=predicted) for title, shown in maps.items() if shown]

    caption = f"the {len(rows)} most frequent confusions" if len(rows) > 1 else "confusions"
    sentences = (f"The numbers are {counted}: an item counts for all items that it represents.",) * is_weighted
    return Section("confusion", "Confusions", sentences, dense(caption, columns, rows), plots=heat_maps)


def top_confusions(cells: Iterable[Confusion], limit: int) -> list[Confusion]:
    """Return up to `limit` of the most frequent errors, in descending order."""
    wrong = [(gold, predicted, weight) for gold, predicted, weight in cells if gold != predicted and weight > 0]
    return sorted(wrong, key=lambda cell: (-cell[2], cell[0], cell[1]))[:limit]


def confused_labels(cells: Sequence[Confusion], limit: int) -> list[str]:
    """Return up to `limit` labels from the most frequent errors, sorted by code, with und last."""
    selected: dict[str, None] = {}
    for gold, predicted, _ in top_confusions(cells, len(cells)):
        if len(selected.keys() | {gold, predicted}) <= limit:
            selected |= dict.fromkeys((gold, predicted))
    return sorted(selected, key=lambda label: (label == UND, label))


def _errors(report: dict[str, Any]) -> Section:
    errors, number = report["errors"][:LISTED], report["error_count"]
    read = " that people read" if report["form"] == "posts" else ""
    file = f" The file {report['errors_file']} lists all errors." if "errors_file" in report else ""
    cut = f" Only the first {LISTED} are shown here and counted by the filters." if number > LISTED else ""
    sentences = (
        f"The prediction differs from the gold label in {count(number)} of "
        f"{many(report['error_base'], noun_of(report))}{read}.{file}{cut}",
    )
    pairs = Counter((error["gold"], error["predicted"]) for error in errors)
    fields = list(dict.fromkeys(name for error in errors for name in error.get("fields") or ()))[:MOST_FIELDS]

    def field(name: str, row: Mapping[str, Any]) -> str:
        return str((row.get("fields") or {}).get(name, ""))

    marks = {pair: f"pair-{index}" for index, (pair, _) in enumerate(pairs.most_common(FILTERS))}
    filters = {
        mark: f"{gold} predicted as {predicted} ({pairs[gold, predicted]})" for (gold, predicted), mark in marks.items()
    }

    def people(row: Mapping[str, Any]) -> str:
        """Return the shares of the annotators' answers, most frequent first."""
        shares = sorted(row.get("people", {}).items(), key=lambda pair: (-pair[1], pair[0]))
        return ", ".join(f"{label} {percent(share)}" for label, share in shares)

    columns = (
        Column("id", "id", says=lambda row: Cell(row["id"], mark=marks.get((row["gold"], row["predicted"]), ""))),
        Column("gold", "gold"),
        Column("predicted", "predicted"),
        Column("language", "language", NAME, lambda row: row.get("language", "")),
        Column("people", "people", NAME, people),
        *(Column(f"field {name}", name, NOTE, partial(field, name)) for name in fields),
    )
    tables = dense(many(len(errors), "error"), columns, errors)
    return Section("errors", "Errors", sentences, tables, paged=True, filters=filters if len(filters) > 1 else {})


def _gold(report: dict[str, Any]) -> Section:
    sentences = [f"Predictions: {report['predictor']['spelled']}.", *report["told"]]
    if comparison := report.get("comparison"):
        sentences.insert(1, f"Compared with: {comparison['other']['spelled']}.")
    columns = (
        Column("name", "gold set"),
        Column("design", "design", NAME, lambda gold: gold.get("design", "")),
        numbered("rows", f"{noun_of(report)}s"),
        Column("finished", "status", says=lambda gold: "finished" if gold["finished"] else "unfinished"),
        Column("predictor", "drawn by", NAME, lambda gold: gold.get("predictor", "")),
        Column("folder_name", "folder", NAME),
    )
    tables = dense(many(len(report["gold"]), "gold set"), columns, report["gold"])
    return Section("gold", "Predictions and gold sets", tuple(sentences), tables)
