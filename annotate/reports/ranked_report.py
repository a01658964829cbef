"""What a report on ranked labels of documents says: the measures at each K, for all labels and for each bucket, those
of the answers, and two systems compared.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from annotate.core.label_shares import FEW, FREQUENT, ZERO
from annotate.core.resampling import LEAST_UNITS
from annotate.reports.evaluated import better_of, names_of, sets_of
from annotate.reports.numbers import estimate, p_value, points
from annotate.reports.plots import Row
from annotate.reports.sections import Section, mark_of, pictures
from annotate.reports.tables import NUMBER, Cell, Column, are, estimated, many, numbered, table

KIND = "ranked"
ALL, PLAIN, WIDENED = "all", "plain", "with_ancestors"
# What stands in a report -> its words. Buckets as Chalkidis et al. 2019 call them.
GROUPS = {ALL: "All labels", FREQUENT: "Frequent labels", FEW: "Few-shot labels", ZERO: "Zero-shot labels"}
ANSWERS = {PLAIN: "Labels as they are", WIDENED: "With all ancestors"}
MEASURES = ("P", "R", "RP", "nDCG")
# What two systems are tested in, and at which K: the figures that the article compares.
TESTED, AT = ("RP", "nDCG"), 5
TOLD = (1, 5, 10)  # the K of which a table of a bucket has a row
SHARES = {"precision": "precision", "recall": "recall", "f1": "micro-F1"}

HOW_TO_READ = (
    "A number with two in brackets, x% [a, b], is an estimate with its 95% interval. It says what other documents like "
    "these would have given; not what another run of training would.",
    "With R gold labels of a document and hits among the first K of its ranking, P@K is hits/K, R@K is hits/R, and "
    "RP@K is hits/min(K, R). nDCG@K is the sum of 1/log2(rank + 1) over the hits, divided by that of min(K, R) hits at "
    "the first ranks. Each is a mean over documents; one without gold labels is left out (Chalkidis et al. 2019).",
    "For a bucket only its labels are kept, in gold and in ranking, so that its figures say how well its labels are "
    "ranked among themselves.",
    "Labels are ranked by their scores, and those of equal scores by their ids as text.",
    "Means have Jeffreys’ interval, of as many plain hits and misses as would vary like these documents; precision, "
    f"recall and F1 of answers have bootstrap intervals, which are not given for fewer than {LEAST_UNITS} documents.",
)


def headlines(report: dict) -> list[tuple[str, str, str]]:
    whole = report["groups"][0]
    words = f"all labels, mean over {many(whole['documents'], 'document')}"
    found = [(f"{name}@{AT}", estimate(whole["at"][AT - 1][name]), words) for name in TESTED]
    found.append(("Micro-F1", estimate(report["answers"][PLAIN]["f1"]), _what_counts(report)))
    if comparison := report["comparison"]:
        first = comparison["tested"][0]
        found.append(("Comparison", points(first["difference"]), _who_is_better(report, first)))
    return found


def sections(report: dict) -> list[Section]:
    found = [_gold(report), *(_group(each, report) for each in report["groups"]), _answers(report)]
    return [*found, _comparison(report)] if report["comparison"] else found


# --- what was measured


BUCKETS = (
    Column("of", "labels", says=lambda group: GROUPS[group["of"]]),
    numbered("labels", "how many"),
    numbered("documents", "documents"),
)


def _gold(report: dict) -> Section:
    vocabulary = report["vocabulary"]
    words = [
        f"Ranked labels: the system {report['predictor']['spelled']}. SHA-256 is that of the set’s manifest.",
        f"Measured on {many(report['documents'], 'document')} of the split {report['split']}, whose labels are of the "
        f"vocabulary {vocabulary['name']}, version {vocabulary['version']}, with "
        f"{many(vocabulary['concepts'], 'concept')}.",
        f"Frequent labels are in more than {many(report['frequent_over'], 'document')} of train, few-shot labels in "
        "some, but no more, and zero-shot labels in none, but in another split. Documents without a gold label of a "
        "bucket have no part in its figures.",
        *report["told"],
    ]
    if comparison := report["comparison"]:
        words.insert(1, f"Compared with: the system {comparison['other']['spelled']}.")
    if without := report["unlabelled"]:
        words.append(
            f"{are(without, 'document has', 'documents have')} no gold label, and no part in the measures at K."
        )
    tables = (table("gold set", sets_of("documents"), report["gold"]), table("labels", BUCKETS, report["groups"]))
    return Section("gold", "What was measured against what", tuple(words), tables)


# --- one system


K = Column("k", "K", says=lambda row: Cell(str(row["k"]), row["k"]))


def _group(group: dict, report: dict) -> Section:
    name = GROUPS[group["of"]]
    if not group["documents"]:
        words = f"No document of the split {report['split']} has such a label, so nothing can be measured."
        return Section(group["of"], name, (words,))
    columns = (K, *(estimated(measure, f"{measure}@K") for measure in MEASURES))
    rows = group["at"] if group["of"] == ALL else _told(group)
    words = f"{many(group['labels'], 'label')}, {many(group['documents'], 'document')} with at least one of them."
    made = table(f"measures of {name.lower()}", columns, rows)
    return Section(group["of"], name, (words,), (made,), plots=partial(_plots, group, name))


def _told(group: Mapping[str, Any]) -> list[dict]:
    return [row for row in group["at"] if row["k"] in TOLD]


def _plots(group: dict, name: str) -> list:
    rows = [
        Row(f"K = {row['k']}", "", tuple(mark_of(row[measure], group["documents"]) for measure in TESTED))
        for row in group["at"]
    ]
    series = tuple(f"{measure}@K" for measure in TESTED)
    return pictures(rows, f"{name}: {' and '.join(series)} by K", series, counted="documents")


def _what_counts(report: dict) -> str:
    """Which labels are taken for an answer."""
    if report["threshold"] is not None:
        return f"of the labels with a score of {report['threshold']:g} or more"
    return f"of the first {many(report['first'], 'label')} of each document"


def _answers(report: dict) -> Section:
    columns = (
        Column("of", "labels"),
        *(estimated(key, heading) for key, heading in SHARES.items()),
        numbered("hits", "right"),
        numbered("said", "given"),
        numbered("gold", "gold"),
    )
    rows = [{"of": words} | report["answers"][key] for key, words in ANSWERS.items()]
    words = (
        f"Precision, recall and F1 {_what_counts(report)}, all labels of all documents together: right/given, "
        "right/gold, and 2 right/(given + gold).",
        "With all ancestors: those of every label are added, to what is given and to gold, each once a document, so "
        "that a label beside the right one costs less than one far from it.",
    )
    return Section("answers", "Labels taken for the answer", words, (table("answers", columns, rows),))


# --- two systems


def _who_is_better(report: dict, row: Mapping[str, Any]) -> str:
    first, second = names_of(report)
    better = better_of(row["difference"], (first, second))
    said = f"{better} is better" if better else "neither is shown to be better"
    return f"{said}: {first} less {second}, in points of {row['measure']} of {(GROUPS | ANSWERS)[row['of']].lower()}"


def _comparison(report: dict) -> Section:
    found = report["comparison"]
    first, second = names_of(report)
    words = (
        f"A is {first}, B is {second}, on the same documents. Each figure is what A reaches less what B reaches, in "
        "percentage points, with its 95% interval. *: nought lies outside that interval; among twenty figures without "
        "any difference, one on average has it by chance.",
        "p is that of the two-sided randomization test: how often the two are as far apart, if a coin decides for each "
        "document which of them said what. Holm p is corrected for "
        f"{many(len(found['tested']), 'test')}: those below 0.05 hold all together. The better one is named where "
        "nought lies outside the interval.",
    )
    return Section("comparison", f"{first} and {second} compared", words, tuple(_compared(report)))


def _apart(key: str | int, heading: str) -> Column:
    def cell(row: dict) -> Cell:
        apart = row[key]
        return Cell(points(apart) + "*" * bool(apart and apart["better"]), apart and apart["value"])

    return Column(str(key), heading, NUMBER, cell)


def _compared(report: dict) -> Iterator[Any]:
    found = report["comparison"]
    columns = (
        Column("of", "labels", says=lambda row: (GROUPS | ANSWERS)[row["of"]]),
        Column("measure", "measure"),
        _apart("difference", "A less B"),
        *(Column(key, heading, NUMBER, lambda row, key=key: p_value(row[key])) for key, heading in P_VALUES),
        Column("better", "better", says=lambda row: better_of(row["difference"], names_of(report))),
    )
    yield table("what was tested", columns, found["tested"])
    for group in found["groups"]:
        if group["documents"]:
            # The measures down, as four columns of differences would be too wide for a terminal.
            name, at = GROUPS[group["of"]], _told(group)
            rows = [{"measure": f"{measure}@K"} | {row["k"]: row[measure] for row in at} for measure in MEASURES]
            heads = (Column("measure", name), *(_apart(k, f"K = {k}") for k in TOLD))
            yield table(f"A less B, {name.lower()}", heads, rows)
    heads = (Column("of", "labels"), *(_apart(key, heading) for key, heading in SHARES.items()))
    rows = [{"of": words} | found["answers"][key] for key, words in ANSWERS.items()]
    yield table("A less B, answers", heads, rows)


P_VALUES = (("p", "p"), ("p_holm", "Holm p"))
