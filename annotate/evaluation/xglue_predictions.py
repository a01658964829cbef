"""XGLUE's predictions, TASK/LANGUAGE.prediction, matched with the exported sets of records that they are for.

Line n of a file is for row n of the test file. xglue_grading.py grades them.
"""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotate.core.splits import TEST
from annotate.evaluation.given import EvaluationError
from annotate.goldsets.edits import differing
from annotate.goldsets.formats import xglue
from annotate.goldsets.manifest import GoldSetError, manifest_of
from annotate.goldsets.reading import UNMEASURED
from annotate.kinds.designs import DESIGNS

SUFFIX = ".prediction"
RESTORE = "Restore it, or export the set again."


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
    gold: "RecordSet"
    languages: list[Measured]
    extra: list[str]


@dataclass(frozen=True)
class RecordSet:
    folder: Path
    name: str
    finished: bool
    labels: list[str]
    files: dict[str, int]
    tasks: list[str]
    rows: int
    digest: str

    @property
    def mark(self) -> str:
        return "" if self.finished else ".unfinished"

    def file(self, task: str, language: str, *, part: str = "", labels: bool = False) -> Path:
        return self.folder / xglue.file_name(task, language, TEST, part=part, mark=self.mark, labels=labels)

    def languages(self, task: str) -> list[str]:
        """The languages in which a task has a test file."""
        start, end = self.file(task, "*", part=".src" if xglue.FORMS[task].target else "").name.split("*")
        return sorted(
            name[len(start) : -len(end)] for name in self.files if name.startswith(start) and name.endswith(end)
        )


def read_record_sets(folders: Collection[Path], *, unfinished: bool) -> list[RecordSet]:
    """The sets in these folders. GoldSetError or EvaluationError for a set on which nothing can be measured."""
    sets: list[RecordSet] = []
    for folder in folders:
        try:
            gold = _read(folder)
        except OSError as error:
            raise GoldSetError(f"{error.filename or folder} cannot be read: {error.strerror}.") from error
        if not (gold.finished or unfinished):
            raise EvaluationError(
                f"The gold set {gold.name} in {folder} is unfinished: records that still wait for people are missing "
                "from it. Export it again when it is done, or pass --unfinished to measure on it all the same."
            )
        for other in sets:
            if both := set(other.tasks) & set(gold.tasks):
                raise EvaluationError(
                    f"{other.folder} and {folder} are both sets of {min(both).upper()}, and the predictions are for "
                    "one set; measure on each by itself."
                )
        sets.append(gold)
    return sets


def _read(folder: Path) -> RecordSet:
    manifest = manifest_of(folder)
    design = DESIGNS.get(str(manifest.get("design")))
    if design is None or design.by_row:
        raise GoldSetError(
            f"{folder} is a set of posts, and --predictions is for sets of records; name a predictor, "
            "or give a file of its labels with --file."
        )
    if design.names_answers:
        raise GoldSetError(f"{folder} {UNMEASURED}")
    try:
        published, name = manifest["published"], manifest["task"]["name"]
        if published is None:
            raise EvaluationError(
                f"The set {name} in {folder} is of the kind {manifest['task']['type']}, for which XGLUE has no "
                "files; there is no place to predict anything for it."
            )
        if published["refused"]:
            raise EvaluationError(f"The set {name} in {folder} has no files to predict for. {published['refused']}")
        return _checked(folder, manifest, published)
    except (KeyError, TypeError) as error:
        raise GoldSetError(f"{folder / 'manifest.json'} lacks what is needed: {error}. {RESTORE}") from error


def _checked(folder: Path, manifest: dict[str, Any], published: dict[str, Any]) -> RecordSet:
    changed, missing = differing(folder, manifest["files"])
    missing += [name for name in published["files"] if name not in manifest["files"]]
    for names, words in ((missing, "is missing"), (changed, "is not as it was written")):
        if names:
            raise GoldSetError(f"{folder / names[0]} {words}. {RESTORE}")
    return RecordSet(
        folder=folder,
        name=manifest["task"]["name"],
        finished=manifest["finished"],
        labels=list(manifest["task"]["labels"]),
        files=dict(published["files"]),
        tasks=list(published["tasks"]),
        rows=manifest["counts"]["labelled"],
        digest=manifest["digest"],
    )


def read_predictions(folder: Path, sets: Iterable[RecordSet]) -> list[Graded]:
    """What is predicted for the sets, by task. EvaluationError if it does not fit them."""
    if not folder.is_dir():
        raise EvaluationError(f"There is no folder {folder}; name one with a folder for each task, such as QADSM.")
    graded = []
    for gold in sets:
        tasks = [task for task in gold.tasks if (folder / task.upper()).is_dir()]
        if not tasks:
            wanted = " nor ".join(task.upper() for task in gold.tasks)
            raise EvaluationError(
                f"{folder} has no folder {wanted}, which the set {gold.name} needs; put its predictions there, one "
                f"file for each language, such as {gold.tasks[0].upper()}/en{SUFFIX}."
            )
        graded += [_graded(folder / task.upper(), task, gold) for task in tasks]
    return graded


def _graded(folder: Path, task: str, gold: RecordSet) -> Graded:
    languages = gold.languages(task)
    if not languages:
        raise EvaluationError(
            f"The set {gold.name} has no test rows of {task.upper()}; export it with a share of test."
        )
    there = sorted(path.name.removesuffix(SUFFIX) for path in folder.glob(f"*{SUFFIX}"))
    if missing := [language for language in languages if language not in there]:
        rows = gold.files[gold.file(task, missing[0], part=".src" if xglue.FORMS[task].target else "").name]
        raise EvaluationError(
            f"{folder} has no {missing[0]}{SUFFIX}, and the set {gold.name} has {rows:,} test rows in "
            f"{missing[0]}; predict every language of {', '.join(languages)}."
        )
    measured = [_measured(folder / f"{language}{SUFFIX}", task, gold, language) for language in languages]
    return Graded(task, gold, measured, [language for language in there if language not in languages])


def _measured(path: Path, task: str, gold: RecordSet, language: str) -> Measured:
    form, groups = xglue.FORMS[task], []
    try:
        if form.target:
            tested = gold.file(task, language, part=".tgt")
            truth = [cells[0] for cells in xglue.read(tested, 1)]
        else:
            tested = gold.file(task, language)
            rows = xglue.read(tested, len(form.inputs))
            truth = [cells[0] for cells in xglue.read(gold.file(task, language, labels=True), 1)]
            groups = [row[form.inputs.index(form.together)] for row in rows] if form.together else []
    except xglue.XglueError as error:
        raise GoldSetError(str(error)) from error
    said = _lines(path)
    if len(said) != len(truth):
        raise EvaluationError(
            f"{path} has {len(said):,} lines, and {tested.name} has {len(truth):,} rows; predict one line for each, in "
            "their order."
        )
    for number, value in enumerate(said, 1):
        if form.together and not _is_finite(value):
            raise EvaluationError(
                f"{path}, line {number:,}: {value[:40]!r} is not a finite number; the pages of a query are ranked by "
                "numbers, such as 3 or 0.72, the highest first."
            )
        if not (form.target or form.together) and value not in gold.labels:
            raise EvaluationError(
                f"{path}, line {number:,}: {value[:40]!r} is not a label of the task; it must be one of "
                f"{', '.join(gold.labels)}."
            )
    return Measured(language, truth, said, groups)


def _is_finite(value: str) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False


def _lines(path: Path) -> list[str]:
    """The lines of a file, stripped; an empty one after the last newline is not a line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise EvaluationError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError:
        raise EvaluationError(f"{path} is not UTF-8; save it as UTF-8.") from None
    lines = text.split("\n")
    return [line.strip() for line in (lines[:-1] if lines[-1] == "" else lines)]
