"""A task's valid answers, annotator models fitted to them, and the accuracy of the majority and of the models.

An answer is valid here if it was not voided and its unit can be exported. Answers to hidden gold items are excluded,
and so are adjudicators' decisions, because adjudicators see other annotators' answers. In tasks about the language of
posts, units with a single annotator are excluded too. If answers are label sets (`several` in kinds/forms/form.py), no
models are fitted.
"""

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from annotate.core.aggregation import annotator_models
from annotate.core.aggregation.answer_table import Answers, Bools, Floats, Ints, credit
from annotate.core.agreement import coefficients
from annotate.core.estimation.differences import holm, mcnemar
from annotate.core.estimation.proportions import LEVEL, SLACK, proportion
from annotate.core.measures import classification
from annotate.models import Judgment, Task, Transition
from corpora.core.arrow import pc
from corpora.core.values import matching
from corpora.database.bulk_rows import fetch_all, map_rows

Number = TypeVar("Number", np.float64, np.int64)
READ = 10_000  # number of answers to read from the database at a time
# Models whose accuracy is measured with true labels and compared with that of the majority.
FitFunction = Callable[..., annotator_models.Fit | annotator_models.GladFit]
MODELS: Mapping[str, FitFunction] = {
    "dawid_skene": annotator_models.fit_dawid_skene,
    "one_coin": annotator_models.fit_one_coin,
    "mace": annotator_models.fit_mace,
    "glad": annotator_models.fit_glad,
}


class Response(NamedTuple):
    """A valid answer.

    unit: key of the unit.
    annotator: key of the annotator.
    label: canonical text of the answer, which is compared with other answers.
    language: the unit's language; "" if it is unknown.
    key: id of the unit's item.
    question_language: language that the question asks about; "" if it asks about none.
    """

    unit: int
    annotator: int
    label: str
    language: str
    key: str
    question_language: str


@dataclass(frozen=True, eq=False)
class Responses:
    """Valid answers, ordered by language, unit and time.

    rows: a row for each answer, with the fields of a Response as columns.
    """

    rows: pa.RecordBatch

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def __iter__(self) -> Iterator[Response]:
        return map(Response, *(column.to_pylist() for column in self.rows.columns))

    @property
    def unit(self) -> Ints:
        units: Ints = self.rows["unit"].to_numpy()
        return units

    def where(self, mask: Bools) -> "Responses":
        return Responses(self.rows.filter(pa.array(mask)))

    def without(self, units: Collection[int]) -> "Responses":
        return self.where(~np.isin(self.unit, [*units])) if units else self

    def by_language(self) -> Iterator[tuple[str, "Responses"]]:
        counts = self.rows["language"].value_counts()
        starts = np.cumsum([0, *counts.field("counts").to_pylist()])
        for language, start, end in zip(counts.field("values").to_pylist(), starts, starts[1:], strict=False):
            yield language, Responses(self.rows.slice(start, end - start))


def values_of(task: Task, responses: Responses | None = None) -> list[str]:
    """Return the distinct canonical texts of answers.

    In tasks that ask about one language at a time, these are `yes`, `no` and `und`.

    responses: answers; needed only if the task does not determine the possible texts.
    """
    texts = [] if responses is None else pc.unique(responses.rows["label"]).to_pylist()
    return task.kind.form.values(task.kind.statistics.compared(task), texts)


def answers(task: Task, *, repeats: bool = False) -> Responses:
    """Return the task's valid answers.

    repeats: whether to include an annotator's repeated answers to the same unit, which imported files may contain.
    """
    statistics, text = task.kind.statistics, pa.string()
    kinds = [Judgment.ANSWER, *([Judgment.REPEAT] if repeats else [])]
    live = Judgment.objects.live().of_work().filter(unit__task=task, unit__known_answer="", kind__in=kinds)
    # Exclude units that went to a second annotator because of the first answer. They would bias agreement.
    live = live.exclude(unit__in=Transition.objects.filter(unit__task=task, event="named").order_by().values("unit"))
    # If items don't declare their language, it can't be taken from their queue either.
    paths = ("unit__item__language",) if task.languages else statistics.spoken_paths
    fields = dict.fromkeys(("unit", "annotator"), pa.int64())
    fields |= dict.fromkeys(("label", "unit__asked", "unit__item__key", *paths), text)
    rows = fetch_all(live.order_by("unit_id", "answered_at", "pk"), fields, READ)
    if not statistics.counts_single:
        units = rows["unit"].to_numpy()
        _, place, number = np.unique(units, return_inverse=True, return_counts=True)
        rows = rows.filter(pa.array(number[place] > 1))
    question_language = rows["unit__asked"]
    languages = [rows[path] for path in paths] or [pa.repeat("", len(rows))]
    language = map_rows(lambda *spoken: next(filter(None, spoken), ""), text, *languages)
    label = map_rows(statistics.compared_as, text, question_language, rows["label"])
    columns = [rows["unit"], rows["annotator"], label, language, rows["unit__item__key"], question_language]
    # The sort is stable, so the answers to a unit stay together.
    order = np.argsort(np.array(language.to_pylist(), dtype=np.str_), kind="stable")
    return Responses(pa.RecordBatch.from_arrays(columns, names=Response._fields).take(pa.array(order)))


@dataclass(frozen=True)
class Model:
    """One of MODELS, fitted to a task's answers.

    rows: row in `posterior` by unit key.
    posterior: posterior probability of each label for each unit (U, K); columns are in the order of the labels.
    ends: number of rounds of the fit, and whether it converged, by language.
    """

    rows: Mapping[Hashable, int]
    posterior: Floats
    ends: Mapping[str, tuple[int, bool]]


def fit_model(task: Task, responses: Responses, labels: list[str], fit: FitFunction) -> Model:
    """Fit a model to a task's answers.

    If items declare their languages, each language has its own model, because annotators qualify for each language
    separately. Otherwise, one model is fitted to all answers.
    """
    parts = [part for _, part in responses.by_language()] if task.languages else [responses]
    rows: dict[Hashable, int] = {}
    posteriors: list[Floats] = []
    ends: dict[str, tuple[int, bool]] = {}
    for part in parts:
        table = encode_answers(part, labels)
        result = fit(table, seed=task.draw.seed)
        rows |= {unit: len(rows) + index for index, unit in enumerate(table.units)}
        posteriors.append(result.posterior)
        ends |= {language: (result.rounds, result.converged) for language, _ in part.by_language()}
    return Model(rows, np.concatenate(posteriors) if posteriors else np.zeros((0, len(labels))), ends)


def encode_answers(responses: Responses, labels: Sequence[str]) -> Answers:
    """Encode answers as indices of units, annotators and labels.

    Units and annotators are numbered in order of first appearance.

    labels: all possible labels. Grades must be in ascending or descending order.

    Raise ValueError if an answer is not one of the labels.
    """
    encoded = [responses.rows[name].dictionary_encode() for name in ("unit", "annotator", "label")]
    units, annotators, texts = (tuple(column.dictionary.to_pylist()) for column in encoded)
    unit, annotator, text = (column.indices.to_numpy().astype(np.int64) for column in encoded)
    places = {label: place for place, label in enumerate(labels)}
    if unknown := [label for label in texts if label not in places]:
        raise ValueError(f"{unknown[0]!r} is not one of the labels {', '.join(labels)}.")
    label = np.array([places[label] for label in texts], np.int64)[text]
    return Answers(units, annotators, tuple(labels), unit, annotator, label)


def posterior_of(model: Model, table: Answers) -> Floats:
    posterior: Floats = model.posterior[[model.rows[unit] for unit in table.units]]
    return posterior


@dataclass(frozen=True)
class FittedAnswers:
    """A task's answers, and Dawid and Skene's model fitted to them.

    responses: valid answers.
    labels: the distinct canonical texts.
    model: the model; None if answers are label sets.
    """

    responses: Responses
    labels: list[str]
    model: Model | None

    def counts_of(self, units: Collection[int]) -> Ints:
        """Return the number of answers by unit and label, (N, K)."""
        return _rows_of(*self._counts, units)

    @cached_property
    def _counts(self) -> tuple[Ints, Mapping[Hashable, int]]:
        table = encode_answers(self.responses, self.labels)
        return table.counts(), {unit: row for row, unit in enumerate(table.units)}


def fit_answers(task: Task, *, repeats: bool = False, without: Collection[int] = ()) -> FittedAnswers:
    """Read a task's answers, and fit Dawid and Skene's model to them.

    repeats: whether to include an annotator's repeated answers to the same unit.
    without: keys of units to leave out.
    """
    responses = answers(task, repeats=repeats).without(without)
    labels = values_of(task, responses)
    several = task.kind.form.several
    return FittedAnswers(
        responses, labels, None if several else fit_model(task, responses, labels, annotator_models.fit_dawid_skene)
    )


def label_posteriors(fit: FittedAnswers, units: Collection[int]) -> Floats:
    """Return each label's posterior under Dawid and Skene's model, (N, K); 0 for units without answers."""
    if fit.model is None:
        return np.zeros((len(units), len(fit.labels)))
    return _rows_of(fit.model.posterior, fit.model.rows, units)


def vote_shares(fit: FittedAnswers, units: Collection[int]) -> Floats:
    """Return each label's share of the answers to each unit, (N, K); 0 for units without answers."""
    counts = fit.counts_of(units)
    shares: Floats = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    return shares


def agreement_shares(fit: FittedAnswers, units: Collection[int]) -> Floats:
    """Return the share of agreeing pairs among each unit's answers, (N,); NaN for units with fewer than two answers."""
    counts = fit.counts_of(units)
    number = counts.sum(axis=1)
    same = (counts * (counts - 1)).sum(axis=1) / np.maximum(1, number * (number - 1))
    return np.where(number > 1, same, np.nan)


def _rows_of(table: NDArray[Number], rows: Mapping[Hashable, int], units: Collection[int]) -> NDArray[Number]:
    """Return the table's rows for these units. Units that are not in the table get rows of zeros.

    rows: row in the table by unit key.
    """
    places = np.array([rows.get(unit, -1) for unit in units], np.intp)
    result = np.zeros((len(units), table.shape[1]), table.dtype)
    result[places >= 0] = table[places[places >= 0]]
    return result


# --- Accuracy of the majority and of models, measured with true labels

# A function that takes a subset of the answers, ordered by unit, and returns their measures.
MeasureFunction = Callable[[Responses], dict[str, Any]]


class UnknownLabel(ValueError):
    """Raised if a true label is not one of the task's labels. The message names the label."""


def gold_measure(
    task: Task, responses: Responses, labels: list[str], model: Model | None, gold: Mapping[str, str]
) -> MeasureFunction:
    """Return a function that compares a subset of the answers with true labels.

    responses: all answers.
    labels: the distinct canonical texts.
    model: Dawid and Skene's model; None if answers are label sets.
    gold: true label by item id.

    Raise UnknownLabel if a true label is not one of the task's labels.
    """
    if model is None:
        return partial(_mean_f1, task=task, truth=_true_sets(task, responses, gold))
    label_indices, table = _true_indices(task, responses, labels, gold), encode_answers(responses, labels)
    labelled_rows = [index for index, unit in enumerate(table.units) if unit in label_indices]
    true_indices = np.array([label_indices[table.units[index]] for index in labelled_rows], dtype=np.int64)
    shares = {"majority": credit(table.counts()[labelled_rows], true_indices)}
    # Keep only one other model in memory at a time, because the posterior for millions of answers is large.
    for name, fit in MODELS.items():
        fitted_model = model if name == "dawid_skene" else fit_model(task, responses, labels, fit)
        shares[name] = credit(posterior_of(fitted_model, table)[labelled_rows], true_indices)
    rows = {table.units[index]: row for row, index in enumerate(labelled_rows)}
    posteriors = posterior_of(model, table)[labelled_rows].max(axis=1)
    return partial(_accuracies, rows=rows, shares=shares, posteriors=posteriors)


def _true_indices(task: Task, responses: Responses, labels: list[str], gold: Mapping[str, str]) -> dict[int, int]:
    """Return the true label's index in `labels`, by unit key. Units without a true label are left out."""
    indices = {label: index for index, label in enumerate(labels)}
    truth = {}
    for response in responses:
        if response.key in gold:
            label = matching(task.kind.statistics.compared_as(response.question_language, gold[response.key]), labels)
            if label not in indices:
                raise UnknownLabel(
                    f"The true label of {response.key} is {label!r}, which is not one of the task's labels: "
                    f"{', '.join(labels)}."
                )
            truth[response.unit] = indices[label]
    return truth


def _accuracies(
    responses: Responses, *, rows: Mapping[Hashable, int], shares: Mapping[str, Floats], posteriors: Floats
) -> dict[str, Any]:
    """Return the accuracy of the majority and of each model on the units that have answers.

    responses: a subset of the answers.
    rows: row by unit key, for units with a true label.
    shares: score of the majority and of each of MODELS by row, from 0 to 1. The score is a fraction if several labels
        tie and one of them is right.
    posteriors: posterior of the most likely label under Dawid and Skene's model, by row.
    """
    answered_rows = [rows[unit] for unit in dict.fromkeys(responses.unit.tolist()) if unit in rows]
    parts = {name: share[answered_rows] for name, share in shares.items()}
    return {
        "units": len(answered_rows),
        **{name: proportion(float(share.sum()), len(answered_rows)).as_dict() for name, share in parts.items()},
        "worse": _worse(parts),
        "sure": float(posteriors[answered_rows].mean()) if answered_rows else None,
    }


def _worse(shares: Mapping[str, Floats]) -> list[str]:
    """Return the names of models that are significantly less accurate than the majority.

    McNemar's exact test compares each model with the majority on the units where their scores differ. The p-values are
    corrected by Holm's method.
    """
    differences = {name: shares["majority"] - share for name, share in shares.items() if name != "majority"}
    wins = {name: (int((share > SLACK).sum()), int((share < -SLACK).sum())) for name, share in differences.items()}
    p_values = holm([mcnemar(*counts) for counts in wins.values()])
    return [
        name for (name, (won, lost)), p in zip(wins.items(), p_values, strict=True) if won > lost and p <= 1 - LEVEL
    ]


def _true_sets(task: Task, responses: Responses, gold: Mapping[str, str]) -> dict[int, set[str]]:
    """Return the set of true labels by unit key, for units with true labels.

    A unit can have more true labels than an answer is allowed to contain.
    """
    form = task.kind.form
    truth = {}
    for unit, key in {response.unit: response.key for response in responses if response.key in gold}.items():
        try:
            labels = form.facets(form.read([gold[key]]))
        except ValueError as error:
            raise UnknownLabel(f"The true labels of {key}: {error}") from error
        if fault := form.fault(labels, task):
            raise UnknownLabel(f"A true label of {key} is {fault}.")
        truth[unit] = set(labels)
    return truth


def _mean_f1(responses: Responses, *, task: Task, truth: Mapping[int, set[str]]) -> dict[str, Any]:
    """Return the mean F1 of the labels chosen by a majority, over units with true labels."""
    form = task.kind.form
    scores = []
    for unit, group in groupby(responses, attrgetter("unit")):
        if unit in truth:
            majority = form.aggregations["majority"]([response.label for response in group], (), 0)
            scores.append(coefficients.f1(set(form.facets(majority)), truth[unit]) if majority else 0.0)
    return {
        "units": len(scores),
        "majority": classification.mean([classification.ClassSample(1.0, np.array(scores))]).as_dict(),
    }
