"""What true labels say of the answers of a task: how often, or how nearly, the label with the most votes is right, and
how often the models are.

agreement.py decides whose answers count; the models are those of modelled.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np

from annotate.core import by_class, label_sets
from annotate.core.answers import Answers, Floats, Ints, credit
from annotate.core.estimation import proportion
from annotate.kinds.kind import ENGLISH
from annotate.models import Task
from annotate.quality.modelled import MODELS, Model, Said, modelled, posterior_of, tabled
from corpora.vocabularies import names_in

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
    others = {name: modelled(task, said, labels, fit) for name, fit in MODELS.items() if name != "dawid_skene"}
    truth = _Truth(_true_places(task, said, labels, gold), {"dawid_skene": model, **others})
    return lambda part: _accuracies(tabled(part, labels), truth)


# --- where an answer is one label


@dataclass(frozen=True)
class _Truth:
    """places: unit -> the place of its true label, for units that have one. models: by name, fitted without these."""

    places: Mapping[int, int]
    models: Mapping[str, Model]


def _true_places(task: Task, said: list[Said], labels: list[str], gold: Mapping[str, str]) -> dict[int, int]:
    """Unit -> the place of its true label, for units that have one."""
    places = {label: place for place, label in enumerate(labels)}
    truth = {}
    for one in said:
        if one.key in gold:
            label = task.kind.compared_as(one.asked, gold[one.key])
            if label not in places:
                raise UnknownLabel(
                    f"The true label of {one.key} is {label!r}, which is not one of the task's labels: "
                    f"{', '.join(labels)}."
                )
            truth[one.unit] = places[label]
    return truth


def _accuracies(table: Answers, truth: _Truth) -> dict[str, Any]:
    known = [place for place, unit in enumerate(table.units) if unit in truth.places]
    right = np.array([truth.places[table.units[place]] for place in known], dtype=np.int64)
    weights: dict[str, Ints | Floats] = {"majority": table.counts()[known]}
    weights |= {name: posterior_of(model, table)[known] for name, model in truth.models.items()}
    shares = {name: credit(each, right) for name, each in weights.items()}
    return {
        "units": len(known),
        **{name: proportion(float(share.sum()), len(known)).as_dict() for name, share in shares.items()},
        "sure": float(weights["dawid_skene"].max(axis=1).mean()) if known else None,
    }


# --- where an answer is several labels


def _true_sets(task: Task, said: list[Said], gold: Mapping[str, str]) -> dict[int, set[str]]:
    """Unit -> its true labels, for units that have some. There may be more of them than an answer may have."""
    form, vocabulary = task.kind.form, task.kind.thesaurus.version
    there = names_in(vocabulary, ENGLISH)
    truth = {}
    for unit, key in {one.unit: one.key for one in said if one.key in gold}.items():
        try:
            labels = form.facets(form.read([gold[key]]))
        except ValueError as error:
            raise UnknownLabel(f"The true labels of {key}: {error}") from error
        if unknown := [label for label in labels if label not in there]:
            raise UnknownLabel(f"A true label of {key} is {unknown[0]!r}, which is not a concept of {vocabulary}.")
        truth[unit] = set(labels)
    return truth


def _closeness(task: Task, said: list[Said], truth: Mapping[int, set[str]]) -> dict[str, Any]:
    """The F1 of the labels that most people chose, in the mean of the units with true labels."""
    form = task.kind.form
    found = []
    for unit, group in groupby(said, attrgetter("unit")):
        if unit in truth:
            majority = form.AGGREGATIONS["majority"]([one.label for one in group])
            found.append(label_sets.f1(set(form.facets(majority)), truth[unit]) if majority else 0.0)
    return {"units": len(found), "majority": by_class.mean([by_class.Drawn(1.0, np.array(found))]).as_dict()}
