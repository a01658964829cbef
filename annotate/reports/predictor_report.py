"""What a report of `evaluate` on a predictor of languages says: words, tables and plots.

The report is the dict that `evaluate` writes as JSON. What was not measured is None there, and has no section here.
The sections of the measures are in predictor_measures.py; how sections are written down is in writing.py.
"""

from collections import Counter
from collections.abc import Callable

from annotate.core.estimation import LEAST_COUNT
from annotate.reports import predictor_measures as measures
from annotate.reports.evaluated import better_of, names_of
from annotate.reports.heat_map import confused_labels, heat_map, top_confusions
from annotate.reports.numbers import count, estimate, p_value, percent, points
from annotate.reports.sections import Section, by_code, dense
from annotate.reports.tables import (
    DIGEST,
    LANGUAGE,
    NAME,
    NUMBER,
    Column,
    Table,
    beside,
    many,
    numbered,
    numbers,
    table,
)
from corpora.core.languages import UND

KIND = "predictor"
COMMONEST = 25  # confusions in the table
CONFUSED = 20  # labels in the heat map that has its numbers in the cells


def sections(report: dict) -> list[Section]:
    return [section(report) for key, section in SECTIONS.items() if report.get(key)]


def headlines(report: dict) -> list[tuple[str, str, str]]:
    """What was measured, the number, and what the number means; the first things that people look for."""
    found = []
    if accuracy := report.get("accuracy"):
        without = estimate(accuracy.get("without_und"))
        found.append(("Accuracy", estimate(accuracy.get("with_und")), f"with und; {without} without"))
    for key in ("recall", "precision"):
        macro = (report.get(key) or {}).get("macro") or {}
        found += _headline(key.capitalize(), macro)
        if well := macro.get("well_measured"):
            found += _headline(f"{key.capitalize()}, {well['least_posts']}+ posts", well)
    if comparison := report.get("comparison"):
        accuracy = (comparison["accuracy"] or {}).get("with_und")
        found.append(("Comparison", points(accuracy), _who_is_better(report)))
    return found


def _who_is_better(report: dict) -> str:
    """The comparison in a sentence."""
    comparison = report["comparison"]
    first, second = names = names_of(report)
    if comparison["accuracy"]:
        accuracy = comparison["accuracy"]["with_und"]
        apart = f"{first} less {second}, in points of accuracy with und, is {points(accuracy)}"
        better = better_of(accuracy, names)
        return f"{better} is more accurate: {apart}" if better else f"neither is shown to be more accurate: {apart}"
    recalls = [row["recall"].get("better") for row in comparison["languages"] if row["recall"]]
    return (
        f"accuracy is compared on a uniform set, and none is given; of {many(len(recalls), 'label')}, {first} has the "
        f"better recall in {recalls.count('first')} and {second} in {recalls.count('second')}"
    )


def _headline(name: str, macro: dict) -> list[tuple[str, str, str]]:
    """One line, or none if no language was measured; without a uniform set, nothing is known of undefined posts."""
    if not (means := measures.means_of(macro)):
        return []
    (which, mean, over), *others = means
    words = [
        f"{which} und, mean over {over}",
        *(f"{percent(mean)} {which}, over {over}" for which, mean, over in others),
    ]
    return [(name, percent(mean), "; ".join(words))]


HOW_TO_READ = (
    "A number with two in brackets, x% [a, b], is an estimate with its 95% interval. On a uniform set, estimates "
    "are made by stratum: posts that people labelled count as they are, but for what checks found of labels that "
    "one person gave; posts on which the detectors merely agreed count through the ones among them that people "
    "audited, and the interval holds what may be there although nobody has seen it. Where that leaves less than "
    f"{LEAST_COUNT} posts’ worth of knowledge, there is no interval. Posts that were all read have one however few "
    "they are; of a single post it is wide. It is for the stream from which the posts come, also where the set holds "
    "all that its corpus has of them.",
    "“Counts as” is the number of posts of a plain random sample whose interval is as wide, and it need not be whole "
    "(≈). It may be far lower than the number of posts, where few audited ones stand for many.",
    "With und: posts that people called undefined count too, and a predictor is right on them only where it says und. "
    "Without und: these posts are left out.",
)


GOLD = (
    Column("name", "gold set"),
    Column("design", "design"),
    numbered("posts", "posts"),
    Column("finished", "finished", says=lambda gold: "yes" if gold["finished"] else "NO"),
    Column("predictor", "drawn by", says=lambda gold: gold.get("predictor") or ""),
    Column("folder_name", "folder", NAME, lambda gold: gold.get("folder_name") or ""),
    Column("digest", "SHA-256", DIGEST),
)
GONE = (
    Column("label", "label"),
    Column("name", "name", NAME, lambda row: beside(row["label"])),
    *numbers({"vanished": "vanished", "erased": "erased"}),
)


def _gold(report: dict) -> Section:
    predictor = report["predictor"]
    words = [f"Predictor: {predictor['spelled']}."]
    if report.get("comparison"):
        other = report["comparison"]["other"]["spelled"]
        words.append(
            f"Compared with: {other}. On the same posts, {_who_is_better(report)}. What {other} reaches by itself is "
            "not in this report; for that, run evaluate with it in the first place on the same "
            "gold sets."
        )
    if mapping := predictor.get("mapping"):
        pairs = "; ".join(f"{coarse} stands for {', '.join(fine)}" for coarse, fine in sorted(mapping.items()))
        words.append(f"It knows coarser labels: {pairs}. A coarse label is right where people gave any of those.")
    if predictor.get("voted"):
        words.append("It voted on posts of a uniform set, so agreement there counts through audited posts alone.")
    tables = [table(many(len(report["gold"]), "gold set"), GOLD, report["gold"])]
    gone = {key: report.get(key) or {} for key in ("vanished", "erased")}
    if any(lost.get("posts") for lost in gone.values()):
        vanished, erased = (count(part.get("posts", 0)) for part in gone.values())
        words.append(
            f"Posts left out because they are listed as vanished: {vanished}. "
            f"Posts erased from the gold sets: {erased}. None of them counts below; if they are unlike the "
            "others, every number here is off by that."
        )
        tables.append(_gone(gone))
    return Section("gold", "What was measured against what", tuple(words), tuple(tables))


def _gone(gone: dict[str, dict]) -> Table:
    by_label = {key: Counter(part.get("by_label") or {}) for key, part in gone.items()}
    labels = sorted(set().union(*by_label.values()), key=lambda label: (label == UND, label))
    rows = [{"label": label} | {key: counted[label] for key, counted in by_label.items()} for label in labels]
    return table(f"what is gone, by {many(len(rows), 'label')}", GONE, rows)


def _apart(key: str, heading: str, names: tuple[str, str]) -> list[Column]:
    """How far A and B are apart in one measure, the posts that this rests on, and which of the two is better."""
    return [
        Column(key, f"{heading}, A less B", NUMBER, lambda row: points(row[key])),
        numbered(f"{key}_posts", "posts read", lambda row: row[key] and row[key]["posts"]),
        Column(f"{key}_better", "better", says=lambda row: better_of(row[key], names)),
    ]


def _comparison(report: dict) -> Section:
    found = report["comparison"]
    first, second = names = names_of(report)
    words = [
        f"A is {first}, B is {second}, on the same posts. Each figure is what A reaches less what B reaches, in "
        "percentage points, estimated as for one predictor by stratum, chance and audit, with its 95% interval. The "
        "better one is named where nought lies outside that interval: among twenty rows without any difference, one "
        "on average is named by chance.",
    ]
    tables = []
    if accuracy := found["accuracy"]:
        rows = [
            {"over": "all posts, with und", "accuracy": accuracy["with_und"]},
            {"over": "without und", "accuracy": accuracy["without_und"]},
        ]
        tables.append(table("accuracy", [Column("over", "over"), *_apart("accuracy", "accuracy", names)], rows))
    else:
        words.append("Without a uniform set, accuracy and precision cannot be compared.")
    if test := found["mcnemar"]:
        words.append(
            f"McNemar’s exact test of the plain counts, unweighted since people have read every post of the draw: of "
            f"{count(test['items'])} posts, A alone is right on {count(test['only_first'])} and B alone on "
            f"{count(test['only_second'])}, p {p_value(test['p'])}."
        )
    rows = by_code(found["languages"])
    columns = (*LANGUAGE, *_apart("recall", "recall", names), *_apart("precision", "precision", names))
    tables += dense(table(many(len(rows), "language"), columns, rows))
    words += _classes(found.get("together") or {})
    return Section("comparison", f"{first} and {second} compared", tuple(words), tuple(tables))


def _classes(together: dict) -> tuple[str, ...]:
    if not together:
        return ()
    classes = "; ".join(f"{', '.join(fine)} as {coarse}" for coarse, fine in together.items())
    return (
        f"For this comparison alone, labels that either of the two does not tell apart are taken together: {classes}.",
    )


CONFUSIONS = (
    Column("gold", "people say"),
    Column("gold_name", "name", NAME, lambda row: beside(row["gold"])),
    Column("said", "predicted"),
    Column("said_name", "name", NAME, lambda row: beside(row["said"])),
    numbered("posts", "posts"),
    Column("share", "of the gold label", NUMBER, lambda row: percent(row["share"])),
)


def _confusion(report: dict) -> Section:
    cells = [tuple(cell) for cell in report["confusion"]["cells"]]
    totals: Counter[str] = Counter()
    for gold, _, weight in cells:
        totals[gold] += weight
    rows = [
        {"gold": gold, "said": said, "posts": weight, "share": weight / totals[gold]}
        for gold, said, weight in top_confusions(cells, COMMONEST)
    ]
    words = (
        "Which label is taken for which. Numbers of posts are weighted by stratum like the estimates, so they need not "
        "be whole.",
    )
    found = table(f"the {len(rows)} commonest confusions" if len(rows) > 1 else "confusions", CONFUSIONS, rows)
    return Section("confusion", "Confusions", words, (found,) if rows else (), plots=lambda: _heat_maps(report))


def _heat_maps(report: dict) -> list:
    labels, cells = report["confusion"]["labels"], report["confusion"]["cells"]
    predicted = f"{report['predictor']['spelled']} says"
    ordered = sorted(labels, key=lambda label: (label == UND, label))
    commonest = confused_labels(cells, CONFUSED)
    shown = [("Confusions among the labels that are confused most", commonest)] if commonest else []
    if len(commonest) < len(ordered):
        shown.append(("Confusions among all labels", ordered))
    return [heat_map(chosen, cells, title=title, predicted=predicted) for title, chosen in shown]


SECTIONS: dict[str, Callable[[dict], Section]] = {
    "gold": _gold,
    "accuracy": measures.accuracy,
    "recall": measures.recall,
    "precision": measures.precision,
    "recall_check": measures.recall_check,
    "unseen": measures.unseen,
    "balanced": measures.balanced,
    "comparison": _comparison,
    "confusion": _confusion,
}
