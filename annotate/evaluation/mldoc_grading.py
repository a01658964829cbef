"""Predictions for balanced sets of documents, measured: accuracy of each pair of train and test language, its means,
and recall by class; and two systems, by what they say of the same documents.

The report is one dict that JSON can hold, like that of evaluate.py; reports/mldoc_report.py says it in words.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from annotate.core import by_class
from annotate.core.by_class import Drawn, Values
from annotate.core.comparing import holm, mcnemar
from annotate.core.estimation import proportion
from annotate.evaluation.given import EvaluationError
from annotate.evaluation.mldoc_predictions import Pair, Tested, classes_of, read_predictions, read_tests
from annotate.evaluation.prediction_files import PublishedSet, unfinished_ones
from annotate.kinds.balanced_draw import JOINT
from annotate.kinds.labels import label_name
from annotate.reports import mldoc_report
from annotate.reports.numbers import estimate

Tests = Mapping[str, Tested]  # language -> its test set
Right = Mapping[Pair, Values]  # pair -> 1 for each test document whose class is predicted, 0 for each other


def grade(predictions: Path, sets: Sequence[PublishedSet], against: Path | None = None) -> dict[str, Any]:
    """The report. EvaluationError if the predictions do not fit the set."""
    if len(sets) > 1:
        raise EvaluationError(
            f"{len(sets)} balanced sets are given, and the predictions are for one; measure on each by itself."
        )
    [gold] = sets
    tests, classes = read_tests(gold), classes_of(gold)
    names = _names(predictions, against)
    first = _read(predictions, gold, tests)
    return {
        "kind": mldoc_report.KIND,
        "predictor": _described(names[0]),
        "gold": [gold.described()],
        "apart": sorted({field for draw in gold.manifest["draws"] for field in draw["parameters"]["apart"]}),
        "classes": classes,
        "tests": [
            {
                "language": language,
                "name": label_name(language),
                "documents": len(tested.truth),
                "by_class": {label: tested.truth.count(label) for label in classes},
            }
            for language, tested in tests.items()
        ],
        "accuracy": _accuracy(first, tests),
        "recall": _recall(first, tests, classes),
        "comparison": _comparison(first, _read(against, gold, tests), tests, names) if against else None,
        "warnings": [*unfinished_ones(sets), *_doubts(gold)],
    }


def _doubts(gold: PublishedSet) -> list[str]:
    """What is known against the set's labels, or against how its documents were found."""
    doubts = []
    audit = gold.manifest.get("declared_audit")
    if audit and audit["error"]["value"] is not None:
        doubts.append(
            f"By the audit {estimate(audit['error'])} of the labels that came with the documents of {gold.name} are "
            "wrong; those that nobody read are taken for true here."
        )
    if gold.manifest["sets"]["standing"]:
        found_by = gold.manifest["draws"][0]["predictor"]
        doubts.append(
            f"The documents of {gold.name} were found by the predictor {found_by}: a classifier like it looks better "
            "on them than it is."
        )
    return doubts


def _read(folder: Path, gold: PublishedSet, tests: Tests) -> Right:
    return {
        (train, test): np.array([one == true for one, true in zip(said, tests[test].truth, strict=True)], float)
        for (train, test), said in read_predictions(folder, gold, dict(tests)).items()
    }


def _names(predictions: Path, against: Path | None) -> tuple[str, str]:
    """What the report calls the two folders: by their names, or by their paths where these are the same."""
    if against is None:
        return predictions.resolve().name, ""
    if predictions.resolve() == against.resolve():
        raise EvaluationError(f"{predictions} cannot be compared with itself; name another folder with --against.")
    first, second = predictions.resolve().name, against.resolve().name
    return (str(predictions), str(against)) if first == second else (first, second)


def _described(name: str) -> dict[str, str]:
    return {"name": name, "version": "", "spelled": name}


def _drawn(right: Right, pairs: Collection[Pair], tests: Tests) -> list[Drawn]:
    """The test documents of these pairs by language and class, each with the share of the systems that are right on
    it, so that all pairs weigh alike."""
    found = []
    for language, tested in tests.items():
        own = [right[pair] for pair in pairs if pair[1] == language]
        if not own:
            continue
        values, truth = np.mean(own, axis=0), np.array(tested.truth)
        for label in sorted(set(tested.truth)):
            of_class = values[truth == label]
            found.append(Drawn(len(own) / len(pairs) * len(of_class) / len(values), of_class))
    return found


def _groups(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """What is averaged: all pairs of languages, and those of two different ones, which is to transfer. What is trained
    on all languages together is neither."""
    of_one = [pair for pair in pairs if pair[0] != JOINT]
    return {"all": of_one, "transfer": [pair for pair in of_one if pair[0] != pair[1]]}


# --- one system


def _accuracy(right: Right, tests: Tests) -> dict[str, Any]:
    def measured(pairs: Collection[Pair]) -> dict[str, Any]:
        return by_class.mean(_drawn(right, pairs, tests)).as_dict()

    def told(pairs: Collection[Pair]) -> dict[str, Any]:
        return measured(pairs) | {"pairs": len(pairs)}

    def means(pairs: Iterable[Pair]) -> dict[str, Any]:
        return {which: told(group) for which, group in _groups(pairs).items()}

    trained = sorted({train for train, _ in right} - {JOINT})
    joint = [pair for pair in right if pair[0] == JOINT]
    return {
        "pairs": [
            {"train": train, "test": test, "documents": len(right[train, test]), "estimate": measured([(train, test)])}
            for train, test in sorted(right, key=lambda pair: (pair[0] == JOINT, pair))
        ],
        "means": means(right),
        "joint": told(joint) if joint else None,
        "by_train": [_of(code, means(pair for pair in right if pair[0] == code)) for code in trained],
        "by_test": [_of(code, means(pair for pair in right if pair[1] == code)) for code in tests],
    }


def _of(language: str, means: dict[str, Any]) -> dict[str, Any]:
    return {"language": language, "name": label_name(language), **means}


def _recall(right: Right, tests: Tests, classes: Iterable[str]) -> list[dict[str, Any]]:
    found = []
    for (train, test), values in right.items():
        truth = np.array(tests[test].truth)
        for label in classes:
            own = values[truth == label]
            estimate = proportion(float(own.sum()), len(own)).as_dict()
            found.append({"train": train, "test": test, "label": label, "documents": len(own), "estimate": estimate})
    return found


# --- two systems


def _comparison(first: Right, second: Right, tests: Tests, names: tuple[str, str]) -> dict[str, Any]:
    both = [pair for pair in first if pair in second]
    if not both:
        raise EvaluationError(
            f"{names[0]} and {names[1]} have no pair of languages in common, so there is nothing to compare; "
            "predict the same pairs with both."
        )

    def told(pairs: Collection[Pair]) -> dict[str, Any] | None:
        found = by_class.difference(_drawn(first, pairs, tests), _drawn(second, pairs, tests))
        return found and {**found.as_dict(), "pairs": len(pairs)}

    rows = []
    for train, test in sorted(both, key=lambda pair: (pair[0] == JOINT, pair)):
        apart = first[train, test] - second[train, test]
        alone = {"only_first": int((apart > 0).sum()), "only_second": int((apart < 0).sum())}
        accuracy = told([(train, test)])
        rows.append({"train": train, "test": test, "accuracy": accuracy, **alone, "p": mcnemar(*alone.values())})
    for row, p_holm in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p_holm"] = p_holm
    return {
        "other": _described(names[1]),
        "pairs": rows,
        "means": {which: told(group) for which, group in _groups(both).items()},
        "alone": len(first.keys() ^ second.keys()),
    }
