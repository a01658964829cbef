"""What a report on predictions in XGLUE's files says: words, tables and plots, as predictor_report.py has them."""

from collections.abc import Callable
from functools import partial

from annotate.core.resampling import LEAST_UNITS
from annotate.reports.evaluated import sets_of
from annotate.reports.numbers import percent
from annotate.reports.plots import Row
from annotate.reports.sections import Section, by_value, mark_of, pictures
from annotate.reports.tables import LANGUAGE, beside, estimated, many, numbered, numbers, table

KIND = "xglue"

TITLES = {
    "qadsm": "QADSM: is the ad relevant to the query?",
    "qam": "QAM: does the passage answer the question?",
    "wpr": "WPR: how well does the page serve the query?",
    "qg": "QG: questions generated from passages",
}
HOW_TO_READ = (
    "A number with two in brackets, x% [a, b], is an estimate with its 95% interval. An accuracy has Jeffreys’ "
    "interval, as if the rows were independent; nDCG and BLEU have bootstrap intervals, over queries and over pairs, "
    f"which are not given for fewer than {LEAST_UNITS} of them, nor if all are alike.",
    "The average counts every language alike, as XGLUE’s evaluation does.",
)
WORDS: dict[str, tuple[str, ...]] = {
    "accuracy": ("The share of the test rows that are labelled as most people labelled them.",),
    "nDCG": (
        "How well the predicted numbers rank the pages of a query, averaged over queries: a page’s gain is its grade, "
        "discounted by log2(rank + 1), and the sum is divided by that of the best order. Pages predicted alike share "
        "their ranks.",
        "A query of one page cannot be ranked and is left out. One without a page of a grade above 0 counts as 0, as "
        "in XGLUE’s evaluation, whatever is predicted.",
    ),
    "BLEU-4": (
        "How many of the words, and runs of up to four words, of the generated questions are in those that people "
        "confirmed, over the whole test file, in lower case: sacrebleu, 100% at best.",
    ),
}


def headlines(report: dict) -> list[tuple[str, str, str]]:
    return [
        (task.upper(), percent(found["average"]), f"{found['metric']}, {_averaged(found)}")
        for task in TITLES
        if (found := report.get(task))
    ]


def _averaged(found: dict) -> str:
    return "one language" if found["averaged"] == 1 else f"average over {found['averaged']} languages"


def sections(report: dict) -> list[Section]:
    return [section(report) for key, section in SECTIONS.items() if report.get(key)]


def _gold(report: dict) -> Section:
    words = (f"Predictions: the folder {report['predictor']['spelled']}.", "SHA-256 is that of the set’s manifest.")
    found = table(many(len(report["gold"]), "gold set"), sets_of("records"), report["gold"])
    return Section("gold", "What was measured against what", words, (found,))


# Metric -> what else a row says: its key and its words; and what an estimate rests on.
EXTRA = {
    "nDCG": {"queries": "queries", "single": "of one page", "irrelevant": "without a good page"},
}
COUNTED = {"nDCG": "queries", "BLEU-4": "pairs"}


def _task(task: str, report: dict) -> Section:
    found = report[task]
    columns = (
        *LANGUAGE,
        estimated("estimate", found["metric"]),
        numbered("rows", "rows"),
        *numbers(EXTRA.get(found["metric"], {})),
    )
    words = [*WORDS[found["metric"]], f"Measured on the set {found['set']}. {_average(found)}"]
    if signatures := {row["signature"] for row in found["languages"] if row.get("signature")}:
        words.append(f"Its signature: {'; '.join(sorted(signatures))}.")
    made = table(many(len(found["languages"]), "language"), columns, found["languages"])
    return Section(task, TITLES[task], tuple(words), (made,), plots=lambda: _plots(task, found))


def _plots(task: str, found: dict) -> list:
    counted = COUNTED.get(found["metric"], "rows")
    rows = [
        Row(row["language"], beside(row["language"], row["name"]), (mark_of(row["estimate"], row.get(counted)),))
        for row in found["languages"]
    ]
    return pictures(by_value(rows), f"{task.upper()}: {found['metric']} by language", counted=counted)


def _average(found: dict) -> str:
    if found["average"] is None:
        return "In no language could it be measured."
    words = _averaged(found)
    return f"{words[0].upper()}{words[1:]}: {percent(found['average'])}."


SECTIONS: dict[str, Callable[[dict], Section]] = {
    "gold": _gold,
    **{task: partial(_task, task) for task in TITLES},
}
