"""The plots of a report: which numbers of it are drawn, in which order, how many to a picture."""

from collections.abc import Callable
from functools import partial

from django.utils.safestring import SafeString

from annotate.reports import xglue_report
from annotate.reports.plots import Mark, Row, axis_of, bars, confused_labels, forest, heat_map
from annotate.reports.predictor_report import name_of
from corpora.core.languages import UND

CONFUSED = 20  # labels in the heat map that has its numbers in the cells
# Rows of one picture at most, so that it fits on a printed page. What is longer goes on in the next, on the same axis.
SINGLES, PAIRS = 40, 24


def _accuracy(report: dict) -> list[SafeString]:
    found = report["accuracy"]
    rows = [
        Row(words, "", (_mark(found.get(key)), _mark(found.get(f"naive_{key}"))))
        for key, words in (("with_und", "with und"), ("without_und", "without"))
    ]
    return _forests(rows, "Accuracy", ("estimated by stratum", "naive: agreement taken for the truth"))


def _recall(report: dict) -> list[SafeString]:
    return _forests(_rows(report["recall"]["languages"], "estimate"), "Recall by language")


def _precision(report: dict) -> list[SafeString]:
    rows = _rows(report["precision"]["languages"], "with_und", "without_und")
    return _forests(rows, "Precision by language", ("with und", "without und"))


def _recall_check(report: dict) -> list[SafeString]:
    rows = _rows(report["recall_check"], "recall_set", "uniform")
    return _forests(rows, "Recall on two kinds of sets", ("recall set", "uniform set"))


def _unseen(report: dict) -> list[SafeString]:
    languages = report["unseen"]["languages"]
    rows = [Row(row["language"], row["name"], (_share(row),)) for row in languages]
    rows = _by_value(rows)
    axis = axis_of(rows)
    return [
        bars(part, title=_part("Share of labels never shown to people", number), axis=axis, counted="labelled so")
        for number, part in enumerate(_split(rows, SINGLES), 1)
        if _measured(part)
    ]


def _balanced(report: dict) -> list[SafeString]:
    rows = _rows(report["balanced"]["languages"], "balanced", "natural")
    return _forests(rows, "Hypothetical precision", ("balanced", "reweighted to natural shares"))


def _confusion(report: dict) -> list[SafeString]:
    labels, cells = report["confusion"]["labels"], report["confusion"]["cells"]
    predicted = f"{report['predictor']['spelled']} says"
    ordered = sorted(labels, key=lambda label: (label == UND, label))
    commonest = confused_labels(cells, CONFUSED)
    shown = [("Confusions among the labels that are confused most", commonest)] if commonest else []
    if len(commonest) < len(ordered):
        shown.append(("Confusions among all labels", ordered))
    return [heat_map(chosen, cells, title=title, predicted=predicted) for title, chosen in shown]


def _graded(task: str, report: dict) -> list[SafeString]:
    found = report[task]
    counted = {"nDCG": "queries", "BLEU-4": "pairs"}.get(found["metric"], "rows")
    rows = [
        Row(row["language"], row["name"], (_as_mark(row["estimate"], row.get(counted)),)) for row in found["languages"]
    ]
    axis = axis_of(rows)
    return [
        forest(part, title=_part(f"{task.upper()}: {found['metric']} by language", number), axis=axis, counted=counted)
        for number, part in enumerate(_split(_by_value(rows), SINGLES), 1)
        if _measured(part)
    ]


def _as_mark(found: dict, count: int) -> Mark:
    """A dot alone where there are too few units for an interval."""
    if found["value"] is None or found["low"] is None:
        return Mark(found["value"], *(found["value"] or 0.0,) * 2, count)
    return Mark(found["value"], found["low"], found["high"], count)


PLOTS: dict[str, Callable[[dict], list[SafeString]]] = {
    "accuracy": _accuracy,
    "recall": _recall,
    "precision": _precision,
    "recall_check": _recall_check,
    "unseen": _unseen,
    "balanced": _balanced,
    "confusion": _confusion,
    **{task: partial(_graded, task) for task in xglue_report.TITLES},
}


def _mark(found: dict | None) -> Mark | None:
    return Mark(found["value"], found["low"], found["high"], found.get("count")) if found else None


def _share(row: dict) -> Mark:
    # A share counted to the last post has no interval.
    return Mark(row["share"], row["share"], row["share"], row["triggers"]) if row["share"] is not None else Mark(None)


def _rows(languages: list[dict], *keys: str) -> list[Row]:
    return _by_value(
        [
            Row(
                row["language"], row.get("name") or name_of(row["language"]), tuple(_mark(row.get(key)) for key in keys)
            )
            for row in languages
        ]
    )


def _by_value(rows: list[Row]) -> list[Row]:
    """The highest first, what was not measured at the end."""

    def order(row: Row) -> tuple:
        values = [mark.value for mark in row.marks if mark is not None and mark.value is not None]
        first = row.marks[0]
        missing = first is None or first.value is None
        return missing, -values[0] if values else 1, row.label

    return sorted(rows, key=order)


def _forests(rows: list[Row], title: str, series: tuple[str, ...] = ()) -> list[SafeString]:
    axis = axis_of(rows)
    counted = (
        "counts as" if any(mark.count % 1 for row in rows for mark in row.marks if mark and mark.count) else "posts"
    )
    return [
        forest(part, title=_part(title, number), series=series, axis=axis, counted=counted)
        for number, part in enumerate(_split(rows, PAIRS if series else SINGLES), 1)
        if _measured(part)
    ]


def _measured(rows: list[Row]) -> bool:
    """Whether there is anything to draw; what was not measured comes last, and may fill a picture."""
    return any(mark is not None and mark.value is not None for row in rows for mark in row.marks)


def _part(title: str, number: int) -> str:
    return title if number == 1 else f"{title}, part {number}"


def _split(rows: list[Row], most: int) -> list[list[Row]]:
    """As even parts as can be."""
    parts = -(-len(rows) // most)
    size = -(-len(rows) // parts) if parts else 1
    return [rows[start : start + size] for start in range(0, len(rows), size)]
