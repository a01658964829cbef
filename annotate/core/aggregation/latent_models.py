"""Maximum likelihood estimation, by EM from many starts, for models in which each unit has a hidden true label.

In these models, an answer depends only on the annotator and on the true label. annotator_models.py defines what each
model assumes about annotators. Let n_aul be the number of answers l of annotator a on unit u, p_k the share of units
with true label k, and c_akl the probability that a answers l on such a unit. Then

    likelihood = product over u of sum over k of p_k product over a, l of c_akl^n_aul
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import scipy  # loads its subpackages on first use

from annotate.core.aggregation.answer_table import Answers, Floats
from annotate.core.draws.hash_order import lot
from annotate.core.estimation.proportions import SLACK

# Starts are made in batches of BATCH. There are no further batches once FURTHER starts in a row have raised the best
# log-likelihood by no more than GAIN, or after MOST starts. If FURTHER starts would have to process more than BREADTH
# numbers in a round (answers times labels, or probabilities), there is a single batch of as many starts as fit, but at
# least FEWEST.
BATCH, FURTHER, MOST, GAIN = 24, 48, 240, 0.01
FEWEST, BREADTH = 2, 3_000_000
SHAPE = 0.5  # shape of the gamma distribution of annotator weights in a start
NOISE = 0.1
# The starts take these initial heats in turn. The heat then rises to 1 in STEPS steps, with PER_STEP rounds at each
# step.
HEATS = (1.0, 0.8, 0.65, 0.5)
STEPS, PER_STEP = 8, 8
# After that, each of these shares of the starts, the best ones, continues for this number of rounds. Finally, the best
# start continues until it converges.
TRIALS = ((1.0, 30), (0.25, 100))
CONVERGED = 1e-9
LONGEST = 10_000
# How many numbers an E step processes at once, so that they fit in the processor cache.
BLOCK = 2**17
# Two maxima count as the same if their posteriors differ by less than this on average.
ALIKE = 0.01


Table = Any  # a sparse array; scipy has no types for it
Point = tuple[Floats, Floats]  # the parameters p, (S, K), and c, (A, L, S, K)


@dataclass(frozen=True)
class Model:
    """A model of the annotators.

    chances: function that returns c, given the expected counts of answers and the previous c. All three are arrays by
        annotator, answer, start and true label, (A, L, S, K).
    uniform: whether p is fixed at 1/K instead of estimated.
    """

    chances: Callable[[Floats, Floats], Floats]
    uniform: bool = False


@dataclass(frozen=True)
class Fit:
    """A fitted model.

    posterior: posterior probability of each true label, by unit, (U, K).
    confusion: probability of each answer by annotator and true label, (A, K, K).
    prior: share of units with each true label, (K,).
    likelihood: log-likelihood of prior and confusion.
    rounds: number of EM rounds with which the best start ended.
    converged: whether EM converged within these rounds.
    """

    posterior: Floats
    confusion: Floats
    prior: Floats
    likelihood: float
    rounds: int
    converged: bool


@dataclass(frozen=True)
class Climb:
    """The state of EM for each of S starts.

    posterior: posterior probability of each true label, by unit and start, (U, S, K).
    prior: p, (S, K).
    chances: c, (A, L, S, K).
    likelihood: log-likelihood, (S,).
    rounds: number of EM rounds in the last call.
    converged: whether EM converged within these rounds.
    """

    posterior: Floats
    prior: Floats
    chances: Floats
    likelihood: Floats
    rounds: int = 0
    converged: bool = False

    def of(self, starts: list[int]) -> "Climb":
        """Return the state of the selected starts."""
        return Climb(
            # The result is contiguous in memory. Otherwise, every multiplication would copy it.
            np.take(self.posterior, starts, axis=1),
            self.prior[starts],
            self.chances[:, :, starts],
            self.likelihood[starts],
            self.rounds,
            self.converged,
        )

    def best(self) -> Fit:
        """Return the fit of the first start. This is the best one, because the starts are sorted."""
        confusion = self.chances[:, :, 0].transpose(0, 2, 1)
        likelihood = float(self.likelihood[0])
        return Fit(self.posterior[:, 0], confusion, self.prior[0], likelihood, self.rounds, self.converged)


def maxima(
    answers: Answers, model: Model, *, seed: str = "", tolerance: float = CONVERGED, longest: int = LONGEST
) -> Climb:
    """Find the distinct maxima of the likelihood, best first.

    The first starts take the vote shares as the initial posterior, one at each heat. The other starts weight the
    annotators' votes. The weights are drawn again for each start, from a gamma distribution that gives most of the
    weight to a few annotators. Every second start also gets noise. At heat h < 1, the E step raises the likelihood
    terms to the power h, so that no label is ruled out early. The heat rises to 1 in steps (Ueda and Nakano 1998,
    Deterministic Annealing EM Algorithm, Neural Networks 11(2)).

    The best start continues until three rounds add less than `tolerance` per answer to the log-likelihood, or for
    `longest` rounds. The other starts do not continue, because they are close to their maxima by then.

    The result does not depend on the names of labels or the number of cores. It does depend on the order of the
    answers.
    """
    if not answers.units:
        return replace(next(_batches(answers, seed))[0].of([0]), converged=True)
    return _each_once(_named(_climbed(answers, model, seed, tolerance, longest), _votes(answers)))


def _climbed(answers: Answers, model: Model, seed: str, tolerance: float, longest: int) -> Climb:
    """Return the final states of all starts, best first."""
    table, enough = _table(answers), tolerance * len(answers.unit)
    climbs: list[Climb] = []
    greatest, since = -np.inf, 0
    for now, heat in _batches(answers, seed):
        for step in range(STEPS):
            now = _climb(table, model, now, PER_STEP, enough, heat ** (1 - step / STEPS))
        for share, rounds in TRIALS:
            survivors = max(1, round(share * len(heat)))
            order = _best_first(now)
            climbs.append(now.of(order[survivors:]))
            now = _climb(table, model, now.of(order[:survivors]), rounds, enough)
        climbs.append(now)
        top = float(now.likelihood.max())
        since = 0 if top > greatest + GAIN else since + len(heat)
        greatest = max(greatest, top)
        if since >= FURTHER:
            break
    whole = _joined(climbs)
    order = _best_first(whole)
    best = _climb(table, model, whole.of(order[:1]), longest, enough)
    return _joined([best, whole.of(order[1:])])


def expected(answers: Answers, posterior: Floats) -> Floats:
    """Return how often annotator a is expected to answer l on units with true label k, (A, L, S, K)."""
    return _given(_table(answers), posterior)


def posterior_of(answers: Answers, prior: Floats, chances: Floats) -> Floats:
    """Return the posterior probability of each true label, (U, S, K).

    prior: p, (S, K).
    chances: c, (A, L, S, K).
    """
    made = np.empty((len(answers.units), *prior.shape))
    _expect(_table(answers), prior, chances, None, into=made)
    return made


def _votes(answers: Answers, weight: Floats | None = None) -> Floats:
    """Return the weighted share of each label among a unit's answers, (U, K)."""
    size = len(answers.units), len(answers.labels)
    place = answers.unit * size[1] + answers.label
    votes = np.bincount(place, weights=weight, minlength=size[0] * size[1]).reshape(size)
    shares: Floats = votes / votes.sum(axis=1, keepdims=True)
    return shares


def _table(answers: Answers) -> Table:
    """Return how often each annotator gave each answer to each unit, as a sparse array (U, A times L)."""
    people, size = len(answers.annotators), len(answers.labels)
    columns = answers.annotator * size + answers.label
    return scipy.sparse.csr_array(
        (np.ones(len(columns)), (answers.unit, columns)), shape=(len(answers.units), people * size)
    )


def _batches(answers: Answers, seed: str) -> Iterator[tuple[Climb, Floats]]:
    """Yield the starts in batches, with the heat of each start."""
    people, size = len(answers.annotators), len(answers.labels)
    allowed = BREADTH // max(1, size * max(len(answers.unit), people * size))
    has_batches = allowed >= FURTHER
    batch = BATCH if has_batches else max(FEWEST, allowed)
    drawing = np.random.Generator(np.random.PCG64(int(lot(seed, "starts", ""), 16)))
    half_known = (np.eye(size) / 2 + 0.5 / max(1, size))[None, :, None]
    chances = np.broadcast_to(half_known, (people, size, batch, size))
    for first in range(0, MOST if has_batches else batch, batch):
        posterior = np.empty((len(answers.units), batch, size))
        for place in range(batch):
            posterior[:, place] = _start(answers, drawing, first + place)
        yield Climb(posterior, np.zeros((batch, size)), chances, np.zeros(batch)), np.resize(HEATS, batch)


def _start(answers: Answers, drawing: np.random.Generator, number: int) -> Floats:
    """Return the initial posterior of one start, (U, K)."""
    if number < len(HEATS):
        return _votes(answers)
    weights = drawing.standard_gamma(SHAPE, size=len(answers.annotators))
    # A weight can underflow to 0, and this might happen to all annotators of a unit.
    shares = _votes(answers, np.maximum(weights, SLACK)[answers.annotator])
    if number % 2:
        shares += drawing.uniform(0, NOISE, size=shares.shape)
        shares /= shares.sum(axis=1, keepdims=True)
    return shares


def _climb(table: Table, model: Model, now: Climb, rounds: int, enough: float, heat: Floats | None = None) -> Climb:
    """Run EM for up to `rounds` rounds, or until three rounds change no start's log-likelihood by more than `enough`.

    Without `heat`, every third round takes an accelerated step. The posterior of `now` is overwritten rather than
    copied, because it is large if there are millions of answers.
    """
    posterior, size = now.posterior, now.prior.shape[1]
    prior, chances = now.prior, now.chances
    likelihood = last = np.full(len(prior), -np.inf)
    made, converged, path = 0, False, list[Point]()
    while made < rounds and not converged:
        made += 1
        prior = np.full_like(prior, 1 / size) if model.uniform else posterior.mean(axis=0)
        chances = model.chances(_given(table, posterior), chances)
        path.append((prior, chances))
        before, leaps = likelihood, heat is None and len(path) == 3
        if leaps:
            prior, chances = _leap(*path)
        likelihood = _expect(table, prior, chances, heat, into=posterior)
        if leaps and (short := likelihood < before).any():
            prior = np.where(short[:, None], path[-1][0], prior)
            chances = np.where(short[:, None], path[-1][1], chances)
            likelihood = _expect(table, prior, chances, heat, into=posterior)
        if len(path) == 3:
            # With priors or smoothing, a round can also lower the likelihood.
            converged = bool(np.abs(likelihood - last).max() <= enough)
            last, path = likelihood, []
    return Climb(posterior, prior, chances, likelihood, made, converged)


def _leap(first: Point, second: Point, third: Point) -> Point:
    """Extrapolate from three rounds of EM, separately for each start.

    This is scheme S3 of SQUAREM (Varadhan and Roland 2008, Simple and Globally Convergent Methods for Accelerating the
    Convergence of Any EM Algorithm, Scandinavian Journal of Statistics 35(2)). No probability falls below a tenth of
    its value after the third round, so none becomes 0.
    """
    step, bend = second[1] - first[1], third[1] - 2 * second[1] + first[1]
    length, turn = (np.sqrt(np.square(vector).sum(axis=(0, 1, 3))) for vector in (step, bend))
    far = np.maximum(1, np.divide(length, turn, out=np.ones_like(length), where=turn > 0))[:, None]

    def ahead(a: Floats, b: Floats, c: Floats, axis: int) -> Floats:
        made = np.maximum(a + 2 * far * (b - a) + far**2 * (c - 2 * b + a), c / 10)
        sums = made.sum(axis=axis, keepdims=True)
        scaled: Floats = made * np.divide(c.sum(axis=axis, keepdims=True), sums, out=np.ones_like(sums), where=sums > 0)
        return scaled

    return ahead(first[0], second[0], third[0], 1), ahead(first[1], second[1], third[1], 1)


def _given(table: Table, posterior: Floats) -> Floats:
    units, starts, size = posterior.shape
    # The table is sorted by unit, so its transpose reads memory contiguously.
    made: Floats = (table.T @ posterior.reshape(units, starts * size)).reshape(-1, size, starts, size)
    return made


def _expect(table: Table, prior: Floats, chances: Floats, heat: Floats | None, *, into: Floats) -> Floats:
    """Run the E step: write the posterior into an array (U, S, K), and return the log-likelihood without heat, (S,)."""
    people, size, starts, _ = chances.shape
    with np.errstate(divide="ignore"):  # log(0) is minus infinity, as intended
        log_chances, log_prior = np.log(chances).reshape(people * size, starts * size), np.log(prior)
    units = max(1, BLOCK // (starts * size))
    likelihood = np.zeros(starts)
    for first in range(0, len(into), units):
        block = into[first : first + units]
        block[:] = (table[first : first + units] @ log_chances).reshape(block.shape)
        block += log_prior
        if heat is not None:
            block *= heat[:, None]
        # This is always finite, because some label of the unit had a positive posterior, and c was computed from it.
        top = reduce(np.maximum, np.moveaxis(block, 2, 0))
        block -= top[..., None]
        np.exp(block, out=block)
        total = block @ np.ones(size)
        block /= total[..., None]
        likelihood += (top + np.log(total)).sum(axis=0)
    return likelihood


def _best_first(now: Climb) -> list[int]:
    """Return the indices of the starts, sorted by likelihood, best first.

    Starts whose likelihoods only differ by rounding keep their order.
    """
    return sorted(range(len(now.likelihood)), key=lambda start: -round(float(now.likelihood[start]), 6))


def _joined(parts: Sequence[Climb]) -> Climb:
    """Concatenate the starts of all parts. `rounds` and `converged` are those of the first part."""
    return Climb(
        np.concatenate([part.posterior for part in parts], axis=1),
        np.concatenate([part.prior for part in parts]),
        np.concatenate([part.chances for part in parts], axis=2),
        np.concatenate([part.likelihood for part in parts]),
        parts[0].rounds,
        parts[0].converged,
    )


def _named(made: Climb, votes: Floats) -> Climb:
    """Permute the true labels of each start if they then agree better with the votes.

    This is needed because permuting the true labels does not change the likelihood of the Dawid-Skene model.
    """
    for start in range(len(made.prior)):
        agree = votes.T @ made.posterior[:, start]
        name, label = scipy.optimize.linear_sum_assignment(agree, maximize=True)
        if agree[name, label].sum() > np.trace(agree) + SLACK * len(votes):
            made.posterior[:, start] = made.posterior[:, start, label]
            made.prior[start] = made.prior[start, label]
            made.chances[:, :, start] = made.chances[:, :, start, label]
    return made


def _each_once(climb: Climb) -> Climb:
    """Drop every maximum whose posterior is nearly the same as that of an earlier one."""
    distinct: list[int] = []
    for start in range(len(climb.prior)):
        apart = (np.abs(climb.posterior[:, start] - climb.posterior[:, other]).max(axis=1).mean() for other in distinct)
        if all(difference >= ALIKE for difference in apart):
            distinct.append(start)
    return climb.of(distinct)
