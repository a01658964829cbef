"""Models that estimate true labels and annotator errors jointly: Dawid-Skene, one-coin, MACE and GLAD.

Their labels are a second opinion and never replace the majority. quality/agreement_statistics.py decides where to show
them.

In all of them except GLAD, an answer depends only on the annotator and on the true label. Let n_aul be the number of
times that annotator a gives answer l on unit u, p_k the share of units with true label k, and c_akl the probability
that a answers l on such a unit. Then

    likelihood = product over u of sum over k of p_k product over a, l of c_akl^n_aul

Each model defines how c depends on its parameters. The likelihood is maximized by EM from many starts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy  # loads its subpackages on first use

from annotate.core.aggregation.answer_table import Answers, Floats, Ints
from annotate.core.estimation.proportions import SLACK
from annotate.core.estimation.resampling import generator

# EM runs from batches of BATCH starts. It ends after MAX_STARTS starts, or once PATIENCE starts in a row haven't raised
# the best log-likelihood by more than MIN_GAIN. If PATIENCE starts would process more than MAX_NUMBERS numbers per
# round (answers times labels, or probabilities), there is a single batch of as many starts as fit, but at least
# MIN_STARTS.
BATCH, PATIENCE, MAX_STARTS, MIN_GAIN = 24, 48, 240, 0.01
MIN_STARTS, MAX_NUMBERS = 2, 3_000_000
SHAPE = 0.5  # shape of the gamma distribution of the annotators' weights in a start
NOISE = 0.1
# The starts cycle through these initial inverse temperatures (beta). Beta then rises to 1 in STEPS steps, with PER_STEP
# rounds per step.
BETAS = (1.0, 0.8, 0.65, 0.5)
STEPS, PER_STEP = 8, 8
# Then, for each (share, rounds) pair, the best `share` of the batch's starts continues for `rounds` rounds. Finally,
# only the best start of all batches continues, until it converges.
TRIALS = ((1.0, 30), (0.25, 100))
TOLERANCE = 1e-9
MAX_ROUNDS = 10_000
# How many numbers an E step processes at once, so that they fit into the processor cache.
BLOCK = 2**17
# Two maxima count as the same if, averaged over units, their posteriors differ by less than this.
SAME_MAXIMUM = 0.01


class Table(NamedTuple):
    """The answers as a sparse table.

    rows: number of times each annotator gave each answer on each unit, sparse (U, A times L). scipy has no types.
    number: number of units that each row represents, (U, 1).
    """

    rows: Any
    number: Ints


Point = tuple[Floats, Floats]  # the parameters p, (S, K), and c, (A, L, S, K)


@dataclass(frozen=True)
class Model:
    """A model of the annotators.

    chances: function that computes c from the expected answer counts and the previous c. All three are arrays by
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
    rounds: number of EM rounds in the last run of the best start.
    converged: whether EM converged within these rounds.
    """

    posterior: Floats
    confusion: Floats
    prior: Floats
    likelihood: float
    rounds: int
    converged: bool


@dataclass(frozen=True)
class EMState:
    """The state of EM for each of S starts.

    posterior: posterior probability of each true label, by unit and start, (U, S, K).
    prior: p, (S, K).
    chances: c, (A, L, S, K).
    likelihood: log-likelihood, (S,).
    rounds: number of EM rounds in the last run.
    converged: whether EM converged within these rounds.
    """

    posterior: Floats
    prior: Floats
    chances: Floats
    likelihood: Floats
    rounds: int = 0
    converged: bool = False

    def of(self, starts: list[int]) -> "EMState":
        """Return the state of some of the starts."""
        return EMState(
            # np.take returns a contiguous array. Otherwise, every multiplication would copy it.
            np.take(self.posterior, starts, axis=1),
            self.prior[starts],
            self.chances[:, :, starts],
            self.likelihood[starts],
            self.rounds,
            self.converged,
        )

    def best(self) -> Fit:
        """Return the fit of the best start. The starts must be sorted, best first."""
        confusion = self.chances[:, :, 0].transpose(0, 2, 1)
        likelihood = float(self.likelihood[0])
        return Fit(self.posterior[:, 0], confusion, self.prior[0], likelihood, self.rounds, self.converged)


def find_maxima(answers: Answers, model: Model, *, seed: str = "") -> EMState:
    """Find the distinct maxima of the likelihood, best first.

    The first starts use the vote shares as the initial posterior, with one start per beta. The other starts weight the
    annotators' votes. Each start draws its weights from a gamma distribution that gives most of the weight to a few
    annotators. Every second of these starts also adds noise. If beta < 1, the E step raises the likelihood terms to the
    power beta, so that no label is ruled out early. Beta rises to 1 in steps (Ueda and Nakano 1998, Deterministic
    Annealing EM Algorithm, Neural Networks 11(2)).

    The best start continues until three rounds change the log-likelihood by at most TOLERANCE per answer, or for
    MAX_ROUNDS rounds. The other starts stop earlier, because they are close to their maxima by then.

    The result doesn't depend on the names of labels or the number of cores, but it does depend on the order of the
    answers.
    """
    if not answers.units:
        return replace(next(_draw_batches(answers, seed))[0].of([0]), converged=True)
    return _drop_duplicates(_align_labels(_run_starts(answers, model, seed), _vote_shares(answers)))


def _run_starts(answers: Answers, model: Model, seed: str) -> EMState:
    """Return the final state of each start, best first."""
    tolerance = TOLERANCE * len(answers.unit)
    pattern = _answer_patterns(answers)
    _, first, number = np.unique(pattern, return_index=True, return_counts=True)
    table = Table(_build_table(answers).rows[first], number[:, None])
    states: list[EMState] = []
    best_so_far, without_gain = -np.inf, 0
    for state, beta in _draw_batches(answers, seed):
        state = replace(state, posterior=state.posterior[first])
        for step in range(STEPS):
            state = _run_em(table, model, state, PER_STEP, tolerance, beta ** (1 - step / STEPS))
        for share, rounds in TRIALS:
            survivors = max(1, round(share * len(beta)))
            order = _best_first(state)
            states.append(state.of(order[survivors:]))
            state = _run_em(table, model, state.of(order[:survivors]), rounds, tolerance)
        states.append(state)
        top = float(state.likelihood.max())
        without_gain = 0 if top > best_so_far + MIN_GAIN else without_gain + len(beta)
        best_so_far = max(best_so_far, top)
        if without_gain >= PATIENCE:
            break
    combined = _concatenate(states)
    order = _best_first(combined)
    best = _run_em(table, model, combined.of(order[:1]), MAX_ROUNDS, tolerance)
    final = _concatenate([best, combined.of(order[1:])])
    return replace(final, posterior=final.posterior[pattern])


def expected_counts(answers: Answers, posterior: Floats) -> Floats:
    """Return the expected number of answers l of annotator a on units with true label k, (A, L, S, K)."""
    return _answer_counts(_build_table(answers), posterior)


def posterior_of(answers: Answers, prior: Floats, chances: Floats) -> Floats:
    """Return the posterior probability of each true label, (U, S, K).

    prior: p, (S, K).
    chances: c, (A, L, S, K).
    """
    posterior = np.empty((len(answers.units), *prior.shape))
    _expect(_build_table(answers), prior, chances, None, into=posterior)
    return posterior


def _vote_shares(answers: Answers, weight: Floats | None = None) -> Floats:
    """Return the weighted share of each label among a unit's answers, (U, K)."""
    size = len(answers.units), len(answers.labels)
    place = answers.unit * size[1] + answers.label
    votes = np.bincount(place, weights=weight, minlength=size[0] * size[1]).reshape(size)
    shares: Floats = votes / votes.sum(axis=1, keepdims=True)
    return shares


def _build_table(answers: Answers) -> Table:
    people, size = len(answers.annotators), len(answers.labels)
    columns = answers.annotator * size + answers.label
    shape = len(answers.units), people * size
    rows = scipy.sparse.csr_array((np.ones(len(columns)), (answers.unit, columns)), shape=shape)
    return Table(rows, np.ones((len(answers.units), 1), dtype=np.int64))


def _answer_patterns(answers: Answers) -> Ints:
    """Return the index of each unit's answer pattern (which annotators gave which answers), (U,).

    Units with the same pattern have the same posterior in each round, so EM computes it only once. If starts add noise,
    each unit has its own pattern.
    """
    if _batch_size(answers)[1] > len(BETAS):
        return np.arange(len(answers.units))
    answer = answers.annotator * len(answers.labels) + answers.label
    order = np.lexsort((answer, answers.unit))
    ends = np.searchsorted(answers.unit[order], np.arange(len(answers.units) + 1)) * answer.itemsize
    content, numbers = answer[order].tobytes(), dict[bytes, int]()
    return np.array([numbers.setdefault(content[start:end], len(numbers)) for start, end in pairwise(ends.tolist())])


def _batch_size(answers: Answers) -> tuple[int, int]:
    """Return the number of starts in a batch, and the maximum number of starts."""
    size = len(answers.labels)
    allowed = MAX_NUMBERS // max(1, size * max(len(answers.unit), len(answers.annotators) * size))
    return (BATCH, MAX_STARTS) if allowed >= PATIENCE else (max(MIN_STARTS, allowed),) * 2


def _draw_batches(answers: Answers, seed: str) -> Iterator[tuple[EMState, Floats]]:
    """Yield each batch of starts and the beta of each start."""
    people, size = len(answers.annotators), len(answers.labels)
    batch, most = _batch_size(answers)
    drawing = generator(seed, "starts")
    half_right = (np.eye(size) / 2 + 0.5 / max(1, size))[None, :, None]
    chances = np.broadcast_to(half_right, (people, size, batch, size))
    for first in range(0, most, batch):
        posterior = np.empty((len(answers.units), batch, size))
        for place in range(batch):
            posterior[:, place] = _initial_posterior(answers, drawing, first + place)
        yield EMState(posterior, np.zeros((batch, size)), chances, np.zeros(batch)), np.resize(BETAS, batch)


def _initial_posterior(answers: Answers, drawing: np.random.Generator, number: int) -> Floats:
    """Return a start's initial posterior, (U, K)."""
    if number < len(BETAS):
        return _vote_shares(answers)
    weights = drawing.standard_gamma(SHAPE, size=len(answers.annotators))
    # Weights can underflow to 0, perhaps for all annotators of a unit.
    shares = _vote_shares(answers, np.maximum(weights, SLACK)[answers.annotator])
    if number % 2:
        shares += drawing.uniform(0, NOISE, size=shares.shape)
        shares /= shares.sum(axis=1, keepdims=True)
    return shares


def _run_em(
    table: Table, model: Model, state: EMState, rounds: int, tolerance: float, beta: Floats | None = None
) -> EMState:
    """Run EM for up to `rounds` rounds.

    Check for convergence every three rounds, and stop once no start's log-likelihood has changed by more than
    `tolerance` since the last check. Without `beta`, every third round takes an accelerated step. The posterior of
    `state` is overwritten, because copying it would take much memory if there are millions of answers.
    """
    posterior, size, units = state.posterior, state.prior.shape[1], int(table.number.sum())
    prior, chances = state.prior, state.chances
    likelihood = last = np.full(len(prior), -np.inf)
    completed, converged, path = 0, False, list[Point]()
    while completed < rounds and not converged:
        completed += 1
        weighted = posterior if len(posterior) == units else posterior * table.number[..., None]
        prior = np.full_like(prior, 1 / size) if model.uniform else weighted.sum(axis=0) / units
        chances = model.chances(_answer_counts(table, weighted), chances)
        path.append((prior, chances))
        before, is_accelerated = likelihood, beta is None and len(path) == 3
        if is_accelerated:
            prior, chances = _extrapolate(*path)
        likelihood = _expect(table, prior, chances, beta, into=posterior)
        if is_accelerated and (worse := likelihood < before).any():
            prior = np.where(worse[:, None], path[-1][0], prior)
            chances = np.where(worse[:, None], path[-1][1], chances)
            likelihood = _expect(table, prior, chances, beta, into=posterior)
        if len(path) == 3:
            # A round can also lower the likelihood of a model with priors.
            converged = bool(np.abs(likelihood - last).max() <= tolerance)
            last, path = likelihood, []
    return EMState(posterior, prior, chances, likelihood, completed, converged)


def _extrapolate(first: Point, second: Point, third: Point) -> Point:
    """Extrapolate from three rounds of EM, separately for each start.

    This is scheme S3 of SQUAREM (Varadhan and Roland 2008, Simple and Globally Convergent Methods for Accelerating the
    Convergence of Any EM Algorithm, Scandinavian Journal of Statistics 35(2)). No probability falls below a tenth of
    its value after the third round, so none becomes 0.
    """
    step, bend = second[1] - first[1], third[1] - 2 * second[1] + first[1]
    length, turn = (np.sqrt(np.square(vector).sum(axis=(0, 1, 3))) for vector in (step, bend))
    far = np.maximum(1, np.divide(length, turn, out=np.ones_like(length), where=turn > 0))[:, None]

    def project(a: Floats, b: Floats, c: Floats, axis: int) -> Floats:
        raw = np.maximum(a + 2 * far * (b - a) + far**2 * (c - 2 * b + a), c / 10)
        sums = raw.sum(axis=axis, keepdims=True)
        scaled: Floats = raw * np.divide(c.sum(axis=axis, keepdims=True), sums, out=np.ones_like(sums), where=sums > 0)
        return scaled

    return project(first[0], second[0], third[0], 1), project(first[1], second[1], third[1], 1)


def _answer_counts(table: Table, posterior: Floats) -> Floats:
    units, starts, size = posterior.shape
    # The table is sorted by unit, so multiplying by its transpose accesses memory contiguously.
    counts: Floats = (table.rows.T @ posterior.reshape(units, starts * size)).reshape(-1, size, starts, size)
    return counts


def _expect(table: Table, prior: Floats, chances: Floats, beta: Floats | None, *, into: Floats) -> Floats:
    """Run the E step: write the posterior into an array, (U, S, K), and return the log-likelihood, (S,).

    The log-likelihood is only correct without `beta`.
    """
    people, size, starts, _ = chances.shape
    with np.errstate(divide="ignore"):  # log(0) is minus infinity, as intended
        log_chances, log_prior = np.log(chances).reshape(people * size, starts * size), np.log(prior)
    units = max(1, BLOCK // (starts * size))
    likelihood = np.zeros(starts)
    for first in range(0, len(into), units):
        block = into[first : first + units]
        block[:] = (table.rows[first : first + units] @ log_chances).reshape(block.shape)
        block += log_prior
        if beta is not None:
            block *= beta[:, None]
        # The maximum is always finite: some label had a positive posterior on the unit, and c was computed from it.
        top = reduce(np.maximum, np.moveaxis(block, 2, 0))
        block -= top[..., None]
        np.exp(block, out=block)
        total = block @ np.ones(size)
        block /= total[..., None]
        likelihood += (table.number[first : first + units] * (top + np.log(total))).sum(axis=0)
    return likelihood


def _best_first(state: EMState) -> list[int]:
    """Return the indices of the starts, highest likelihood first.

    Starts whose likelihoods only differ by rounding errors keep their order.
    """
    return sorted(range(len(state.likelihood)), key=lambda start: -round(float(state.likelihood[start]), 6))


def _concatenate(parts: Sequence[EMState]) -> EMState:
    """Concatenate the starts of all parts. `rounds` and `converged` come from the first part."""
    return EMState(
        np.concatenate([part.posterior for part in parts], axis=1),
        np.concatenate([part.prior for part in parts]),
        np.concatenate([part.chances for part in parts], axis=2),
        np.concatenate([part.likelihood for part in parts]),
        parts[0].rounds,
        parts[0].converged,
    )


def _align_labels(state: EMState, votes: Floats) -> EMState:
    """Undo label switching: permute each start's true labels if they then agree better with the votes.

    Permuting the true labels doesn't change the likelihood of the Dawid-Skene model.
    """
    for start in range(len(state.prior)):
        agree = votes.T @ state.posterior[:, start]
        if (np.diagonal(agree) >= agree.max(axis=0)).all():
            continue  # no permutation agrees better, and scipy.optimize is slow to load
        voted, label = scipy.optimize.linear_sum_assignment(agree, maximize=True)
        if agree[voted, label].sum() > np.trace(agree) + SLACK * len(votes):
            state.posterior[:, start] = state.posterior[:, start, label]
            state.prior[start] = state.prior[start, label]
            state.chances[:, :, start] = state.chances[:, :, start, label]
    return state


def _drop_duplicates(state: EMState) -> EMState:
    """Drop each maximum that has nearly the same posterior as an earlier maximum."""
    distinct: list[int] = []
    for start in range(len(state.prior)):
        apart = (np.abs(state.posterior[:, start] - state.posterior[:, other]).max(axis=1).mean() for other in distinct)
        if all(difference >= SAME_MAXIMUM for difference in apart):
            distinct.append(start)
    return state.of(distinct)


# --- The Dawid-Skene model


# To smooth posteriors, each annotator and true label gets this pseudocount, spread evenly over the labels (Perks 1947,
# Some Observations on Inverse Probability, Journal of the Institute of Actuaries 73(2)).
SMOOTHING = 1.0


def fit_dawid_skene(answers: Answers, *, seed: str = "") -> Fit:
    """Fit the Dawid-Skene model by maximum likelihood from many starts, with smoothed posteriors.

    Let n_aul be the number of answers l of annotator a on unit u. EM iterates

        p_k   = mean over u of T_uk                                      prior
        c_akl = sum over u of T_uk n_aul / sum over u, l of the same     confusion, 0 if a never met k
        T_uk  ~ p_k product over a, l of c_akl^n_aul                     posterior, normalized over k

    (Dawid and Skene 1979, Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm, Applied
    Statistics 28(1)). `find_maxima` describes the starts. None of them is guaranteed to lead to the global maximum.

    Prior, confusion and likelihood come from the best maximum and are not smoothed. Posteriors are smoothed, because an
    error that was not observed would otherwise count as impossible: each c_akl gets a pseudocount of SMOOTHING / K,
    where K is the number of labels in use. Posteriors are also averaged over all maxima with equal weights. With few
    answers, weights by likelihood would favour maxima that overfit. docs/explanation/agreement.md reports the effect of
    smoothing and averaging.

    The posteriors are not calibrated, because the model assumes that annotators err independently, even on the same
    unit. If the data do not distinguish some labels, their posteriors tie; `answer_table.winners` returns all labels
    that tie. If an annotator has several answers on a unit, they count as separate observations.

    seed: seed of the starts.
    """
    if not answers.units:
        return find_maxima(answers, MODEL).best()
    # Labels that nobody chose are excluded as true labels. With a hundred languages, this excludes most of them.
    used = np.unique(answers.label)
    fewer = replace(answers, labels=tuple(answers.labels[k] for k in used), label=np.searchsorted(used, answers.label))
    state = find_maxima(fewer, MODEL, seed=seed)
    counts = expected_counts(fewer, state.posterior)
    smoothed = _confusion(counts + SMOOTHING / used.size, counts)
    posteriors = posterior_of(fewer, state.prior, smoothed)
    best = replace(state.best(), posterior=posteriors.mean(axis=1))
    size, people = len(answers.labels), len(answers.annotators)
    posterior, confusion = np.zeros((len(answers.units), size)), np.zeros((people, size, size))
    prior = np.zeros(size)
    posterior[:, used], confusion[:, used[:, None], used], prior[used] = best.posterior, best.confusion, best.prior
    return replace(best, posterior=posterior, confusion=confusion, prior=prior)


def _confusion(counts: Floats, before: Floats) -> Floats:
    met = counts.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(counts, met, out=np.zeros_like(counts), where=met > 0)
    return shares


MODEL = Model(_confusion)


# --- The one-coin model: each annotator has a single accuracy, and all wrong labels are equally likely.


def fit_one_coin(answers: Answers, *, seed: str = "") -> Fit:
    """Fit the one-coin model, with one accuracy q_a per annotator.

        q_a   = sum over u, k of T_uk n_auk / number of a's answers
        c_akl = q_a if l is k, (1 - q_a) / (K - 1) if not

    (Zhang, Chen, Zhou and Jordan 2016, Spectral Methods Meet EM, Journal of Machine Learning Research 17(102), section
    2). The model has far fewer parameters than the Dawid-Skene model, so it suits data with few answers and many
    labels.

    seed: seed of the starts.
    """
    return find_maxima(answers, Model(_one_coin_chances), seed=seed).best()


def _one_coin_chances(counts: Floats, before: Floats) -> Floats:
    size = counts.shape[1]
    right = np.einsum("aksk->as", counts) / counts.sum(axis=(1, 3))
    wrong = (1 - right) / max(1, size - 1)
    same = np.eye(size, dtype=np.bool_)[None, :, None, :]
    chances: Floats = np.where(same, right[:, None, :, None], wrong[:, None, :, None])
    return chances


# --- MACE: annotators either know a unit's label, or guess regardless of the unit.


KNOWING, HABIT = 0.5, 10.0  # the authors' symmetric Beta and Dirichlet priors


def fit_mace(answers: Answers, *, seed: str = "") -> Fit:
    """Fit MACE by variational EM.

    Annotator a knows the label with probability t_a, and otherwise answers l with probability x_al. The prior over true
    labels is uniform:

        c_akl = t_a [k = l] + (1 - t_a) x_al,   p_k = 1 / K

    (Hovy, Berg-Kirkpatrick, Vaswani and Hovy 2013, Learning Whom to Trust with MACE, NAACL-HLT). When annotator a
    answers k on a unit with true label k, a knew the label with probability t_a / c_akk. All other answers are guesses.

    Let n be the expected counts: known answers and guesses for t, and guesses by label for x. Both are computed as
    exp(digamma(n + prior)) / exp(digamma(s)), where s is the sum of n + prior. These weights add up to less than 1, and
    so does each row of the confusion matrix. The likelihood is computed with the same weights. The authors also use it
    to choose among starts.

    seed: seed of the starts.
    """
    return find_maxima(answers, Model(_mace_chances, uniform=True), seed=seed).best()


def _mace_chances(counts: Floats, before: Floats) -> Floats:
    label = np.arange(counts.shape[1])
    # A wrong answer is a guess, so its probability is the same for every other true label. Take the next label's.
    unknown = before[:, label, :, (label + 1) % len(label)].transpose(1, 0, 2)
    informed = np.maximum(0, np.einsum("alsl->als", counts) * (1 - unknown / np.einsum("alsl->als", before)))
    habits = counts.sum(axis=3) - informed
    knows, guesses = np.moveaxis(_weights(np.stack([informed.sum(axis=1), habits.sum(axis=1)], axis=1), KNOWING), 1, 0)
    guessed = guesses[:, None] * _weights(habits, HABIT)
    chances: Floats = guessed[..., None] + np.eye(len(label))[None, :, None, :] * knows[:, None, :, None]
    return chances


def _weights(numbers: Floats, prior: float) -> Floats:
    digamma, raised = scipy.special.digamma, numbers + prior
    weights: Floats = np.exp(digamma(raised) - digamma(raised.sum(axis=1, keepdims=True)))
    return weights


# --- GLAD: the probability of a right answer depends on the annotator's ability and the unit's ease.
#
# We use GLAD to find hard units. Its labels are only evaluated where true labels are available.


MEAN = 1.0  # prior mean of ability and of log ease; their standard deviation is 1
GLAD_ROUNDS, GLAD_TOLERANCE = 1000, 1e-8  # maximum EM rounds; EM stops once the gain per answer is smaller
NEWTON_STEPS = 3  # Newton steps per M step


@dataclass(frozen=True)
class GladFit:
    """A fitted GLAD model.

    posterior: posterior probability of each true label, by unit, (U, K).
    ability: ability of each annotator, (A,).
    ease: ease of each unit, above 0, (U,).
    objective: log-likelihood plus log prior.
    rounds: number of EM rounds.
    converged: whether EM converged within these rounds.
    """

    posterior: Floats
    ability: Floats
    ease: Floats
    objective: float
    rounds: int
    converged: bool


def fit_glad(answers: Answers, *, seed: str = "") -> GladFit:
    """Fit GLAD by EM.

    Let x_a be the ability of annotator a, and y_u the ease of unit u. The prior over true labels is uniform, and

        probability that a is right on u = 1 / (1 + exp(-x_a y_u)),   all wrong labels equally likely

    (Whitehill, Ruvolo, Wu, Bergsma and Movellan 2009, Whose Vote Should Count More: Optimal Integration of Labels from
    Labelers of Unknown Expertise, NIPS 22). As in that article, x_a and log y_u have normal priors with mean and
    variance 1, and EM starts from their means.

    seed: not used, because the fit is deterministic; accepted so that all models have the same signature.
    """
    units, people, size = len(answers.units), len(answers.annotators), len(answers.labels)
    parameters = np.full(people + units, MEAN)
    posterior, objective = _glad_posterior(answers, parameters)
    rounds, converged = 0, not units
    while rounds < GLAD_ROUNDS and not converged:
        rounds += 1
        parameters = _glad_step(answers, posterior[answers.unit, answers.label], parameters)
        before = objective
        posterior, objective = _glad_posterior(answers, parameters)
        converged = abs(objective - before) <= GLAD_TOLERANCE * len(answers.unit)
    return GladFit(
        posterior.reshape(units, size), parameters[:people], np.exp(parameters[people:]), objective, rounds, converged
    )


def _glad_posterior(answers: Answers, parameters: Floats) -> tuple[Floats, float]:
    """Return the posterior of each unit's true label, (U, K), and the objective.

    parameters: the abilities of all annotators, followed by the log ease of all units, (A + U,).
    """
    size = len(answers.labels)
    scores = np.full((len(answers.units), size), -np.log(max(1, size)))
    product = _product(answers, parameters)
    wrong = scipy.special.log_expit(-product) - np.log(max(1, size - 1))
    scores += np.bincount(answers.unit, weights=wrong, minlength=len(scores))[:, None]
    np.add.at(scores, (answers.unit, answers.label), scipy.special.log_expit(product) - wrong)
    likelihood = scipy.special.logsumexp(scores, axis=1) if scores.size else np.zeros(len(scores))
    objective = float(likelihood.sum() - ((parameters - MEAN) ** 2).sum() / 2)
    return np.exp(scores - likelihood[:, None]), objective


def _glad_step(answers: Answers, right: Floats, parameters: Floats) -> Floats:
    """Increase the expected objective by Newton steps that alternate between abilities and log ease.

    right: probability that each answer is right.
    parameters: see `_glad_posterior`.
    """
    people = len(answers.annotators)
    parameters = parameters.copy()
    for _ in range(NEWTON_STEPS):
        for is_ease, of in ((False, answers.annotator), (True, answers.unit)):
            part = slice(people, None) if is_ease else slice(0, people)
            product, ease = _product(answers, parameters), np.exp(parameters[people + answers.unit])
            chance = scipy.special.expit(product)
            by = product if is_ease else ease  # derivative of the product of ability and ease
            slope = np.bincount(of, weights=(right - chance) * by)
            bend = np.bincount(of, weights=chance * (1 - chance) * by**2) + 1
            bend += np.maximum(0, -slope) if is_ease else 0
            parameters[part] += np.clip((slope - (parameters[part] - MEAN)) / bend, -1, 1)
    return parameters


def _product(answers: Answers, parameters: Floats) -> Floats:
    people = len(answers.annotators)
    product: Floats = parameters[answers.annotator] * np.exp(parameters[people + answers.unit])
    return product
