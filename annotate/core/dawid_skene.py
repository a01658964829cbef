"""Dawid and Skene's model: labels and each annotator's errors, estimated from one another.

A second opinion beside the majority, never instead of it; where it is shown, quality/agreement.py decides.
"""

from dataclasses import dataclass

import numpy as np

from annotate.core.answers import Answers, Floats

CONVERGED = 1e-6
LONGEST = 10_000


@dataclass(frozen=True)
class Fit:
    """posterior: of each unit's true label, (U, K). confusion: of annotator a, where the truth is k, the share of
    answers l, (A, K, K); a row of zeros where a never met k. prior: the share of units with each true label, (K,).

    rounds: how many were made; converged: whether they sufficed.
    """

    posterior: Floats
    confusion: Floats
    prior: Floats
    rounds: int
    converged: bool


def fit(answers: Answers, *, tolerance: float = CONVERGED, longest: int = LONGEST) -> Fit:
    """EM from vote shares until no posterior moves by more than `tolerance`, without smoothing.

    With n_aul answers l of annotator a on unit u, from T_uk = n_.uk / n_.u. (majority's shares) in turn:

        p_k   = mean over u of T_uk                                      prior
        c_akl = sum over u of T_uk n_aul / sum over u, l of the same     confusion
        T_uk  ~ p_k product over a, l of c_akl^n_aul                     posterior, summing to 1 over k

    (Dawid and Skene 1979, Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm, Applied
    Statistics 28(1).) Nothing is random. Without smoothing an error that was never seen counts as impossible: an
    annotator of few answers is believed too much, and posteriors are nearer to 0 and 1 than they are right. A
    maximum near the votes is found, which need not be the greatest. Posteriors may tie, as votes do where nothing
    tells annotators apart; `answers.winners` names all that tie. Several answers of one annotator on one unit count
    as so many observations.
    """
    counts = answers.counts().astype(np.float64)
    (units, size), people = counts.shape, len(answers.annotators)
    if not units:
        return Fit(counts, np.zeros((people, size, size)), np.zeros(size), 0, True)
    # Answers in order of their units, so that a unit's are summed in one stretch; every unit has one at least.
    order = np.argsort(answers.unit, kind="stable")
    unit, said = answers.unit[order], answers.annotator[order] * size + answers.label[order]
    start = np.searchsorted(unit, np.arange(units))
    posterior: Floats = counts / counts.sum(axis=1, keepdims=True)
    rounds, moved = 0, np.inf
    prior, confusion = _maximise(posterior, unit, said, people)
    while moved > tolerance and rounds < longest:
        with np.errstate(divide="ignore"):  # the logarithm of 0 is minus infinity, as it should be
            likely = np.log(confusion).transpose(0, 2, 1).reshape(people * size, size)[said]
            weight = np.add.reduceat(likely, start, axis=0) + np.log(prior)
        # Never infinite: what made the errors possible was a label of this unit with a posterior above 0.
        better = np.exp(weight - weight.max(axis=1, keepdims=True))
        better /= better.sum(axis=1, keepdims=True)
        moved, posterior = float(np.abs(better - posterior).max()), better
        prior, confusion = _maximise(posterior, unit, said, people)
        rounds += 1
    return Fit(posterior, confusion, prior, rounds, moved <= tolerance)


def _maximise(posterior: Floats, unit: np.ndarray, said: np.ndarray, people: int) -> tuple[Floats, Floats]:
    """Prior and confusion, given the posterior. said: annotator and label of each answer as one number."""
    size = posterior.shape[1]
    sums = np.stack([np.bincount(said, weights=posterior[unit, k], minlength=people * size) for k in range(size)])
    given = sums.reshape(size, people, size).transpose(1, 0, 2)
    met = given.sum(axis=2, keepdims=True)
    return posterior.mean(axis=0), np.divide(given, met, out=np.zeros_like(given), where=met > 0)
