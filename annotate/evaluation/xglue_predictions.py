"""XGLUE's predictions, TASK/LANGUAGE.prediction, matched with the exported sets of records that they are for.

Line n of a file is for row n of the test file. xglue_grading.py grades them.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from annotate.core.splits import TEST
from annotate.evaluation.given import EvaluationError
from annotate.evaluation.prediction_files import SUFFIX, PublishedSet, check_labels, read_lines
from annotate.goldsets.formats import xglue
from annotate.goldsets.manifest import GoldSetError
from corpora.core.languages import published_code


@dataclass(frozen=True)
class Measured:
    """The test rows of one language, and what is predicted for each: labels, texts, or numbers to rank by.

    groups: the query of each row.
    """

    language: str
    truth: list[str]
    said: list[str]
    groups: list[str]


@dataclass(frozen=True)
class Graded:
    """One of XGLUE's tasks in one set. extra: languages with predictions but no rows."""

    task: str
    gold: PublishedSet
    languages: list[Measured]
    extra: list[str]


def _file(gold: PublishedSet, task: str, language: str, *, part: str = "", labels: bool = False) -> Path:
    return gold.folder / xglue.file_name(task, language, TEST, part=part, mark=gold.mark, labels=labels)


def _languages(gold: PublishedSet, task: str) -> list[str]:
    """The languages in which a task has a test file."""
    start, end = _file(gold, task, "*", part=".src" if xglue.FORMS[task].target else "").name.split("*")
    return sorted(name[len(start) : -len(end)] for name in gold.files if name.startswith(start) and name.endswith(end))


def _tasks(gold: PublishedSet) -> list[str]:
    return list(gold.manifest["published"]["tasks"])


def check_sets(sets: Iterable[PublishedSet]) -> None:
    """EvaluationError for sets without files, or two of one task."""
    seen: dict[str, PublishedSet] = {}
    for gold in sets:
        if refused := gold.manifest["published"]["refused"]:
            raise EvaluationError(f"The set {gold.name} in {gold.folder} has no files to predict for. {refused}")
        for task in sorted(_tasks(gold)):
            if task in seen:
                raise EvaluationError(
                    f"{seen[task].folder} and {gold.folder} are both sets of {task.upper()}, and the predictions are "
                    "for one set; measure on each by itself."
                )
            seen[task] = gold


def read_predictions(folder: Path, sets: Iterable[PublishedSet]) -> list[Graded]:
    """What is predicted for the sets, by task. EvaluationError if it does not fit them."""
    if not folder.is_dir():
        raise EvaluationError(f"There is no folder {folder}; name one with a folder for each task, such as QADSM.")
    graded = []
    for gold in sets:
        tasks = [task for task in _tasks(gold) if (folder / task.upper()).is_dir()]
        if not tasks:
            wanted = " nor ".join(task.upper() for task in _tasks(gold))
            raise EvaluationError(
                f"{folder} has no folder {wanted}, which the set {gold.name} needs; put its predictions there, one "
                f"file for each language, such as {_tasks(gold)[0].upper()}/en{SUFFIX}."
            )
        graded += [_graded(folder / task.upper(), task, gold) for task in tasks]
    return graded


def _graded(folder: Path, task: str, gold: PublishedSet) -> Graded:
    languages = _languages(gold, task)
    if not languages:
        raise EvaluationError(
            f"The set {gold.name} has no test rows of {task.upper()}; export it with a share of test."
        )
    named = {path.name.removesuffix(SUFFIX): path for path in sorted(folder.glob(f"*{SUFFIX}"))}
    # zh-CN.prediction is taken for zh, unless there is zh.prediction.
    there = {published_code(code, [code]): path for code, path in named.items()} | named
    if missing := [language for language in languages if language not in there]:
        rows = gold.files[_file(gold, task, missing[0], part=".src" if xglue.FORMS[task].target else "").name]
        raise EvaluationError(
            f"{folder} has no {missing[0]}{SUFFIX}, and the set {gold.name} has {rows:,} test rows in "
            f"{missing[0]}; predict every language of {', '.join(languages)}."
        )
    measured = [_measured(there[language], task, gold, language) for language in languages]
    used = {there[language] for language in languages}
    return Graded(task, gold, measured, [code for code, path in named.items() if path not in used])


def _measured(path: Path, task: str, gold: PublishedSet, language: str) -> Measured:
    form, groups = xglue.FORMS[task], []
    try:
        if form.target:
            tested = _file(gold, task, language, part=".tgt")
            truth = [cells[0] for cells in xglue.read(tested, 1)]
        else:
            tested = _file(gold, task, language)
            rows = xglue.read(tested, len(form.inputs))
            truth = [cells[0] for cells in xglue.read(_file(gold, task, language, labels=True), 1)]
            groups = [row[form.inputs.index(form.together)] for row in rows] if form.together else []
    except xglue.XglueError as error:
        raise GoldSetError(str(error)) from error
    said = read_lines(path, wanted=len(truth), tested=tested.name)
    if form.together:
        _check_numbers(path, said)
    elif not form.target:
        check_labels(path, said, gold.labels)
    return Measured(language, truth, said, groups)


def _check_numbers(path: Path, said: Iterable[str]) -> None:
    for number, value in enumerate(said, 1):
        if not _is_finite(value):
            raise EvaluationError(
                f"{path}, line {number:,}: {value[:40]!r} is not a finite number; the pages of a query are ranked by "
                "numbers, such as 3 or 0.72, the highest first."
            )


def _is_finite(value: str) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False
