"""What a report on suggested replies says: ROUGE, Dist, precision at one and mean reciprocal rank by language, and two
systems compared.
"""

from collections.abc import Mapping
from typing import Any

from annotate.core.resampling import LEAST_LEFT_OUT, LEAST_UNITS
from annotate.core.rouge import LONGEST
from annotate.reports.evaluated import better_of, names_of, sets_of
from annotate.reports.numbers import estimate, p_value, points
from annotate.reports.sections import Section, pictures, rows_of
from annotate.reports.tables import NUMBER, Cell, Column, are, beside, estimated, many, numbered, table

KIND = "replies"
OVERLAP = {"weighted": "weighted ROUGE", "rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rouge3": "ROUGE-3"}
DISTINCT = {"dist1": "Dist-1", "dist2": "Dist-2"}
RETRIEVED = {"p1": "precision at one", "mrr": "MRR"}
MEASURES = OVERLAP | DISTINCT | RETRIEVED

HOW_TO_READ = (
    "A number with two in brackets, x% [a, b], is an estimate with its 95% interval. It says what other messages like "
    "these would have given; not what another run of training would. Examples of one message count together, as they "
    "have the same suggestions; of fewer than "
    f"{LEAST_LEFT_OUT} messages no interval is given.",
    "Of each example the suggestion with the greatest weighted ROUGE counts, ROUGE-1/6 + ROUGE-2/3 + ROUGE-3/2, where "
    "ROUGE-n is the F1 of distinct n-grams of words, without full stops, in small letters (Zhang et al. 2021, and the "
    "program published with it). The figure is the mean over examples.",
    "Dist-1 and Dist-2 are the distinct words, and the distinct pairs of words, of the replies that counted, divided "
    "by the number of their words. They fall as examples are added, so compare them only on as many. Their intervals "
    "are somewhat too wide.",
    "Precision at one is the share of references in the response set that were suggested first; MRR is the mean of "
    "1/rank of these references among the suggestions, 0 where they are none of them.",
)


def headlines(report: dict) -> list[tuple[str, str, str]]:
    whole = report["replies"]
    words = f"mean over {many(whole['rows'], 'example')}"
    found = [("Weighted ROUGE", estimate(whole["weighted"]), words)]
    if whole["retrievable"]:
        words = f"of {many(whole['retrievable'], 'reference')} in the response set"
        found.append(("Precision at one", estimate(whole["p1"]), words))
    if comparison := report["comparison"]:
        row = comparison["languages"][0]
        found.append(("Comparison", points(row["weighted"]), _who_is_better(report, row)))
    return found


def sections(report: dict) -> list[Section]:
    found = [_gold(report), _overlap(report), _distinct(report), _retrieved(report)]
    return [*found, _comparison(report)] if report["comparison"] else found


def _rows(report: dict) -> tuple[list[dict], list[dict]]:
    """The languages, and all together where there are several."""
    languages = report["replies"]["languages"]
    return languages, [report["replies"]] if len(languages) > 1 else []


def _of(row: Mapping[str, Any]) -> str:
    return row["language"] or "all"


LANGUAGE = (
    Column("language", "language", says=_of),
    Column("name", "name", "name", lambda row: beside(row["language"], row["name"]) if row["language"] else ""),
)


# --- what was measured


def _gold(report: dict) -> Section:
    words = [
        f"Suggested replies: {report['predictor']['spelled']}. SHA-256 is that of the set’s manifest. Measured on its "
        "test pairs.",
        *report["told"],
    ]
    if comparison := report["comparison"]:
        words.insert(1, f"Compared with: {comparison['other']['spelled']}.")
    if left := report["replies"]["unmeasured"]:
        words.append(
            f"{are(left, 'example is', 'examples are')} left out, as the reference has more than {LONGEST} words, or "
            "none but full stops."
        )
    columns = (
        *LANGUAGE,
        numbered("rows", "examples"),
        numbered("messages", "messages"),
        numbered("unmeasured", "left out"),
        numbered("retrievable", "in response set"),
    )
    rows, total = _rows(report)
    tables = (
        table("gold set", sets_of("pairs"), report["gold"]),
        table(many(len(rows), "language"), columns, rows, total=total),
    )
    return Section("gold", "What was measured against what", tuple(words), tables)


# --- one system


def _overlap(report: dict) -> Section:
    rows, total = _rows(report)
    tables = tuple(
        table(
            f"{' and '.join(part.values())} by language",
            (*LANGUAGE, *(estimated(key, heading) for key, heading in part.items())),
            rows,
            total=total,
        )
        for part in ({key: OVERLAP[key] for key in keys} for keys in (("weighted", "rouge1"), ("rouge2", "rouge3")))
    )

    def plots() -> list:
        return pictures(rows_of(rows, "weighted"), "Weighted ROUGE by language", counted="counts as")

    return Section("overlap", "How near the suggestions come to the reference", (), tables, plots=plots)


def _distinct(report: dict) -> Section:
    rows, total = _rows(report)
    columns = (*LANGUAGE, *(estimated(key, heading) for key, heading in DISTINCT.items()))
    words = ("The higher, the less the same replies are suggested again and again.",)
    return Section("distinct", "How diverse they are", words, (table("Dist by language", columns, rows, total=total),))


def _retrieved(report: dict) -> Section:
    rows, total = _rows(report)
    title = "How often the reference is found in the response set"
    if not report["replies"]["retrievable"]:
        words = (
            "No reference that was measured is in the response set, so that precision at one and MRR cannot be told."
        )
        return Section("retrieved", title, (words,))
    columns = (
        *LANGUAGE,
        numbered("retrievable", "examples"),
        *(estimated(key, heading) for key, heading in RETRIEVED.items()),
    )
    words = (
        "Only examples whose reference is in the response set have a part in these; of all others no system that "
        "chooses from it could find the reference.",
    )
    return Section("retrieved", title, words, (table("retrieval by language", columns, rows, total=total),))


# --- two systems


def _who_is_better(report: dict, row: Mapping[str, Any]) -> str:
    first, second = names_of(report)
    better = better_of(row["weighted"], (first, second))
    said = f"{better} is better" if better else "neither is shown to be better"
    return f"{said}: {first} less {second}, in points of weighted ROUGE"


def _apart(key: str, heading: str) -> Column:
    def cell(row: dict) -> Cell:
        apart = row[key]
        return Cell(points(apart) + "*" * bool(apart and apart["better"]), apart and apart["value"])

    return Column(key, heading, NUMBER, cell)


def _comparison(report: dict) -> Section:
    found = report["comparison"]
    first, second = names_of(report)
    words = [
        f"A is {first}, B is {second}, on the same examples. Each figure is what A reaches less what B reaches, in "
        "percentage points, with its 95% interval, which is not given for fewer than "
        f"{LEAST_UNITS} messages. *: nought lies outside that interval; among twenty figures without any difference, "
        "one on average has it by chance.",
        "p is that of the two-sided randomization test: how often the two are as far apart, if a coin decides for each "
        f"message which of them said what. Holm p is corrected for {many(len(found['tested']), 'test')}: those below "
        "0.05 hold all together. The better one is named where nought lies outside the interval.",
    ]
    if found["alone"]:
        words.append(f"Only one of the two has predictions for {', '.join(found['alone'])}; they are not compared.")
    heads = (
        *LANGUAGE,
        Column("measure", "measure", says=lambda row: MEASURES[row["measure"]]),
        _apart("difference", "A less B"),
        *(Column(key, heading, NUMBER, lambda row, key=key: p_value(row[key])) for key, heading in P_VALUES),
        Column("better", "better", says=lambda row: better_of(row["difference"], (first, second))),
    )
    tables = [table("what was tested", heads, found["tested"])]
    for part in (("weighted", "rouge1"), ("rouge2", "rouge3"), ("dist1", "dist2"), ("p1", "mrr")):
        if any(row[key] for row in found["languages"] for key in part):
            columns = (*LANGUAGE, *(_apart(key, MEASURES[key]) for key in part))
            names = " and ".join(MEASURES[key] for key in part)
            tables.append(table(f"A less B, {names}", columns, found["languages"]))
    return Section("comparison", f"{first} and {second} compared", tuple(words), tuple(tables))


P_VALUES = (("p", "p"), ("p_holm", "Holm p"))
