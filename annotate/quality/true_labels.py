"""What true labels say of the answers of a task: how often, or how nearly, the label with the most votes is right, and
how often the models are.

agreement.py decides whose answers count; the models are those of modelled.py.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np

from annotate.core.aggregation.answer_table import Floats, credit
from annotate.core.agreement import label_sets
from annotate.core.estimation.comparisons import holm, mcnemar
from annotate.core.estimation.proportions import LEVEL, SLACK, proportion
from annotate.core.measures import accuracy_by_class
from annotate.models import Task
from annotate.quality.modelled import MODELS, Model, Said, modelled, posterior_of, tabled
from corpora.core.values import matching

# What is told of some of the answers, ordered by unit.
Measuring = Callable[[list[Said]], dict[str, Any]]


class UnknownLabel(ValueError):
    """A true label that is not one of the task's labels; the sentence names it."""


def against(task: Task, said: list[Said], labels: list[str], model: Model | None, gold: Mapping[str, str]) -> Measuring:
    """said: all answers. labels: the canonical texts that are told apart. model: Dawid and Skene's, None where an
    answer is several labels. gold: item -> true label. UnknownLabel if one of these is none.
    """
    if model is None:
        known = _true_sets(task, said, gold)
        return lambda part: _closeness(task, part, known)
    truth = _truth(task, said, labels, model, _true_places(task, said, labels, gold))
    return lambda part: _accuracies(part, truth)


# --- where an answer is one label


@dataclass(frozen=True)
class _Truth:
    """rows: unit -> its row, for units with a true label. shares: how right the majority and each of MODELS are of each
    row, from 0 to 1. sure: the posterior of the label that Dawid and Skene's model finds likeliest.
    """

    rows: Mapping[Hashable, int]
    shares: Mapping[str, Floats]
    sure: Floats


def _truth(task: Task, said: list[Said], labels: list[str], model: Model, places: Mapping[int, int]) -> _Truth:
    """One model after another, each without these labels: of millions of answers a posterior is large. model: Dawid and
    Skene's. places: _true_places.
    """
    table = tabled(said, labels)
    known = [place for place, unit in enumerate(table.units) if unit in places]
    right = np.array([places[table.units[place]] for place in known], dtype=np.int64)

    def share(found: Model) -> Floats:
        return credit(posterior_of(found, table)[known], right)

    return _Truth(
        rows={table.units[place]: row for row, place in enumerate(known)},
        shares={
            "majority": credit(table.counts()[known], right),
            "dawid_skene": share(model),
            **{name: share(modelled(task, said, labels, fit)) for name, fit in MODELS.items() if name != "dawid_skene"},
        },
        sure=posterior_of(model, table)[known].max(axis=1),
    )


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


def _accuracies(said: list[Said], truth: _Truth) -> dict[str, Any]:
    rows = [truth.rows[unit] for unit in dict.fromkeys(one.unit for one in said) if unit in truth.rows]
    shares = {name: each[rows] for name, each in truth.shares.items()}
    return {
        "units": len(rows),
        **{name: proportion(float(each.sum()), len(rows)).as_dict() for name, each in shares.items()},
        "worse": _worse(shares),
        "sure": float(truth.sure[rows].mean()) if rows else None,
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


# --- where an answer is several labels


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


def _closeness(task: Task, said: list[Said], truth: Mapping[int, set[str]]) -> dict[str, Any]:
    """The F1 of the labels that most people chose, in the mean of the units with true labels."""
    form = task.kind.form
    found = []
    for unit, group in groupby(said, attrgetter("unit")):
        if unit in truth:
            majority = form.aggregations["majority"]([one.label for one in group])
            found.append(label_sets.f1(set(form.facets(majority)), truth[unit]) if majority else 0.0)
    return {
        "units": len(found),
        "majority": accuracy_by_class.mean([accuracy_by_class.Drawn(1.0, np.array(found))]).as_dict(),
    }
