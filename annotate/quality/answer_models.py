"""The answers of a task that count, what models make of them, and how often both are right by true labels.

Answers count that stand, on units that may be exported. Answers to hidden gold answers do not count, nor do those of
adjudicators, who see what others said. Of the posts that detectors label, only the overlap counts: posts that two or
more people have read. Where an answer is several labels (`several` of kinds/forms/), there are no models.
"""

from collections.abc import Callable, Container, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import attrgetter
from sys import intern
from typing import Any

import numpy as np

from annotate.core.aggregation import annotator_models, latent_models
from annotate.core.aggregation.answer_table import Answers, Floats, credit, tabulate
from annotate.core.agreement import coefficients
from annotate.core.estimation.comparisons import holm, mcnemar
from annotate.core.estimation.proportions import LEVEL, SLACK, proportion
from annotate.core.measures import accuracy_by_class
from annotate.models import Judgment, Task, Transition
from corpora.core.values import matching

# What is measured on true labels beside the majority.
Fitting = Callable[..., latent_models.Fit | annotator_models.GladFit]
MODELS: Mapping[str, Fitting] = {
    "dawid_skene": annotator_models.fit_dawid_skene,
    "one_coin": annotator_models.fit_one_coin,
    "mace": annotator_models.fit_mace,
    "glad": annotator_models.fit_glad,
}


@dataclass(frozen=True, slots=True)
class Said:
    """One answer: who gave it, on which unit, and the unit's language."""

    unit: int
    annotator: int
    label: str
    language: str
    key: str
    asked: str


def values_of(task: Task, said: Iterable[Said] = ()) -> list[str]:
    """The canonical texts that are told apart; for tasks that ask about one language at a time: yes, no and und."""
    return task.kind.form.values(task.kind.statistics.compared(task), (one.label for one in said))


def answers(task: Task, *, repeats: bool = False) -> list[Said]:
    """The answers that count, ordered by language, then by unit, then as they were given."""
    kinds = [Judgment.ANSWER, *([Judgment.REPEAT] if repeats else [])]
    live = Judgment.objects.live().of_work().filter(unit__task=task, unit__known_answer="", kind__in=kinds)
    # A second person is asked there because of what the first said, so these tell nothing of how far people agree.
    live = live.exclude(unit__in=Transition.objects.filter(unit__task=task, event="named").order_by().values("unit"))
    # If records declare no language, the queue they wait in says nothing of it.
    paths = ("unit__item__language",) if task.languages else task.kind.statistics.spoken_paths
    rows = live.order_by("unit_id", "answered_at", "pk").values_list(
        "unit_id", "annotator_id", "label", "unit__asked", "unit__item__key", *paths
    )
    said, compared = [], dict[tuple[str, str], str]()
    for unit, annotator, label, asked, key, *languages in rows.iterator():
        if (asked, label) not in compared:
            compared[asked, label] = task.kind.statistics.compared_as(asked, label)
        # Of a million answers each text would else be kept as often as it was said.
        language, text = intern(next(filter(None, languages), "")), compared[asked, label]
        if said and said[-1].unit == unit:
            unit, key = said[-1].unit, said[-1].key
        said.append(Said(unit, annotator, text, language, key, intern(asked)))
    if not task.kind.statistics.counts_single:
        many = {unit for unit, group in groupby(said, attrgetter("unit")) if len(list(group)) > 1}
        said = [one for one in said if one.unit in many]
    return sorted(said, key=attrgetter("language"))  # stable: units stay together


@dataclass(frozen=True)
class Model:
    """One of MODELS, of a task: each unit's row of the posterior, (U, K), K in order of the labels; and by language
    whether and when the model of it converged."""

    rows: Mapping[Hashable, int]
    posterior: Floats
    ends: Mapping[str, tuple[int, bool]]


def modelled(task: Task, said: list[Said], labels: list[str], fit: Fitting) -> Model:
    """One model for each language if records declare languages, as people are qualified by language; else
    one in all.
    """
    parts = [list(group) for _, group in groupby(said, attrgetter("language"))] if task.languages else [said]
    rows: dict[Hashable, int] = {}
    posteriors, ends = [], {}
    for part in parts:
        table = tabled(part, labels)
        found = fit(table, seed=task.draw.seed)
        rows |= {unit: len(rows) + place for place, unit in enumerate(table.units)}
        posteriors.append(found.posterior)
        ends |= {one.language: (found.rounds, found.converged) for one in part}
    return Model(rows, np.concatenate(posteriors) if posteriors else np.zeros((0, len(labels))), ends)


def tabled(said: Iterable[Said], labels: list[str]) -> Answers:
    return tabulate(((one.unit, one.annotator, one.label) for one in said), labels)


def posterior_of(model: Model, table: Answers) -> Floats:
    posterior: Floats = model.posterior[[model.rows[unit] for unit in table.units]]
    return posterior


@dataclass(frozen=True)
class Fitted:
    """The answers of a task that count, the canonical texts that are told apart, and Dawid and Skene's model of the
    answers; None where an answer is several labels.
    """

    said: list[Said]
    labels: list[str]
    model: Model | None


def fitted(task: Task, *, repeats: bool = False, without: Container[int] = ()) -> Fitted:
    """without: units whose answers do not count."""
    said = [one for one in answers(task, repeats=repeats) if one.unit not in without]
    labels = values_of(task, said)
    several = task.kind.form.several
    return Fitted(said, labels, None if several else modelled(task, said, labels, annotator_models.fit_dawid_skene))


def second_opinions(found: Fitted) -> dict[int, dict[str, float]]:
    """Unit -> label -> its posterior by Dawid and Skene's model, for every unit with an answer; labels with 0 are left
    out. None at all where there is no model.

    Tasks of records have one model for each language, as people are qualified by language; others have one in all.
    """
    if found.model is None:
        return {}
    return _by_label(found.model.rows, found.model.posterior, found.labels)


def vote_shares(found: Fitted) -> dict[int, dict[str, float]]:
    """Unit -> label -> its share of the unit's answers, for every unit with an answer; labels with 0 are left out."""
    table = tabled(found.said, found.labels)
    counts = table.counts()
    return _by_label(table.units, counts / counts.sum(axis=1, keepdims=True), found.labels)


def _by_label(units: Iterable[Hashable], rows: Floats, labels: list[str]) -> dict[Any, dict[str, float]]:
    return {
        unit: {label: float(share) for label, share in zip(labels, shares, strict=True) if share}
        for unit, shares in zip(units, rows, strict=True)
    }


def pairs_that_agree(found: Fitted) -> dict[int, float]:
    """Unit -> the share of the pairs of its answers that are the same, for units with two answers or more."""
    table = tabled(found.said, found.labels)
    counts = table.counts()
    number = counts.sum(axis=1)
    same = (counts * (counts - 1)).sum(axis=1) / np.maximum(1, number * (number - 1))
    return {unit: float(share) for unit, share, n in zip(table.units, same, number, strict=True) if n > 1}


# --- how often, or how nearly, the label with the most votes and those of models are right, by true labels

# The measures of some of the answers, ordered by unit.
Measuring = Callable[[list[Said]], dict[str, Any]]


class UnknownLabel(ValueError):
    """A true label that is not one of the task's labels; the sentence names it."""


def against(task: Task, said: list[Said], labels: list[str], model: Model | None, gold: Mapping[str, str]) -> Measuring:
    """said: all answers. labels: the canonical texts that are told apart. model: Dawid and Skene's, None where an
    answer is several labels. gold: item -> true label. UnknownLabel if one of these is none.
    """
    if model is None:
        return partial(_closeness, task=task, truth=_true_sets(task, said, gold))
    places, table = _true_places(task, said, labels, gold), tabled(said, labels)
    known = [place for place, unit in enumerate(table.units) if unit in places]
    right = np.array([places[table.units[place]] for place in known], dtype=np.int64)
    shares = {"majority": credit(table.counts()[known], right)}
    # One model after another: of millions of answers a posterior is large.
    for name, fit in MODELS.items():
        found = model if name == "dawid_skene" else modelled(task, said, labels, fit)
        shares[name] = credit(posterior_of(found, table)[known], right)
    rows = {table.units[place]: row for row, place in enumerate(known)}
    return partial(_accuracies, rows=rows, shares=shares, sure=posterior_of(model, table)[known].max(axis=1))


def _true_places(task: Task, said: list[Said], labels: list[str], gold: Mapping[str, str]) -> dict[int, int]:
    """Unit -> the place of its true label, for units that have one."""
    places = {label: place for place, label in enumerate(labels)}
    truth = {}
    for one in said:
        if one.key in gold:
            label = matching(task.kind.statistics.compared_as(one.asked, gold[one.key]), labels)
            if label not in places:
                raise UnknownLabel(
                    f"The true label of {one.key} is {label!r}, which is not one of the task's labels: "
                    f"{', '.join(labels)}."
                )
            truth[one.unit] = places[label]
    return truth


def _accuracies(
    said: list[Said], *, rows: Mapping[Hashable, int], shares: Mapping[str, Floats], sure: Floats
) -> dict[str, Any]:
    """rows: unit -> its row, for units with a true label. shares: how right the majority and each of MODELS are of each
    row, from 0 to 1. sure: the posterior of the label that Dawid and Skene's model finds likeliest.
    """
    own = [rows[unit] for unit in dict.fromkeys(one.unit for one in said) if unit in rows]
    parts = {name: each[own] for name, each in shares.items()}
    return {
        "units": len(own),
        **{name: proportion(float(each.sum()), len(own)).as_dict() for name, each in parts.items()},
        "worse": _worse(parts),
        "sure": float(sure[own].mean()) if own else None,
    }


def _worse(shares: Mapping[str, Floats]) -> list[str]:
    """The models that are right less often than the majority, by McNemar's exact test with Holm's correction: whether
    one of the two is right more often, where they are not equally right."""
    ahead = {name: shares["majority"] - each for name, each in shares.items() if name != "majority"}
    wins = {name: (int((each > SLACK).sum()), int((each < -SLACK).sum())) for name, each in ahead.items()}
    p_values = holm([mcnemar(*both) for both in wins.values()])
    return [
        name for (name, (won, lost)), p in zip(wins.items(), p_values, strict=True) if won > lost and p <= 1 - LEVEL
    ]


def _true_sets(task: Task, said: list[Said], gold: Mapping[str, str]) -> dict[int, set[str]]:
    """Unit -> its true labels, for units that have some. There may be more of them than an answer may have."""
    form = task.kind.form
    truth = {}
    for unit, key in {one.unit: one.key for one in said if one.key in gold}.items():
        try:
            labels = form.facets(form.read([gold[key]]))
        except ValueError as error:
            raise UnknownLabel(f"The true labels of {key}: {error}") from error
        if fault := form.fault(labels, task):
            raise UnknownLabel(f"A true label of {key} is {fault}.")
        truth[unit] = set(labels)
    return truth


def _closeness(said: list[Said], *, task: Task, truth: Mapping[int, set[str]]) -> dict[str, Any]:
    """The F1 of the labels that most people chose, in the mean of the units with true labels."""
    form = task.kind.form
    found = []
    for unit, group in groupby(said, attrgetter("unit")):
        if unit in truth:
            majority = form.aggregations["majority"]([one.label for one in group])
            found.append(coefficients.f1(set(form.facets(majority)), truth[unit]) if majority else 0.0)
    return {
        "units": len(found),
        "majority": accuracy_by_class.mean([accuracy_by_class.Drawn(1.0, np.array(found))]).as_dict(),
    }
