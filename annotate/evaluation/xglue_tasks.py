"""Evaluation on XGLUE's tasks. Line n of TASK/LANGUAGE.prediction is the prediction for row n of the test or dev file.

As in XGLUE's own evaluation, the measures are accuracy, nDCG and BLEU-4, for each language and averaged over languages.
With several tasks, the report also has means over the understanding tasks and over the generation tasks. nDCG is
computed per query. Two systems are compared row by row.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from annotate.core.draws.splits import TEST
from annotate.core.estimation.resampling import LEAST_UNITS, compare_scores
from annotate.core.measures.classification import Paired, places_of
from annotate.core.measures.figure_rows import (
    Row,
    add_holm_p_values,
    compare_accuracy,
    difference_row,
    mean_of_rows,
    row,
)
from annotate.core.measures.generated_texts import (
    BLEU4,
    CHRF,
    METRICS,
    MissingExtra,
    corpus_score,
    counts,
    scores,
    signature,
)
from annotate.core.measures.ranked_labels import by_query, mean_ndcg
from annotate.evaluation.prediction_files import (
    SUFFIX,
    check_labels,
    describe_system,
    parse_number,
    read_lines,
    system_names,
)
from annotate.evaluation.record_sets import PublishedSet, unfinished_warnings
from annotate.evaluation.subjects import EvaluationError
from annotate.goldsets.formats import xglue
from annotate.goldsets.set_folder import GoldSetError
from annotate.kinds.forms import choice
from annotate.reports.evaluation_report import texts
from annotate.reports.tables import many
from corpora.core.languages import published_code

TEXTS = texts("xglue")
# The measure of each task.
MEASURES = {
    **dict.fromkeys(("qadsm", "qam", "nc", "xnli", "pawsx"), "accuracy"),
    "wpr": "ndcg",
    **dict.fromkeys(("qg", "ntg"), "bleu4"),
}
NO_INTERVAL = f"fewer than {LEAST_UNITS} items, or all items have the same value"


@dataclass(frozen=True)
class Measured:
    """The rows of one language, with predictions: labels, texts, or numbers to rank by.

    groups: query of each row; empty if the task has no queries.
    """

    language: str
    truth: list[str]
    predicted: list[str]
    groups: list[str]

    @property
    def pages(self) -> Iterator[tuple[str, float, float]]:
        return zip(self.groups, map(float, self.truth), map(float, self.predicted), strict=True)

    def pairs(self, labels: Sequence[str]) -> Paired:
        all_labels = [*labels, *sorted({*self.truth} - {*labels})]
        truth, predicted = (places_of(values, all_labels) for values in (self.truth, self.predicted))
        return Paired(truth, predicted, len(all_labels), np.ones(len(truth)))


@dataclass(frozen=True)
class Graded:
    """The predictions for one of XGLUE's tasks.

    gold: the set they are measured on.
    extra: languages with predictions but without rows.
    """

    task: str
    gold: PublishedSet
    languages: list[Measured]
    extra: list[str]

    @property
    def measure(self) -> str:
        return MEASURES[self.task]

    def of(self, measured: Measured | None = None) -> dict[str, str]:
        """Return the slice keys of a report row, for one language or for the mean over languages."""
        return {"task": self.task.upper()} | ({"language": measured.language} if measured else {})

    def seed(self, measured: Measured) -> str:
        return f"{self.gold.digest}:{self.task}:{measured.language}"


def grade(
    predictions: Path, sets: Sequence[PublishedSet], against: Path | None = None, *, split: str = TEST
) -> dict[str, Any]:
    """Evaluate predictions for XGLUE's tasks and return the report.

    predictions: folder of predictions.
    sets: the gold sets.
    against: folder of a second system's predictions; None for no comparison.
    split: the split to measure.

    Raise EvaluationError if the predictions do not fit the sets.
    """
    check_sets(sets)
    paths = [path for path in (predictions, against) if path]
    names, graded = system_names(paths), [read_predictions(path, sets, split) for path in paths]
    parts = graded[0]
    rows = [figure_row for part in parts for figure_row in _rows(part)]  # BLEU has a signature only after a measurement
    means = list(_over_tasks(parts, rows))
    extra = [
        f"Predictions of {part.task.upper()} in {', '.join(part.extra)} are not measured, because the set "
        f"{part.gold.name} has no {split} rows in these languages."
        for system in graded
        for part in system
        if part.extra
    ]
    return {
        "unit": "unit",
        "head": [
            *({name: mean[name] for name in ("measure", "of")} for mean in means),
            *({"measure": part.measure, "of": part.of()} for part in parts),
        ],
        "words": {part.task: list(_words(part)) for part in parts},
        "reading": TEXTS.reading,
        "predictor": describe_system(names[0]),
        "rows": [*means, *rows],
        "confusion": None,
        "comparison": _comparison(graded, names) if against else None,
        "told": [],
        "warnings": [*unfinished_warnings(sets), *dict.fromkeys(extra)],
    }


def _words(part: Graded) -> Iterator[str]:
    yield f"{TEXTS.words[part.task]} Measured on the set {part.gold.name}."
    if part.measure == "bleu4":
        yield from signatures()


# --- one system


def _rows(part: Graded) -> Iterator[Row]:
    rows = [figure_row for measured in part.languages for figure_row in _figures(part, measured)]
    main = [figure_row for figure_row in rows if figure_row["measure"] == part.measure]
    yield row(part.measure, part.of(), mean_of_rows(main), None, _mean_note(main))
    yield from rows


def _mean_note(rows: Sequence[Row], noun: str = "language") -> str:
    return f"mean over {many(sum(figure_row['value'] is not None for figure_row in rows), noun)}"


def _over_tasks(parts: Sequence[Graded], rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the means over the understanding and the generation tasks, if there are several of a kind."""
    for measure, is_written in (("understanding", False), ("generation", True)):
        of_tasks = [part.of() for part in parts if (part.measure == "bleu4") is is_written]
        main = [figure_row for figure_row in rows if figure_row["of"] in of_tasks]
        if len(main) > 1:
            yield row(measure, {}, mean_of_rows(main), None, _mean_note(main, "task"))


def _figures(part: Graded, measured: Measured) -> Iterator[Row]:
    slice_keys, seed = part.of(measured), part.seed(measured)
    if part.measure == "accuracy":
        pairs = measured.pairs(part.gold.labels)
        yield from choice.Measures(pairs, part.gold.labels).sliced(
            slice_keys, np.ones(len(measured.truth), dtype=np.bool_)
        )
    elif part.measure == "ndcg":
        ranked = mean_ndcg(measured.pages, seed=seed)
        notes = (
            many(len(measured.truth), "page"),
            f"queries with one page, left out: {ranked.single:,}" if ranked.single else "",
            f"queries without a relevant page, counted as 0: {ranked.irrelevant:,}" if ranked.irrelevant else "",
            NO_INTERVAL if ranked.low is None else "",
        )
        yield row("ndcg", slice_keys, ranked, ranked.queries, "; ".join(filter(None, notes)))
    else:
        references = [[text] for text in measured.truth]
        yield from generated_rows(measured.predicted, references, slice_keys, seed=seed)


def signatures() -> list[str]:
    """Return sentences with sacrebleu's signatures, which are available only after a measurement."""
    return [f"{name}’s signature: {signature(measure)}." for measure, name in ((BLEU4, "BLEU"), (CHRF, "chrF"))]


def generated_rows(
    texts: Sequence[str],
    references: Sequence[Sequence[str]],
    slice_keys: Mapping[str, str],
    *,
    seed: str,
    bleu: str = BLEU4,
) -> Iterator[Row]:
    """Yield BLEU-4 and chrF of generated texts.

    texts: the generated texts.
    references: each text's references.
    slice_keys: slice keys of the rows.
    seed: seed of the bootstrap.
    bleu: variant of BLEU-4 to report.
    """
    for measure in METRICS:
        try:
            variant = bleu if measure == BLEU4 else measure
            score = corpus_score(texts, references, seed=seed, measure=variant)
        except MissingExtra as error:
            raise EvaluationError(str(error)) from error
        yield row(measure, slice_keys, score, score.texts, NO_INTERVAL if score.low is None else "")


# --- two systems


def _comparison(graded: Sequence[Sequence[Graded]], names: Sequence[str]) -> dict[str, Any]:
    first_parts, second_parts = ({part.task: part for part in parts} for parts in graded)
    both = [task for task in first_parts if task in second_parts]
    if not both:
        raise EvaluationError(
            f"{names[0]} and {names[1]} have no task in common, so they cannot be compared. Predict the same tasks "
            "with both systems."
        )
    rows: list[Row] = []
    for task in both:
        part = first_parts[task]
        differences = [
            _difference(part, *pair) for pair in zip(part.languages, second_parts[task].languages, strict=True)
        ]
        mean, note = mean_of_rows(differences), _mean_note(differences)
        if any(difference["value"] is None for difference in differences):
            mean, note = None, "not measured in every language"
        rows += [difference_row(part.measure, part.of(), mean, None, note, None), *differences]
    return {"other": describe_system(names[1]), "rows": add_holm_p_values(rows), "test": TEXTS.words["test"]}


def _difference(part: Graded, measured_a: Measured, measured_b: Measured) -> Row:
    if part.measure == "accuracy":
        labels = part.gold.labels
        return compare_accuracy(part.of(measured_a), measured_a.pairs(labels), measured_b.pairs(labels))
    if part.measure == "ndcg":
        score = lambda sums: sums[0] / sums[1]  # noqa: E731
        first, second = (
            np.array([[value, 1.0] for value in by_query(measured.pages)[0]]).reshape(-1, 2)
            for measured in (measured_a, measured_b)
        )
    else:
        score = scores
        first, second = (
            counts(measured.predicted, [[text] for text in measured.truth]) for measured in (measured_a, measured_b)
        )
    difference, p = compare_scores(first, second, score, seed=part.seed(measured_a)) if len(first) else (None, None)
    note = "" if difference else NO_INTERVAL
    return difference_row(part.measure, part.of(measured_a), difference, len(first), note, p)


# --- files


def _file(gold: PublishedSet, task: str, language: str, split: str, *, labels: bool = False) -> Path:
    form = xglue.FORMS[task]
    part = ".tgt" if form.target else ""
    return gold.folder / form.path(language, split, part=part, mark=gold.mark, labels=labels)


def _tasks(gold: PublishedSet) -> list[str]:
    return list(gold.manifest["published"]["tasks"])


def check_sets(sets: Iterable[PublishedSet]) -> None:
    """Raise EvaluationError if a set has no test files, or if two sets are for the same task."""
    set_of: dict[str, PublishedSet] = {}
    for gold in sets:
        if refused := gold.manifest["published"]["refused"]:
            raise EvaluationError(f"The set {gold.name} in {gold.folder} has no test files. {refused}")
        for task in sorted(_tasks(gold)):
            if (other := set_of.setdefault(task, gold)) is not gold:
                raise EvaluationError(
                    f"{other.folder} and {gold.folder} are both sets for {task.upper()}, but predictions can be "
                    "for only one of them. Measure each set separately."
                )


def read_predictions(folder: Path, sets: Iterable[PublishedSet], split: str) -> list[Graded]:
    """Read the predictions for each task of the sets.

    Raise EvaluationError if they do not fit the sets.
    """
    if not folder.is_dir():
        raise EvaluationError(
            f"The folder {folder} does not exist. Specify a folder that contains a folder per task, such as QADSM."
        )
    graded = []
    for gold in sets:
        tasks = [task for task in _tasks(gold) if (folder / task.upper()).is_dir()]
        if not tasks:
            folders = " or ".join(task.upper() for task in _tasks(gold))
            raise EvaluationError(
                f"{folder} does not contain the folder {folders} with predictions for the set {gold.name}. Add one "
                f"with a file per language, such as {_tasks(gold)[0].upper()}/en{SUFFIX}."
            )
        graded += [_grade_task(folder / task.upper(), task, gold, split) for task in tasks]
    return graded


def _grade_task(folder: Path, task: str, gold: PublishedSet, split: str) -> Graded:
    form = xglue.FORMS[task]
    start, end = form.path("*", split, part=".src" if form.target else "", mark=gold.mark).split("*")
    of_gold = [name for name in gold.files if name.startswith(start) and name.endswith(end)]
    languages = sorted(name[len(start) : -len(end)] for name in of_gold)
    if not languages:
        raise EvaluationError(
            f"The set {gold.name} has no {split} rows for {task.upper()}. Export it with a share for the {split} split."
        )
    by_language = {path.name.removesuffix(SUFFIX): path for path in sorted(folder.glob(f"*{SUFFIX}"))}
    # zh-CN.prediction is used for zh if there is no zh.prediction.
    paths = {published_code(code, [code]): path for code, path in by_language.items()} | by_language
    if missing := [language for language in languages if language not in paths]:
        rows = gold.files[f"{start}{missing[0]}{end}"]
        raise EvaluationError(
            f"{folder} has no {missing[0]}{SUFFIX}, but the set {gold.name} has {rows:,} {split} rows in {missing[0]}. "
            f"Predict every language: {', '.join(languages)}."
        )
    measured = [_read_language(paths[language], task, gold, language, split) for language in languages]
    used = {paths[language] for language in languages}
    return Graded(task, gold, measured, [code for code, path in by_language.items() if path not in used])


def _read_language(path: Path, task: str, gold: PublishedSet, language: str, split: str) -> Measured:
    form, tested = xglue.FORMS[task], _file(gold, task, language, split)
    try:
        truth, groups = _truth(gold, task, language, split)
    except xglue.XglueError as error:
        raise GoldSetError(str(error)) from error
    predicted = read_lines(path, row_count=len(truth), tested=tested.name)
    if form.together:
        for number, value in enumerate(predicted, 1):
            if not math.isfinite(parse_number(value)):
                raise EvaluationError(
                    f"{path}, line {number:,}: {value[:40]!r} is not a finite number. The pages of a query are "
                    "ranked by numbers such as 3 or 0.72, highest first."
                )
    elif not form.target:
        check_labels(path, predicted, gold.labels)
    return Measured(language, truth, predicted, groups)


def _truth(gold: PublishedSet, task: str, language: str, split: str) -> tuple[list[str], list[str]]:
    """Return the label or text of each row of a file and, if the task has queries, each row's query."""
    form, tested = xglue.FORMS[task], _file(gold, task, language, split)
    if form.target:
        return [cells[0] for cells in xglue.read_xglue(tested, 1)], []
    # A test file's labels are in a separate file. In other files, the last cell of each row is the label.
    separate = split == TEST
    first = 1 if form.head and tested.name.endswith(".tsv") else 0
    rows = xglue.read_xglue(tested, form.numbered + len(form.inputs) + (not separate))[first:]
    labels = xglue.read_xglue(_file(gold, task, language, split, labels=True), 1) if separate else rows
    place = form.inputs.index(form.together) if form.together else 0
    return [cells[-1] for cells in labels], [cells[place] for cells in rows] if form.together else []
