"""What a report on predictions for balanced sets of documents says: the matrix of train and test languages, means,
recall by class, and two systems compared.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from annotate.kinds.balanced_draw import JOINT
from annotate.reports.evaluated import better_of, names_of, sets_of
from annotate.reports.numbers import NOT_MEASURED, estimate, p_value, points, span
from annotate.reports.sections import Section, dense, pictures, rows_of
from annotate.reports.tables import (
    NAME,
    NUMBER,
    Cell,
    Column,
    Table,
    are,
    beside,
    estimated,
    many,
    numbered,
    numbers,
    share,
    table,
)

KIND = "mldoc"
BEST = "best"  # the mark of a column's highest transfer
# Columns of numbers, and of numbers with intervals, that stand side by side on a terminal of 80 columns.
ACROSS, WIDE_ACROSS = 8, 3

HOW_TO_READ = (
    "A number with two in brackets, x% [a, b], is an estimate with its 95% interval. It says what other documents of "
    "the same kinds, as many of each class, would have given; not what another run of training would.",
    "Accuracy and its means have intervals by class: chance chose which documents of a class are in the set, and not "
    "how many, so what the classes differ by does not widen them. Where the accuracy of a class differs much from that "
    "of others, they are narrower than the plain interval of all documents. Recall of a class has Jeffreys’ interval.",
    "“Counts as” is the number of documents of a plain random sample whose interval is as wide (≈).",
    "A mean counts each pair of languages alike, as in the tables of MLDoc (Schwenk and Li 2018). All systems that are "
    "tested on a language are tested on the same documents, so in the interval of a mean a document counts once, with "
    "the share of these systems that are right on it.",
)


def headlines(report: dict) -> list[tuple[str, str, str]]:
    accuracy = report["accuracy"]
    means = accuracy["means"]
    found = []
    if means["all"]["pairs"] > means["transfer"]["pairs"]:
        words = f"mean over {many(means['all']['pairs'], 'pair')} of train and test language"
        found.append(("Accuracy", estimate(means["all"]), words))
    if means["transfer"]["pairs"]:
        words = f"mean over {many(means['transfer']['pairs'], 'pair')} of two different languages"
        found.append(("Transfer", estimate(means["transfer"]), words))
    if joint := accuracy["joint"]:
        words = f"trained on all languages together, mean over {many(joint['pairs'], 'test language')}"
        found.append(("Joint", estimate(joint), words))
    if comparison := report["comparison"]:
        means = comparison["means"]
        which, apart = next(((which, apart) for which, apart in means.items() if apart), ("", None))
        if apart:
            found.append(("Comparison", points(apart), f"{_who_is_better(report, apart)}, {MEANS[which]}"))
    return found


def sections(report: dict) -> list[Section]:
    found = [_gold(report), _matrix(report), _means(report), _recall(report)]
    return [*found, _comparison(report)] if report["comparison"] else found


# --- what was measured


TESTS = (
    Column("language", "test"),
    Column("name", "name", NAME, lambda row: beside(row["language"], row["name"])),
    numbered("documents", "documents"),
    Column("by_class", "of each class", NUMBER, lambda row: _range(row["by_class"].values())),
)


def _range(counts: Collection[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _gold(report: dict) -> Section:
    words = [
        f"Predictions: the folder {report['predictor']['spelled']}. SHA-256 is that of the set’s manifest.",
        f"The classes are {', '.join(report['classes'])}. A document’s true class is its label in the set.",
    ]
    if comparison := report["comparison"]:
        words.insert(1, f"Compared with: the folder {comparison['other']['spelled']}.")
    tables = (
        table("gold set", sets_of("documents"), report["gold"]),
        table(many(len(report["tests"]), "test set"), TESTS, report["tests"]),
    )
    return Section("gold", "What was measured against what", tuple(words), tables)


# --- the matrix


def _matrix(report: dict) -> Section:
    pairs = {(pair["train"], pair["test"]): pair["estimate"] for pair in report["accuracy"]["pairs"]}
    trains, tests = ([*dict.fromkeys(pair[place] for pair in pairs)] for place in (0, 1))
    tests.sort()
    words = [
        "Accuracy in percent: the share of a language’s test documents whose class is predicted. Down stands the "
        "language of training, across that of the test. In brackets: trained and tested on the same one. *: the "
        "highest that is reached there from another single language.",
        _of_shares(report),
    ]
    if missing := len(trains) * len(tests) - len(pairs):
        words.append(f"{are(missing, 'pair has', 'pairs have')} no file of predictions, and a dash here.")
    best = {test: _best(pairs, test) for test in tests}
    tables = [
        table(
            f"accuracy of {many(len(pairs), 'pair')} of languages",
            [Column("train", "train"), *(_tested_on(test, pairs, best[test]) for test in part)],
            [{"train": train} for train in trains],
        )
        for part in _parts(tests, ACROSS)
    ]
    return Section("matrix", "Accuracy by train and test language", tuple(words), tuple(tables))


def _of_shares(report: dict) -> str:
    """Of which mixture of the classes an accuracy is the share."""
    counts = [number for row in report["tests"] for number in row["by_class"].values()]
    if all(len(set(row["by_class"].values())) == 1 for row in report["tests"]):
        return (
            "All classes have equally many test documents, so accuracy is the mean of the recalls of the classes: that "
            "of documents of which each class has an equal share, whatever it has where the documents come from."
        )
    return (
        f"The classes have {_range(counts)} test documents each, so accuracy is that of documents in which they have "
        "these shares, and not that of the documents where these come from."
    )


def _best(pairs: dict[tuple[str, str], dict], test: str) -> float | None:
    """The highest accuracy on a test language that is reached from another single language."""
    others = [made["value"] for (train, tested), made in pairs.items() if tested == test and train not in (test, JOINT)]
    return max(others, default=None)


def _tested_on(test: str, pairs: dict[tuple[str, str], dict], best: float | None) -> Column:
    def cell(row: dict) -> Cell:
        train = row["train"]
        if not (made := pairs.get((train, test))):
            return Cell(NOT_MEASURED)
        is_best = train not in (test, JOINT) and made["value"] == best
        written = f"{100 * made['value']:.1f}" + ("*" if is_best else "")
        note = "" if made["low"] is None else span(made["low"], made["high"])
        return Cell(f"({written})" if train == test else written, made["value"], note=note, mark=BEST * is_best)

    return Column(test, test, NUMBER, cell)


def _parts(listed: Sequence[Any], most: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(listed), most):
        yield listed[start : start + most]


# --- means


# What is averaged -> its words.
MEANS = {"all": "mean over all pairs", "transfer": "mean over pairs of two different languages"}


def _mean_columns() -> tuple[Column, ...]:
    return (
        estimated("all", "mean"),
        numbered("all_pairs", "pairs", lambda row: row["all"]["pairs"]),
        estimated("transfer", "without diagonal"),
        numbered("transfer_pairs", "pairs", lambda row: row["transfer"]["pairs"]),
    )


def _means(report: dict) -> Section:
    accuracy = report["accuracy"]
    words = [
        "Each pair counts alike, and one without a file does not count. On the diagonal stand the systems that are "
        "tested on the language of their training.",
    ]
    if report["apart"]:
        fields = ", ".join(report["apart"])
        words.append(
            f"The set was drawn so that documents with an equal {fields} stay in one of test, dev and train, in all "
            "languages together, so test sets of several languages may have them in common. The intervals take test "
            "sets of different languages for independent. Where they share documents, the intervals of means over "
            "several test languages are too narrow."
        )
    all_pairs = [{"language": "all", "name": "", **accuracy["means"]}]
    joint = {"language": JOINT, "name": "", "all": accuracy["joint"], "transfer": NOTHING}
    tables = [
        _table_of_means("train", [*accuracy["by_train"], *([joint] if accuracy["joint"] else [])]),
        _table_of_means("test", accuracy["by_test"], all_pairs),
    ]
    rows = [row for row in accuracy["by_test"] if row["all"]["pairs"]]

    def plots() -> list:
        return pictures(rows_of(rows, "all", "transfer"), "Means by test language", ("mean", "without diagonal"))

    return Section("means", "Means", tuple(words), tuple(tables), plots=plots)


NOTHING = {"value": None, "low": 0.0, "high": 1.0, "pairs": 0}


def _table_of_means(heading: str, rows: list[dict], total: Sequence[dict] = ()) -> Table:
    measured = [row for row in rows if row["all"]["pairs"]]
    columns = (
        Column("language", heading),
        Column("name", "name", NAME, lambda row: beside(row["language"], row["name"])),
        *_mean_columns(),
    )
    return table(f"means by {heading} language", columns, measured, total=total)


# --- recall


def _recall(report: dict) -> Section:
    recall = {(row["train"], row["test"], row["label"]): row["estimate"] for row in report["recall"]}
    pairs = report["accuracy"]["pairs"]
    columns = [
        estimated("estimate", "accuracy"),
        *(
            Column(label, label, NUMBER, lambda pair, label=label: share(recall[pair["train"], pair["test"], label]))
            for label in report["classes"]
        ),
    ]
    words = ("The share of the test documents of a class whose class is predicted, for each pair of languages.",)
    tables = (
        table(f"{', '.join(column.heading for column in part)} of {many(len(pairs), 'pair')}", [*PAIR, *part], pairs)
        for part in _parts(columns, WIDE_ACROSS)
    )
    return Section("recall", "Accuracy and recall by class", words, tuple(tables))


PAIR = (Column("train", "train"), Column("test", "test"))


# --- two systems


def _who_is_better(report: dict, apart: dict) -> str:
    first, second = names_of(report)
    better = better_of(apart, (first, second))
    said = f"{better} is more accurate" if better else "neither is shown to be more accurate"
    return f"{said}: {first} less {second}, in points of accuracy"


def _comparison(report: dict) -> Section:
    found = report["comparison"]
    first, second = names_of(report)
    pairs = found["pairs"]
    words = [
        f"A is {first}, B is {second}, on the same documents. Each figure is what A reaches less what B reaches, in "
        "percentage points of accuracy, with its 95% interval by class. The better one is named where nought lies "
        "outside that interval: among twenty rows without any difference, one on average is named by chance.",
        "A alone and B alone are the documents on which only one of the two is right; p is that of McNemar’s exact "
        f"test of these, and Holm p is corrected for {many(len(pairs), 'test')}: those below 0.05 hold all together.",
    ]
    if found["alone"]:
        words.append(
            f"Only one of the two has a file of {many(found['alone'], 'pair')}; "
            f"{'it is' if found['alone'] == 1 else 'they are'} not compared."
        )
    means = [{"of": MEANS[which], "accuracy": mean} for which, mean in found["means"].items() if mean]
    apart = Column("accuracy", "A less B", NUMBER, lambda row: points(row["accuracy"]))
    which = Column("better", "better", says=lambda row: better_of(row["accuracy"], (first, second)))
    tables = (
        *dense(
            table(
                "means",
                (
                    Column("of", "accuracy"),
                    apart,
                    numbered("pairs", "pairs", lambda row: row["accuracy"]["pairs"]),
                    which,
                ),
                means,
            )
        ),
        table(
            many(len(pairs), "pair"),
            (
                *PAIR,
                apart,
                *numbers({"only_first": "A alone", "only_second": "B alone"}),
                *(Column(key, heading, NUMBER, lambda row, key=key: p_value(row[key])) for key, heading in TESTED),
                which,
            ),
            pairs,
        ),
    )
    return Section("comparison", f"{first} and {second} compared", tuple(words), tables)


TESTED = (("p", "p"), ("p_holm", "Holm p"))
