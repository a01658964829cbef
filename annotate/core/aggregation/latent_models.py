"""Models in which a unit's true label is hidden, and the answers to it depend on that label alone: their maximum
likelihood, by EM from many starts.

annotator_models.py has what each model assumes about annotators. With n_aul answers l of annotator a
on unit u, the share p_k of units whose truth is k, and a's chance c_akl to say l of such a unit,

    likelihood = product over u of sum over k of p_k product over a, l of c_akl^n_aul
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import scipy  # which loads its parts when they are first used

from annotate.core.aggregation.answer_table import Answers, Floats
from annotate.core.draws.hash_order import lot
from annotate.core.estimation.proportions import SLACK

# Starts are made BATCH by BATCH until FURTHER of them in a row raise the greatest log-likelihood by no more than GAIN,
# and at most MOST. If one round of FURTHER starts would go through more than BREADTH numbers (answers times labels, or
# chances), there is one batch only, as large as that allows, and of FEWEST starts at least.
BATCH, FURTHER, MOST, GAIN = 24, 48, 240, 0.01
FEWEST, BREADTH = 2, 3_000_000
SHAPE = 0.5  # the shape of the gamma distribution of annotators' weights in a start
NOISE = 0.1
# The heat of each start, in turn, and in how many steps of how many rounds it cools down to 1.
HEATS = (1.0, 0.8, 0.65, 0.5)
STEPS, PER_STEP = 8, 8
# Then this share of the starts, the best so far, goes on for so many rounds; after the last, the best one to its end.
TRIALS = ((1.0, 30), (0.25, 100))
CONVERGED = 1e-9
LONGEST = 10_000
# Numbers that one E step works on at once, so that they stay in the processor's cache.
BLOCK = 2**17
# Maxima are the same if their posteriors differ by less on average.
ALIKE = 0.01


Table = Any  # a sparse array, of which scipy tells no types
Point = tuple[Floats, Floats]  # p (S, K) and c (A, L, S, K)


@dataclass(frozen=True)
class Model:
    """chances: c as an array (A, L, S, K) of annotators, answers, starts and true labels, from the expected number of
    answers of each sort and from the c before, both of that shape. uniform: whether p is 1/K throughout; it is
    estimated if not.
    """

    chances: Callable[[Floats, Floats], Floats]
    uniform: bool = False


@dataclass(frozen=True)
class Fit:
    """What a model makes of the answers.

    posterior: of each unit's true label, (U, K). confusion: of annotator a, where the truth is k, the chance to answer
    l, (A, K, K). prior: the share of units with each true label, (K,). likelihood: the logarithm of that of prior and
    confusion. rounds: how many the best start was climbed in the end; converged: whether they sufficed.
    """

    posterior: Floats
    confusion: Floats
    prior: Floats
    likelihood: float
    rounds: int
    converged: bool


@dataclass(frozen=True)
class Climb:
    """Where EM has come to from each of S starts.

    posterior: of each unit's true label, (U, S, K). prior: p, (S, K). chances: c, (A, L, S, K). likelihood: its
    logarithm, (S,). rounds: how many were made last; converged: whether they sufficed.
    """

    posterior: Floats
    prior: Floats
    chances: Floats
    likelihood: Floats
    rounds: int = 0
    converged: bool = False

    def of(self, starts: list[int]) -> "Climb":
        """Of these starts alone."""
        return Climb(
            # In one stretch of memory, else it would be copied whenever it is multiplied.
            np.take(self.posterior, starts, axis=1),
            self.prior[starts],
            self.chances[:, :, starts],
            self.likelihood[starts],
            self.rounds,
            self.converged,
        )

    def best(self) -> Fit:
        """Of the first start."""
        confusion = self.chances[:, :, 0].transpose(0, 2, 1)
        likelihood = float(self.likelihood[0])
        return Fit(self.posterior[:, 0], confusion, self.prior[0], likelihood, self.rounds, self.converged)


def maxima(
    answers: Answers, model: Model, *, seed: str = "", tolerance: float = CONVERGED, longest: int = LONGEST
) -> Climb:
    """The maxima that the starts lead to, each once, the best first.

    EM starts from the vote shares, once at each heat, and then from shares in which the weight of each annotator is
    drawn from a gamma distribution: most of the weight goes to a few of them, and each start believes others. To every
    other start noise is added. At heat h < 1 the E step raises what it compares to the power h, so that no label is
    given up early; h goes to 1 step by step (Ueda and Nakano 1998, Deterministic Annealing EM Algorithm, Neural
    Networks 11(2)). The best start is climbed until three rounds add less than `tolerance` an answer to the
    log-likelihood, or for `longest` rounds. The others are near their maxima by then.

    Neither the names of labels nor the number of cores change anything; by the order of answers they weigh otherwise.
    """
    if not answers.units:
        return replace(next(_batches(answers, seed))[0].of([0]), converged=True)
    return _each_once(_named(_climbed(answers, model, seed, tolerance, longest), _votes(answers)))


def _climbed(answers: Answers, model: Model, seed: str, tolerance: float, longest: int) -> Climb:
    """Where all starts came to, the best first."""
    table, enough = _table(answers), tolerance * len(answers.unit)
    found: list[Climb] = []
    greatest, since = -np.inf, 0
    for now, heat in _batches(answers, seed):
        for step in range(STEPS):
            now = _climb(table, model, now, PER_STEP, enough, heat ** (1 - step / STEPS))
        for share, rounds in TRIALS:
            kept = max(1, round(share * len(heat)))
            order = _best_first(now)
            found.append(now.of(order[kept:]))
            now = _climb(table, model, now.of(order[:kept]), rounds, enough)
        found.append(now)
        top = float(now.likelihood.max())
        since = 0 if top > greatest + GAIN else since + len(heat)
        greatest = max(greatest, top)
        if since >= FURTHER:
            break
    whole = _joined(found)
    order = _best_first(whole)
    best = _climb(table, model, whole.of(order[:1]), longest, enough)
    return _joined([best, whole.of(order[1:])])


def expected(answers: Answers, posterior: Floats) -> Floats:
    """How many answers l of annotator a on units whose truth is k there are by this posterior, shape (A, L, S, K)."""
    return _given(_table(answers), posterior)


def posterior_of(answers: Answers, prior: Floats, chances: Floats) -> Floats:
    """The posterior under given p and c, shape (U, S, K)."""
    made = np.empty((len(answers.units), *prior.shape))
    _expect(_table(answers), prior, chances, None, into=made)
    return made


def _votes(answers: Answers, weight: Floats | None = None) -> Floats:
    """The share of each label in a unit's answers, each with its weight, (U, K)."""
    size = len(answers.units), len(answers.labels)
    place = answers.unit * size[1] + answers.label
    votes = np.bincount(place, weights=weight, minlength=size[0] * size[1]).reshape(size)
    shares: Floats = votes / votes.sum(axis=1, keepdims=True)
    return shares


def _table(answers: Answers) -> Table:
    """How often each unit was given each answer by each annotator, shape (U, A times L)."""
    people, size = len(answers.annotators), len(answers.labels)
    said = answers.annotator * size + answers.label
    return scipy.sparse.csr_array((np.ones(len(said)), (answers.unit, said)), shape=(len(answers.units), people * size))


def _batches(answers: Answers, seed: str) -> Iterator[tuple[Climb, Floats]]:
    """Where EM starts, batch by batch, and the heat of each start."""
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
    """The posterior from which the start of this number begins, (U, K)."""
    if number < len(HEATS):
        return _votes(answers)
    weights = drawing.standard_gamma(SHAPE, size=len(answers.annotators))
    # A weight may be 0 to the last bit, and all answers to a unit may have it.
    shares = _votes(answers, np.maximum(weights, SLACK)[answers.annotator])
    if number % 2:
        shares += drawing.uniform(0, NOISE, size=shares.shape)
        shares /= shares.sum(axis=1, keepdims=True)
    return shares


def _climb(table: Table, model: Model, now: Climb, rounds: int, enough: float, heat: Floats | None = None) -> Climb:
    """So many rounds, or fewer if no start gains more than is enough. Without heat, every third round leaps ahead. The
    posterior is written over that of `now`, which of millions of answers is large."""
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
            # What has priors or is smoothed need not gain at each round.
            converged = bool(np.abs(likelihood - last).max() <= enough)
            last, path = likelihood, []
    return Climb(posterior, prior, chances, likelihood, made, converged)


def _leap(first: Point, second: Point, third: Point) -> Point:
    """Far ahead on the way that three rounds of EM have gone, start by start.

    That is scheme S3 of SQUAREM (Varadhan and Roland 2008, Simple and Globally Convergent Methods for Accelerating the
    Convergence of Any EM Algorithm, Scandinavian Journal of Statistics 35(2)). No chance falls to less than a tenth
    of where the third round has it, so none becomes impossible by a leap.
    """
    step, bend = second[1] - first[1], third[1] - 2 * second[1] + first[1]
    length, turn = (np.sqrt(np.square(each).sum(axis=(0, 1, 3))) for each in (step, bend))
    far = np.maximum(1, np.divide(length, turn, out=np.ones_like(length), where=turn > 0))[:, None]

    def ahead(a: Floats, b: Floats, c: Floats, axis: int) -> Floats:
        made = np.maximum(a + 2 * far * (b - a) + far**2 * (c - 2 * b + a), c / 10)
        sums = made.sum(axis=axis, keepdims=True)
        scaled: Floats = made * np.divide(c.sum(axis=axis, keepdims=True), sums, out=np.ones_like(sums), where=sums > 0)
        return scaled

    return ahead(first[0], second[0], third[0], 1), ahead(first[1], second[1], third[1], 1)


def _given(table: Table, posterior: Floats) -> Floats:
    units, starts, size = posterior.shape
    # By the transpose of a table in order of units, memory is read in one stretch.
    made: Floats = (table.T @ posterior.reshape(units, starts * size)).reshape(-1, size, starts, size)
    return made


def _expect(table: Table, prior: Floats, chances: Floats, heat: Floats | None, *, into: Floats) -> Floats:
    """Puts the posterior into an array (U, S, K); returns the logarithm of the likelihood, without heat, (S,)."""
    people, size, starts, _ = chances.shape
    with np.errstate(divide="ignore"):  # the logarithm of 0 is minus infinity, as it should be
        log_chances, log_prior = np.log(chances).reshape(people * size, starts * size), np.log(prior)
    units = max(1, BLOCK // (starts * size))
    likelihood = np.zeros(starts)
    for first in range(0, len(into), units):
        block = into[first : first + units]
        block[:] = (table[first : first + units] @ log_chances).reshape(block.shape)
        block += log_prior
        if heat is not None:
            block *= heat[:, None]
        # Never infinite: what made the answers possible was a label of this unit with a posterior above 0.
        top = reduce(np.maximum, np.moveaxis(block, 2, 0))
        block -= top[..., None]
        np.exp(block, out=block)
        total = block @ np.ones(size)
        block /= total[..., None]
        likelihood += (top + np.log(total)).sum(axis=0)
    return likelihood


def _best_first(now: Climb) -> list[int]:
    """The starts by likelihood; where rounding alone tells them apart, in their order."""
    return sorted(range(len(now.likelihood)), key=lambda start: -round(float(now.likelihood[start]), 6))


def _joined(parts: Sequence[Climb]) -> Climb:
    """The starts of all parts together, with the rounds of the first part."""
    return Climb(
        np.concatenate([part.posterior for part in parts], axis=1),
        np.concatenate([part.prior for part in parts]),
        np.concatenate([part.chances for part in parts], axis=2),
        np.concatenate([part.likelihood for part in parts]),
        parts[0].rounds,
        parts[0].converged,
    )


def _named(made: Climb, votes: Floats) -> Climb:
    """The starts, with the labels of the truth exchanged where they then agree more with the votes.

    To the likelihood of Dawid and Skene's model names are nothing: all that it says of label 1 may be said of label 2.
    """
    for start in range(len(made.prior)):
        agree = votes.T @ made.posterior[:, start]
        name, label = scipy.optimize.linear_sum_assignment(agree, maximize=True)
        if agree[name, label].sum() > np.trace(agree) + SLACK * len(votes):
            made.posterior[:, start] = made.posterior[:, start, label]
            made.prior[start] = made.prior[start, label]
            made.chances[:, :, start] = made.chances[:, :, start, label]
    return made


def _each_once(found: Climb) -> Climb:
    """Without any maximum whose posterior is that of one before."""
    kept: list[int] = []
    for start in range(len(found.prior)):
        apart = (np.abs(found.posterior[:, start] - found.posterior[:, other]).max(axis=1).mean() for other in kept)
        if all(each >= ALIKE for each in apart):
            kept.append(start)
    return found.of(kept)
