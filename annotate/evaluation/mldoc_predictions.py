"""Predictions for balanced sets of documents, TRAIN-TEST.prediction, matched with the test sets that they are for.

de-en.prediction is of a classifier trained on German and tested on English, joint-en.prediction of one trained on all
languages together (Schwenk and Li 2018, table 3). Line n is for line n of the language's test list. mldoc_grading.py
measures them.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from annotate.core.splits import TEST
from annotate.evaluation.given import EvaluationError
from annotate.evaluation.prediction_files import RESTORE, SUFFIX, PublishedSet, check_labels, read_lines
from annotate.goldsets.formats import mldoc
from annotate.goldsets.manifest import GoldSetError
from annotate.kinds.balanced_draw import JOINT
from corpora.core.languages import LANGUAGES, published_code

Pair = tuple[str, str]  # the language of training, or JOINT; the language of the test


@dataclass(frozen=True)
class Tested:
    """The test set of a language. file: the list of its documents; truth: their classes, in its order."""

    file: str
    truth: list[str]


def read_tests(gold: PublishedSet) -> dict[str, Tested]:
    """Language -> its test set. EvaluationError where there is none, GoldSetError where the rows lack a document."""
    languages = _languages(gold)
    names = {code: mldoc.named(code, languages)[0] for code in languages}
    files = {code: f"{mldoc.INDICES}/{name}{gold.mark}.{TEST}" for code, name in names.items()}
    labels = _labels(gold.folder / f"gold{gold.mark}.jsonl")
    found = {}
    for language, file in files.items():
        ids = (gold.folder / file).read_text(encoding="utf-8").split("\n")[:-1] if gold.files.get(file) else []
        if strange := [key for key in ids if key not in labels]:
            raise GoldSetError(f"{gold.folder / file} names {strange[0]}, which is not among the set's rows. {RESTORE}")
        if ids:
            found[language] = Tested(file, [labels[key] for key in ids])
    if not found:
        raise EvaluationError(
            f"The set {gold.name} in {gold.folder} has no test set, and predictions are for its documents; open a task "
            "with --test, and export that."
        )
    return found


def _languages(gold: PublishedSet) -> list[str]:
    """The languages for which the set was drawn; a set that is not balanced has one draw for all."""
    return sorted({draw["language"] for draw in gold.manifest["draws"]} - {""})


def classes_of(gold: PublishedSet) -> list[str]:
    """Without what else people could answer."""
    classes: list[str] = gold.manifest["draws"][0]["parameters"]["classes"]
    return classes


def _labels(rows: Path) -> dict[str, str]:
    """Id -> class of all rows of the set."""
    with rows.open(encoding="utf-8") as lines:
        told = [json.loads(line) for line in lines]
    return {row["id"]: row["label"] for row in told}


def read_predictions(folder: Path, gold: PublishedSet, tests: dict[str, Tested]) -> dict[Pair, list[str]]:
    """Pair -> the class of each test document, as it is predicted. EvaluationError if a file does not fit the set."""
    if not folder.is_dir():
        raise EvaluationError(f"There is no folder {folder}; name one with files such as {_example(tests)}.")
    trained = _languages(gold)
    # A code has one part of two or three small letters, its first, so no name can be read as two pairs. Codes of the
    # published files, such as zh for zh-CN, are read too.
    pairs = {
        f"{first}-{second}": (train, test)
        for train in (*trained, JOINT)
        for test in tests
        for first in (train, published_code(train, trained))
        for second in (test, published_code(test, trained))
    }
    found = {}
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        stem = path.name.removesuffix(SUFFIX)
        if stem not in pairs:
            raise EvaluationError(f"{path} {_misnamed(stem, trained, tests)}")
        pair = pairs[stem]
        if pair in found:
            raise EvaluationError(f"{folder} has two files for {'-'.join(pair)}; leave {path.name} out or the other.")
        tested = tests[pair[1]]
        said = read_lines(path, wanted=len(tested.truth), tested=tested.file)
        check_labels(path, said, classes_of(gold))
        found[pair] = said
    if not found:
        raise EvaluationError(
            f"{folder} has no file of predictions; put one there for each pair of languages, such as "
            f"{_example(tests)}, with a line for each document of {next(iter(tests.values())).file}."
        )
    return found


def _example(tests: dict[str, Tested]) -> str:
    codes = list(tests)
    return f"{codes[0]}-{codes[-1]}{SUFFIX}"


def _misnamed(stem: str, trained: list[str], tests: dict[str, Tested]) -> str:
    """Why a name is that of no pair of the set."""
    parts = stem.split("-")
    for place in range(1, len(parts)):
        train, test = "-".join(parts[:place]), "-".join(parts[place:])
        if test in LANGUAGES and (train in LANGUAGES or train == JOINT):
            if train not in (*trained, JOINT):
                return f"is trained on {train}, which the set lacks; it has {', '.join(trained)}, and {JOINT}."
            return f"is tested on {test}, of which the set has no test documents; it has them in {', '.join(tests)}."
    return (
        f"is not named as a pair; name it by the language of training, or {JOINT}, and that of the test, such as "
        f"{_example(tests)}."
    )
