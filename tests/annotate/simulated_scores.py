"""Simulated populations of scored units, which are deliberately difficult, and their true figures.

The score of label k is softmax((log share_k + signal * x_k) / temperature), where x_k is normal and its mean is the
signal for the true label. At temperature 1 scores are calibrated; below it they are overconfident.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from annotate.core.measures.scored_units import Figure, ScoredUnits, scored_units
from annotate.core.measures.scores import (
    average_precision,
    brier_score,
    cross_entropy,
    expected_calibration_error,
    log_loss,
    manhattan_distance,
    risk_coverage,
    roc_auc,
)

POPULATION = 200_000  # number of units from which the true figures are computed; benchmarks use more
PEOPLE, SLIP = 5, 0.1  # number of people who answer each unit, and their error rate


class Population(NamedTuple):
    """units: size of a sample. shares: label shares. group: size of groups, whose units have the same label with
    probability `alike` and share half the variance of x. easy: sampling rate (the inverse of the weight) of groups
    whose first unit has a confidence of at least 0.8; all other groups are sampled."""

    units: int
    shares: tuple[float, ...] = (0.5, 0.3, 0.2)
    signal: float = 1.5
    temperature: float = 1.0
    group: int = 1
    alike: float = 0.7
    easy: float = 1.0


POPULATIONS = {
    "calibrated, 500 units": Population(500),
    "50 units": Population(50),
    "overconfident, 300 units": Population(300, temperature=0.5),
    "accuracy 0.99, 500 units": Population(500, signal=3.5),
    "label of 1%, 2,000 units": Population(2_000, shares=(0.79, 0.2, 0.01), signal=2.0),
    "label of 1%, 10,000 units": Population(10_000, shares=(0.79, 0.2, 0.01), signal=3.0),
    "60 groups of 10": Population(600, group=10),
    "weights 1 and 5, 500 units": Population(500, signal=2.5, easy=0.2),
    "label of 2%, overconfident, weights, 400 groups of 5": Population(
        2_000, shares=(0.68, 0.3, 0.02), signal=2.0, temperature=0.5, group=5, easy=0.2
    ),
}


class Sample(NamedTuple):
    """people: the shares of people's answers by label (n, k)."""

    units: ScoredUnits
    people: np.ndarray


def sample(population: Population, chance: np.random.Generator, units: int | None = None) -> Sample:
    """Return a sample. units: the number of units instead of that of the population; all then have the weight 1."""
    shares, size = np.array(population.shares), population.group
    wanted = (units or population.units) // size
    drawn = wanted if units else round(wanted / (population.easy * 0.5)) + 50
    labels = chance.choice(len(shares), drawn, p=shares).repeat(size)
    independent = chance.choice(len(shares), drawn * size, p=shares)
    truth = np.where(chance.random(drawn * size) < population.alike, labels, independent) if size > 1 else labels
    x = chance.normal(size=(drawn * size, len(shares)))
    if size > 1:
        x = (x + chance.normal(size=(drawn, len(shares))).repeat(size, axis=0)) / np.sqrt(2)
    x[np.arange(len(truth)), truth] += population.signal
    logits = (np.log(shares) + population.signal * x) / population.temperature
    scores = np.exp(logits - logits.max(axis=1, keepdims=True))
    scores /= scores.sum(axis=1, keepdims=True)
    slips = np.full((len(truth), len(shares)), SLIP / (len(shares) - 1))
    slips[np.arange(len(truth)), truth] = 1 - SLIP
    people = chance.multinomial(PEOPLE, slips) / PEOPLE
    groups = np.arange(drawn).repeat(size)
    if units:
        return Sample(scored_units(truth, scores), people)
    easy = scores.max(axis=1)[::size] >= 0.8
    chosen = np.flatnonzero(~easy | (chance.random(drawn) < population.easy))[:wanted]
    rows = np.isin(groups, chosen)
    weights = np.where(easy, 1 / population.easy, 1.0).repeat(size)
    return Sample(scored_units(truth[rows], scores[rows], weights[rows], groups[rows]), people[rows])


def figures(drawn: Sample, seed: str) -> Iterator[tuple[str, Figure]]:
    units = drawn.units
    yield "log loss", log_loss(units)
    yield "Brier score", brier_score(units)
    yield "calibration error", expected_calibration_error(units, seed=seed).error
    areas, precisions = roc_auc(units), average_precision(units)
    yield "ROC-AUC, rarest label", areas.labels[-1]
    yield "ROC-AUC, macro", areas.macro
    yield "average precision, rarest label", precisions.labels[-1]
    yield "average precision, macro", precisions.macro
    yield "risk-coverage area", risk_coverage(units).area
    yield "cross-entropy with people", cross_entropy(drawn.people, units)
    yield "Manhattan distance to people", manhattan_distance(drawn.people, units)


@cache
def true_figures(population: Population, units: int = POPULATION) -> dict[str, float]:
    return {name: figure.value for name, figure in figures(_whole(population, units), "")}


class Selection(NamedTuple):
    """The scores that select units, in ascending order, and the precision of those at each score or above."""

    scores: np.ndarray
    precisions: np.ndarray

    def precision(self, threshold: float) -> float:
        return float(self.precisions[min(np.searchsorted(self.scores, threshold), len(self.scores) - 1)])

    def coverage(self, wish: float) -> float:
        """Return the share of units above the lowest threshold with this precision; 0 if no threshold has it."""
        reached = self.precisions[: len(self.scores) * 999 // 1000] >= wish
        return 1 - float(reached.argmax()) / len(self.scores) if reached.any() else 0.0


@cache
def true_selection(population: Population, label: int | None, units: int = POPULATION) -> Selection:
    """Return the selection by the score of a label, or by the score of the whole answer if the label is None."""
    whole = _whole(population, units).units
    scores = whole.confidence if label is None else whole.scores[:, label]
    hits = whole.right if label is None else whole.truth == label
    order = np.argsort(-scores)
    precisions = hits[order].cumsum() / np.arange(1, len(order) + 1)
    return Selection(scores[order][::-1], precisions[::-1])


def _whole(population: Population, units: int) -> Sample:
    return sample(population, np.random.default_rng(2017), units)
