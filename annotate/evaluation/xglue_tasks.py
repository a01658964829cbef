"""Evaluation on XGLUE's tasks. Line n of TASK/LANGUAGE.prediction is the prediction for row n of the test file.

As in XGLUE's own evaluation, the measures are accuracy, nDCG and BLEU-4. Each is reported for every language and as a
mean over the languages. nDCG is computed for each query. Two systems are compared row by row.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from annotate.core.draws.splits import TEST
from annotate.core.estimation.resampling import LEAST_UNITS, apart
from annotate.core.measures import replies
from annotate.core.measures.classification import Paired, places_of
from annotate.core.measures.figure_rows import (
    Row,
    accuracy_apart,
    averaged,
    difference_row,
    holm_corrected,
    resampled,
    row,
)
from annotate.core.measures.ranked_labels import by_query, mean_ndcg
from annotate.evaluation.prediction_files import (
    SUFFIX,
    PublishedSet,
    check_labels,
    described,
    number_in,
    read_lines,
    system_names,
    unfinished_ones,
)
from annotate.evaluation.subjects import EvaluationError
from annotate.goldsets.formats import benchmarks
from annotate.goldsets.set_folder import GoldSetError
from annotate.kinds.forms import choice
from annotate.reports.evaluation_report import texts
from annotate.reports.tables import many
from corpora.core.languages import published_code

TEXTS = texts("xglue")
# The measure of each task.
MEASURES = {"qadsm": "accuracy", "qam": "accuracy", "wpr": "ndcg", "qg": "bleu4"}
NO_INTERVAL = f"fewer than {LEAST_UNITS} units, or all are alike"


@dataclass(frozen=True)
class Measured:
    """The test rows of one language, with predictions that are labels, texts, or numbers to rank by.

    groups: query of each row; empty if the task has no queries.
    """

    language: str
    truth: list[str]
    said: list[str]
    groups: list[str]

    @property
    def pages(self) -> Iterator[tuple[str, float, float]]:
        return zip(self.groups, map(float, self.truth), map(float, self.said), strict=True)

    def pairs(self, labels: Sequence[str]) -> Paired:
        every = [*labels, *sorted({*self.truth} - {*labels})]
        truth, said = (places_of(values, every) for values in (self.truth, self.said))
        return Paired(truth, said, len(every), np.ones(len(truth)))


@dataclass(frozen=True)
class Graded:
    """The predictions for one of XGLUE's tasks.

    gold: the set on which they are measured.
    extra: languages with predictions but without test rows.
    """

    task: str
    gold: PublishedSet
    languages: list[Measured]
    extra: list[str]

    @property
    def measure(self) -> str:
        return MEASURES[self.task]

    def of(self, each: Measured | None = None) -> dict[str, str]:
        """Return the slice of a report row for one language, or for all languages."""
        return {"task": self.task.upper()} | ({"language": each.language} if each else {})

    def seed(self, each: Measured) -> str:
        return f"{self.gold.digest}:{self.task}:{each.language}"


def grade(predictions: Path, sets: Sequence[PublishedSet], against: Path | None = None) -> dict[str, Any]:
    """Return the evaluation report.

    predictions: folder of predictions.
    sets: the gold sets.
    against: folder of a second system's predictions, None for no comparison.

    Raises EvaluationError if the predictions do not fit the sets.
    """
    check_sets(sets)
    paths = [predictions, *([against] if against else [])]
    names, graded = system_names(paths), [read_predictions(path, sets) for path in paths]
    first = graded[0]
    rows = [each for part in first for each in _rows(part)]
    words = {part.task: [f"{TEXTS.words[part.task]} Measured on the set {part.gold.name}."] for part in first}
    for part in first:
        words[part.task] += [f"BLEU’s signature: {replies.signature()}."] if part.measure == "bleu4" else []
    extra = [
        f"There are also predictions of {part.task.upper()} in {', '.join(part.extra)}, but the set "
        f"{part.gold.name} has no test rows there; they are not measured."
        for each in graded
        for part in each
        if part.extra
    ]
    return {
        "unit": "unit",
        "head": [{"measure": part.measure, "of": part.of()} for part in first],
        "words": words,
        "reading": TEXTS.reading,
        "predictor": described(names[0]),
        "rows": rows,
        "confusion": None,
        "comparison": _comparison(graded, names) if against else None,
        "told": [],
        "warnings": [*unfinished_ones(sets), *dict.fromkeys(extra)],
    }


# --- one system


def _rows(part: Graded) -> Iterator[Row]:
    rows = [found for each in part.languages for found in _figures(part, each)]
    main = [each for each in rows if each["measure"] == part.measure]
    yield row(part.measure, part.of(), averaged(main), None, _averaged(main))
    yield from rows


def _averaged(rows: Sequence[Row]) -> str:
    return f"mean over {many(sum(each['value'] is not None for each in rows), 'language')}"


def _figures(part: Graded, each: Measured) -> Iterator[Row]:
    of, seed = part.of(each), part.seed(each)
    if part.measure == "accuracy":
        pairs = each.pairs(part.gold.labels)
        yield from choice.Measures(pairs, part.gold.labels).sliced(of, np.ones(len(each.truth), dtype=np.bool_))
    elif part.measure == "ndcg":
        ranked = mean_ndcg(each.pages, seed=seed)
        notes = [many(len(each.truth), "page")]
        notes += [f"of one page, left out: {ranked.single:,}"] if ranked.single else []
        notes += [f"without a good page, counted 0: {ranked.irrelevant:,}"] if ranked.irrelevant else []
        notes += [NO_INTERVAL] if ranked.low is None else []
        yield row("ndcg", of, resampled(ranked), ranked.queries, "; ".join(notes))
    else:
        try:
            generated = replies.corpus_bleu(each.said, each.truth, seed=seed)
        except replies.MissingExtra as error:
            raise EvaluationError(str(error)) from error
        note = NO_INTERVAL if generated.low is None else ""
        yield row("bleu4", of, resampled(generated), generated.pairs, note)


# --- two systems


def _comparison(graded: Sequence[Sequence[Graded]], names: Sequence[str]) -> dict[str, Any]:
    ones, others = ({part.task: part for part in each} for each in graded)
    both = [task for task in ones if task in others]
    if not both:
        raise EvaluationError(
            f"{names[0]} and {names[1]} have no task in common, so there is nothing to compare; predict the same tasks "
            "with both."
        )
    rows: list[Row] = []
    for task in both:
        part = ones[task]
        found = [_apart(part, *each) for each in zip(part.languages, others[task].languages, strict=True)]
        lacking = [each for each in found if each["value"] is None]
        mean, note = (None, "not measured in every language") if lacking else (averaged(found), _averaged(found))
        rows += [difference_row(part.measure, part.of(), mean, None, note, None), *found]
    return {"other": described(names[1]), "rows": holm_corrected(rows), "test": TEXTS.words["test"]}


def _apart(part: Graded, one: Measured, other: Measured) -> Row:
    if part.measure == "accuracy":
        first, second = (each.pairs(part.gold.labels) for each in (one, other))
        return accuracy_apart(part.of(one), first, second)
    if part.measure == "ndcg":
        sums = [np.array([[value, 1.0] for value in by_query(each.pages)[0]]).reshape(-1, 2) for each in (one, other)]
        score = lambda sums: sums[0] / sums[1]  # noqa: E731
    else:
        sums, score = [replies.counts(each.said, each.truth) for each in (one, other)], replies.scores
    found, p = apart(sums[0], sums[1], score, seed=part.seed(one)) if len(sums[0]) else (None, None)
    note = "" if found else NO_INTERVAL
    return difference_row(part.measure, part.of(one), found, len(sums[0]), note, p)


# --- files


def _file(gold: PublishedSet, task: str, language: str, *, part: str = "", labels: bool = False) -> Path:
    return gold.folder / benchmarks.xglue_file(task, language, TEST, part=part, mark=gold.mark, labels=labels)


def _tasks(gold: PublishedSet) -> list[str]:
    return list(gold.manifest["published"]["tasks"])


def check_sets(sets: Iterable[PublishedSet]) -> None:
    """Check that the sets have test files and that no two sets are for the same task.

    Raises EvaluationError otherwise.
    """
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
    """Read the predictions for the sets, by task.

    Raises EvaluationError if they do not fit the sets.
    """
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
    start, end = _file(gold, task, "*", part=".src" if benchmarks.FORMS[task].target else "").name.split("*")
    of_gold = [name for name in gold.files if name.startswith(start) and name.endswith(end)]
    languages = sorted(name[len(start) : -len(end)] for name in of_gold)
    if not languages:
        raise EvaluationError(
            f"The set {gold.name} has no test rows of {task.upper()}; export it with a share of test."
        )
    named = {path.name.removesuffix(SUFFIX): path for path in sorted(folder.glob(f"*{SUFFIX}"))}
    # zh-CN.prediction is used for zh if there is no zh.prediction.
    there = {published_code(code, [code]): path for code, path in named.items()} | named
    if missing := [language for language in languages if language not in there]:
        rows = gold.files[f"{start}{missing[0]}{end}"]
        raise EvaluationError(
            f"{folder} has no {missing[0]}{SUFFIX}, and the set {gold.name} has {rows:,} test rows in "
            f"{missing[0]}; predict every language of {', '.join(languages)}."
        )
    measured = [_measured(there[language], task, gold, language) for language in languages]
    used = {there[language] for language in languages}
    return Graded(task, gold, measured, [code for code, path in named.items() if path not in used])


def _measured(path: Path, task: str, gold: PublishedSet, language: str) -> Measured:
    form, groups = benchmarks.FORMS[task], []
    try:
        if form.target:
            tested = _file(gold, task, language, part=".tgt")
            truth = [cells[0] for cells in benchmarks.read_xglue(tested, 1)]
        else:
            tested = _file(gold, task, language)
            rows = benchmarks.read_xglue(tested, len(form.inputs))
            truth = [cells[0] for cells in benchmarks.read_xglue(_file(gold, task, language, labels=True), 1)]
            groups = [row[form.inputs.index(form.together)] for row in rows] if form.together else []
    except benchmarks.XglueError as error:
        raise GoldSetError(str(error)) from error
    said = read_lines(path, wanted=len(truth), tested=tested.name)
    if form.together:
        for number, value in enumerate(said, 1):
            if not math.isfinite(number_in(value)):
                raise EvaluationError(
                    f"{path}, line {number:,}: {value[:40]!r} is not a finite number; the pages of a query are ranked "
                    "by numbers, such as 3 or 0.72, the highest first."
                )
    elif not form.target:
        check_labels(path, said, gold.labels)
    return Measured(language, truth, said, groups)
