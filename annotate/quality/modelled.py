"""What models of their answers make of a task. Reads nothing.

The models are in core/; agreement.py decides whose answers count, and true_labels.py says how often models are right.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

import numpy as np

from annotate.core.aggregation import annotator_models, latent_models
from annotate.core.aggregation.answer_table import Answers, Floats, tabulate
from annotate.models import Task

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
