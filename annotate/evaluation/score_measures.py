"""What a system's scores are worth, if it gives a probability to each label: calibration, ranking, thresholds.

The measures are those of core/measures/scores.py and core/selective_prediction.py; here they become rows and curves.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from annotate.core.aggregation.answer_table import Floats
from annotate.core.measures import scores as measures
from annotate.core.measures.classification import Paired
from annotate.core.measures.figure_rows import Row, difference_row, why_withheld
from annotate.core.measures.scored_units import Figure, ScoredUnits, scored_units
from annotate.core.measures.scores import RiskCoverage, precision_threshold, risk_coverage
from annotate.reports.evaluation_report import section

WISHES = (0.9, 0.95, 0.99)  # precision for which a threshold is sought
COVERAGES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)  # shares of the units that a system answers, at which accuracy is shown
MOST_LABELS = 10  # whose thresholds are sought one by one
SECTIONS = (
    section("scores-by-label", "Ranking by the scores of a label", "label", "roc_auc average_precision"),
    section(
        "thresholds",
        "Thresholds for a wished precision",
        "answers wished",
        "threshold reached_precision recall_there coverage_there",
        drawn=0,
    ),
    section(
        "coverage", "Accuracy where only confident answers count", "coverage", "least_score accuracy_there", drawn=0
    ),
)
READING = (
    "Log loss is the mean of minus the natural logarithm of the score of the gold label; the Brier score is the mean "
    "squared difference of scores and truth, added up over labels, from 0 to 2; the expected calibration error is the "
    "mean distance of confidence and accuracy over 15 bins (Guo et al. 2017). All three are 0 at best. A score of 0 "
    "for the gold label counts as the smallest number that a computer tells from 0, as in scikit-learn.",
    "ROC-AUC is the chance that a unit with the label has a higher score for it than one without. Average precision "
    "is the mean of the precision at each unit that has the label, ranked by its scores.",
    "A threshold is the lowest score from which on answers are as precise as wished, with 95% confidence although it "
    "was chosen on these very units (fixed sequence testing: Angelopoulos et al. 2021).",
)


def scored(pairs: Paired, table: Floats, votes: Sequence[Mapping[str, float]], labels: Sequence[str], seed: str) -> Any:
    """Rows, sections and curves on the scores of the units. table: (n, K); votes: the shares of people's answers."""
    units = scored_units(pairs.gold, table, pairs.weights, pairs.groups)
    calibration = measures.expected_calibration_error(units, seed=seed)
    selective = risk_coverage(units)
    number = len(pairs.gold)
    whole = {
        "log_loss": measures.log_loss(units),
        "brier": measures.brier_score(units),
        "ece": calibration.error,
        "aurc": selective.area,
    }
    rows = [of_figure(name, {}, found, number) for name, found in whole.items()]
    rows += _by_label(units, labels)
    rows += _with_people(pairs, table, votes, labels)
    rows += _thresholds(units, labels)
    rows += _at_coverages(selective, number)
    bins = [
        {
            "confidence": each.confidence,
            "accuracy": each.accuracy.value,
            "low": each.accuracy.low,
            "high": each.accuracy.high,
            "units": each.units,
            "note": each.accuracy.reason,
        }
        for each in calibration.bins
        if each.units
    ]
    curve = [{"coverage": point.coverage, "accuracy": point.accuracy} for point in selective.points]
    return {"rows": rows, "sections": list(SECTIONS), "reading": list(READING), "reliability": bins, "coverage": curve}


def losses(pairs: Paired, table: Floats) -> Iterator[Row]:
    """The losses in which two systems are compared, of one of them."""
    units = scored_units(pairs.gold, table, pairs.weights, pairs.groups)
    for name, measure in (("log_loss", measures.log_loss), ("brier", measures.brier_score)):
        yield of_figure(name, {}, measure(units), len(pairs.gold))


def scores_apart(pairs: Paired, first: Floats, second: Floats) -> Iterator[Row]:
    """How far two systems are apart in the losses of their scores."""
    sides = (scored_units(pairs.gold, table, pairs.weights, pairs.groups) for table in (first, second))
    for name, (found, p) in measures.losses_apart(*sides).items():
        units = len(pairs.gold)
        yield difference_row(name, {}, found, units, why_withheld(found, units, pairs), p)


def of_figure(measure: str, of: Mapping[str, str], found: Figure, units: int, note: str = "") -> Row:
    return {
        "measure": measure, "of": dict(of), "value": found.value, "low": found.low, "high": found.high,
        "units": units, "count": None, "note": note or found.reason,
    }  # fmt: skip


def _by_label(units: ScoredUnits, labels: Sequence[str]) -> Iterator[Row]:
    number = len(units.rows)
    for name, measure in (("roc_auc", measures.roc_auc), ("average_precision", measures.average_precision)):
        found = measure(units)
        yield of_figure(f"macro_{name}", {}, found.macro, number)
        for label, figure in zip(labels, found.labels, strict=True):
            yield of_figure(name, {"label": label}, figure, number)


def _with_people(
    pairs: Paired, table: Floats, votes: Sequence[Mapping[str, float]], labels: Sequence[str]
) -> Iterator[Row]:
    """How far the scores are from the distribution of people's answers, where several people answered."""
    shares = np.array([[each.get(label, 0.0) for label in labels] for each in votes])
    # One person's answer is no distribution; of several that all agree it is one.
    several = np.flatnonzero(np.abs(shares.sum(axis=1) - 1) <= 1e-3) if len(shares) else np.array([], dtype=int)
    if not len(several) or max(len(each) for each in votes) < 2:
        return
    part = scored_units(
        pairs.gold[several],
        table[several],
        pairs.weights[several],
        None if pairs.groups is None else pairs.groups[several],
    )
    for name, measure in (("cross_entropy", measures.cross_entropy), ("manhattan", measures.manhattan_distance)):
        yield of_figure(name, {}, measure(shares[several], part), len(several))


def _thresholds(units: ScoredUnits, labels: Sequence[str]) -> Iterator[Row]:
    answers: dict[str, int | None] = {"all": None}
    if len(labels) <= MOST_LABELS:
        answers |= {label: place for place, label in enumerate(labels)}
    for name, place in answers.items():
        for wish in WISHES:
            found, of = precision_threshold(units, wish, place), {"answers": name, "wished": f"{wish:.0%}"}
            yield of_figure(
                "threshold", of, Figure(found.value), len(units.rows), found.reason and f"at {wish:.0%}: {found.reason}"
            )
            if found.value is not None:
                yield of_figure("reached_precision", of, found.precision, len(units.rows))
                yield of_figure("recall_there", of, Figure(found.recall), len(units.rows))
                yield of_figure("coverage_there", of, Figure(found.coverage), len(units.rows))


def _at_coverages(found: RiskCoverage, number: int) -> Iterator[Row]:
    """The threshold and the accuracy at some shares of answered units: the first point that reaches each."""
    for wanted in COVERAGES:
        point = next((each for each in found.points if each.coverage >= wanted - 1e-9), None)
        if point:
            of = {"coverage": f"{wanted:.0%}"}
            yield of_figure("least_score", of, Figure(point.threshold), round(point.coverage * number))
            yield of_figure("accuracy_there", of, Figure(point.accuracy), round(point.coverage * number))
