"""What a report on predictions for records says: words and tables, as report_sections.py has them for posts."""

from collections.abc import Callable
from functools import partial

from annotate.core.resampling import LEAST_UNITS
from annotate.reports.numbers import count, estimate, percent
from annotate.reports.predictor_report import DIGEST, LANGUAGE, NAME, NUMBER, TEXT, Section, Table

TITLES = {
    "qadsm": "QADSM: is the ad relevant to the query?",
    "qam": "QAM: does the passage answer the question?",
    "wpr": "WPR: how well does the page serve the query?",
    "qg": "QG: questions generated from passages",
}
HOW_TO_READ = (
    "A number with two in brackets, x% [a, b], is an estimate with its 95% interval. That of an accuracy is Jeffreys’, "
    "as if the rows were independent; that of nDCG and of BLEU is of the bootstrap, over queries and over pairs, and "
    f"is not given for fewer than {LEAST_UNITS} of them, nor where all are alike.",
    "The average counts every language alike, as XGLUE’s evaluation does.",
)
WORDS: dict[str, tuple[str, ...]] = {
    "accuracy": ("The share of the test rows that are labelled as most people labelled them.",),
    "nDCG": (
        "How well the predicted numbers rank the pages of a query, averaged over queries: a page’s gain is its grade, "
        "discounted by log2(rank + 1) and divided by what the best order has. Pages predicted alike share their ranks.",
        "A query of one page cannot be ranked and is left out. One without a page of a grade above 0 counts as 0, as "
        "in XGLUE’s evaluation, whatever is predicted.",
    ),
    "BLEU-4": (
        "How many of the words, and runs of up to four words, of the generated questions are in those that people "
        "confirmed, over the whole test file, in lower case: sacrebleu, 100% at best.",
    ),
}


def title(report: dict) -> str:
    sets = len(report["gold"])
    return f"{report['predictor']['spelled']}, measured on {sets} gold set{'' if sets == 1 else 's'}"


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
    rows = [
        (
            gold["name"],
            count(gold["records"]),
            "yes" if gold["finished"] else "NO",
            gold["folder_name"],
            gold["digest"],
        )
        for gold in report["gold"]
    ]
    columns = (("gold set", TEXT), ("records", NUMBER), ("finished", TEXT), ("folder", NAME), ("SHA-256", DIGEST))
    what = f"{len(rows)} gold set{'' if len(rows) == 1 else 's'}"
    words = (f"Predictions: the folder {report['predictor']['spelled']}.", "SHA-256 is that of the set’s manifest.")
    return Section("gold", "What was measured against what", words, (Table(what, columns, rows),))


def _task(task: str, report: dict) -> Section:
    found = report[task]
    extra = EXTRA.get(found["metric"], ())
    rows = [
        (
            row["language"],
            row["name"],
            estimate(row["estimate"]),
            count(row["rows"]),
            *(count(row[key]) for key, _ in extra),
        )
        for row in found["languages"]
    ]
    columns = (*LANGUAGE, (found["metric"], NUMBER), ("rows", NUMBER), *((words, NUMBER) for _, words in extra))
    words = [*WORDS[found["metric"]], f"Measured on the set {found['set']}. {_average(found)}"]
    if signatures := {row["signature"] for row in found["languages"] if row.get("signature")}:
        words.append(f"Its signature: {'; '.join(sorted(signatures))}.")
    what = f"{len(rows)} language{'' if len(rows) == 1 else 's'}"
    return Section(task, TITLES[task], tuple(words), (Table(what, columns, rows),))


def _average(found: dict) -> str:
    if found["average"] is None:
        return "In no language could it be measured."
    words = _averaged(found)
    return f"{words[0].upper()}{words[1:]}: {percent(found['average'])}."


# Metric -> what else a row says.
EXTRA = {
    "nDCG": (("queries", "queries"), ("single", "of one page"), ("irrelevant", "without a good page")),
}
SECTIONS: dict[str, Callable[[dict], Section]] = {
    "gold": _gold,
    **{task: partial(_task, task) for task in TITLES},
}
