"""Models that estimate true labels and annotator errors jointly: Dawid-Skene, one-coin, MACE and GLAD.

The models give a second opinion and never replace the majority. quality/agreement_statistics.py decides where to show
their results.

In all of them except GLAD, an answer depends only on the annotator and on the true label. Let n_aul be the number of
answers l of annotator a on unit u, p_k the share of units with true label k, and c_akl the probability that a answers l
on such a unit. Then

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

# Starts are made in batches of BATCH. There are no further batches once FURTHER starts in a row have raised the best
# log-likelihood by no more than GAIN, or after MOST starts. If FURTHER starts would have to process more than BREADTH
# numbers in a round (answers times labels, or probabilities), there is a single batch of as many starts as fit, but at
# least FEWEST.
BATCH, FURTHER, MOST, GAIN = 24, 48, 240, 0.01
FEWEST, BREADTH = 2, 3_000_000
SHAPE = 0.5  # shape of the gamma distribution of annotator weights in a start
NOISE = 0.1
# The starts cycle through these initial heats. The heat then rises to 1 in STEPS steps, with PER_STEP rounds at each
# step.
HEATS = (1.0, 0.8, 0.65, 0.5)
STEPS, PER_STEP = 8, 8
# Then, for each pair (share, rounds), the best starts continue: this share of them, for this number of rounds. Finally,
# the best start continues until it converges.
TRIALS = ((1.0, 30), (0.25, 100))
CONVERGED = 1e-9
LONGEST = 10_000
# How many numbers an E step processes at once, so that they fit in the processor cache.
BLOCK = 2**17
# Two maxima count as the same if their posteriors differ by less than this on average.
ALIKE = 0.01


class Table(NamedTuple):
    """The answers, as EM reads them.

    rows: how often each annotator gave each answer to each unit, a sparse array (U, A times L); scipy has no types.
    number: number of units that each row represents, (U, 1).
    """

    rows: Any
    number: Ints


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


def maxima(answers: Answers, model: Model, *, seed: str = "") -> Climb:
    """Find the distinct maxima of the likelihood, best first.

    The first starts use the vote shares as the initial posterior, one at each heat. The other starts weight the
    annotators' votes. The weights are drawn again for each start, from a gamma distribution that gives most of the
    weight to a few annotators. Every second start also gets noise. At heat h < 1, the E step raises the likelihood
    terms to the power h, so that no label is ruled out early. The heat rises to 1 in steps (Ueda and Nakano 1998,
    Deterministic Annealing EM Algorithm, Neural Networks 11(2)).

    The best start continues until three rounds add less than CONVERGED per answer to the log-likelihood, or for
    LONGEST rounds. The other starts do not continue, because they are close to their maxima by then.

    The result does not depend on the names of labels or the number of cores. It does depend on the order of the
    answers.
    """
    if not answers.units:
        return replace(next(_batches(answers, seed))[0].of([0]), converged=True)
    return _distinct(_named(_climbed(answers, model, seed), _votes(answers)))


def _climbed(answers: Answers, model: Model, seed: str) -> Climb:
    """Return the final state of each start, best first."""
    enough = CONVERGED * len(answers.unit)
    kind = _kinds(answers)
    _, first, number = np.unique(kind, return_index=True, return_counts=True)
    table = Table(_table(answers).rows[first], number[:, None])
    climbs: list[Climb] = []
    greatest, since = -np.inf, 0
    for now, heat in _batches(answers, seed):
        now = replace(now, posterior=now.posterior[first])
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
    best = _climb(table, model, whole.of(order[:1]), LONGEST, enough)
    ended = _joined([best, whole.of(order[1:])])
    return replace(ended, posterior=ended.posterior[kind])


def expected(answers: Answers, posterior: Floats) -> Floats:
    """Return how often annotator a is expected to answer l on units with true label k, (A, L, S, K)."""
    return _answer_counts(_table(answers), posterior)


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
    people, size = len(answers.annotators), len(answers.labels)
    columns = answers.annotator * size + answers.label
    shape = len(answers.units), people * size
    rows = scipy.sparse.csr_array((np.ones(len(columns)), (answers.unit, columns)), shape=shape)
    return Table(rows, np.ones((len(answers.units), 1), dtype=np.int64))


def _kinds(answers: Answers) -> Ints:
    """Return the kind of each unit, (U,). Units are of one kind if the same annotators gave them the same answers.

    Their posteriors are equal in each round, so EM computes only one. If starts add noise, each unit is its own kind.
    """
    if _starts(answers)[1] > len(HEATS):
        return np.arange(len(answers.units))
    answer = answers.annotator * len(answers.labels) + answers.label
    order = np.lexsort((answer, answers.unit))
    ends = np.searchsorted(answers.unit[order], np.arange(len(answers.units) + 1)) * answer.itemsize
    content, kinds = answer[order].tobytes(), dict[bytes, int]()
    return np.array([kinds.setdefault(content[start:end], len(kinds)) for start, end in pairwise(ends.tolist())])


def _starts(answers: Answers) -> tuple[int, int]:
    """Return the number of starts in a batch, and the largest number of starts."""
    size = len(answers.labels)
    allowed = BREADTH // max(1, size * max(len(answers.unit), len(answers.annotators) * size))
    return (BATCH, MOST) if allowed >= FURTHER else (max(FEWEST, allowed),) * 2


def _batches(answers: Answers, seed: str) -> Iterator[tuple[Climb, Floats]]:
    """Yield the starts in batches, with the heat of each start."""
    people, size = len(answers.annotators), len(answers.labels)
    batch, most = _starts(answers)
    drawing = generator(seed, "starts")
    half_right = (np.eye(size) / 2 + 0.5 / max(1, size))[None, :, None]
    chances = np.broadcast_to(half_right, (people, size, batch, size))
    for first in range(0, most, batch):
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
    """Run EM for up to `rounds` rounds. Stop early once no start's log-likelihood has changed by more than `enough`
    over the last three rounds.

    Without `heat`, every third round takes an accelerated step. The posterior of `now` is overwritten rather than
    copied, because it is large if there are millions of answers.
    """
    posterior, size, units = now.posterior, now.prior.shape[1], int(table.number.sum())
    prior, chances = now.prior, now.chances
    likelihood = last = np.full(len(prior), -np.inf)
    made, converged, path = 0, False, list[Point]()
    while made < rounds and not converged:
        made += 1
        of_all = posterior if len(posterior) == units else posterior * table.number[..., None]
        prior = np.full_like(prior, 1 / size) if model.uniform else of_all.sum(axis=0) / units
        chances = model.chances(_answer_counts(table, of_all), chances)
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


def _answer_counts(table: Table, posterior: Floats) -> Floats:
    units, starts, size = posterior.shape
    # The table is sorted by unit, so its transpose reads memory contiguously.
    made: Floats = (table.rows.T @ posterior.reshape(units, starts * size)).reshape(-1, size, starts, size)
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
        block[:] = (table.rows[first : first + units] @ log_chances).reshape(block.shape)
        block += log_prior
        if heat is not None:
            block *= heat[:, None]
        # This is always finite, because some label of the unit had a positive posterior, and c was computed from it.
        top = reduce(np.maximum, np.moveaxis(block, 2, 0))
        block -= top[..., None]
        np.exp(block, out=block)
        total = block @ np.ones(size)
        block /= total[..., None]
        likelihood += (table.number[first : first + units] * (top + np.log(total))).sum(axis=0)
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
        if (np.diagonal(agree) >= agree.max(axis=0)).all():
            continue  # no names agree better, and scipy.optimize takes long to load
        name, label = scipy.optimize.linear_sum_assignment(agree, maximize=True)
        if agree[name, label].sum() > np.trace(agree) + SLACK * len(votes):
            made.posterior[:, start] = made.posterior[:, start, label]
            made.prior[start] = made.prior[start, label]
            made.chances[:, :, start] = made.chances[:, :, start, label]
    return made


def _distinct(climb: Climb) -> Climb:
    """Drop each maximum that has nearly the same posterior as an earlier maximum."""
    distinct: list[int] = []
    for start in range(len(climb.prior)):
        apart = (np.abs(climb.posterior[:, start] - climb.posterior[:, other]).max(axis=1).mean() for other in distinct)
        if all(difference >= ALIKE for difference in apart):
            distinct.append(start)
    return climb.of(distinct)


# --- The Dawid-Skene model


# Number of answers that are added for each annotator and true label to compute posteriors. They are spread evenly over
# the labels (Perks 1947, Some Observations on Inverse Probability, Journal of the Institute of Actuaries 73(2)).
SMOOTHING = 1.0


def fit_dawid_skene(answers: Answers, *, seed: str = "") -> Fit:
    """Fit the Dawid-Skene model by maximum likelihood from many starts, with smoothed posteriors.

    Let n_aul be the number of answers l of annotator a on unit u. EM iterates

        p_k   = mean over u of T_uk                                      prior
        c_akl = sum over u of T_uk n_aul / sum over u, l of the same     confusion, 0 if a never met k
        T_uk  ~ p_k product over a, l of c_akl^n_aul                     posterior, normalized over k

    (Dawid and Skene 1979, Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm, Applied
    Statistics 28(1)). It is possible that none of the starts, which `maxima` describes, leads to the global maximum.

    Prior, confusion and likelihood are those of the best maximum, without smoothing. Posteriors are smoothed, because
    an error that was not observed would otherwise count as impossible: each c_akl gets SMOOTHING / K additional
    answers, where K is the number of labels in use. Posteriors are also averaged over all maxima with equal weight.
    With few answers, weights by likelihood would prefer maxima that fit chance errors.
    docs/explanation/agreement.md reports the effect of smoothing and averaging.

    The posteriors are not calibrated, because the model assumes that annotators err independently, even on the same
    unit. If the data do not distinguish some labels, their posteriors tie; `answer_table.winners` returns all labels
    that tie. If an annotator has several answers on one unit, they count as separate observations.

    seed: seed of the starts.
    """
    if not answers.units:
        return maxima(answers, MODEL).best()
    # Labels that nobody gave are excluded as true labels. If there are a hundred languages, this removes most of them.
    used = np.unique(answers.label)
    fewer = replace(answers, labels=tuple(answers.labels[k] for k in used), label=np.searchsorted(used, answers.label))
    climb = maxima(fewer, MODEL, seed=seed)
    counts = expected(fewer, climb.posterior)
    smoothed = _confusion(counts + SMOOTHING / used.size, counts)
    posteriors = posterior_of(fewer, climb.prior, smoothed)
    best = replace(climb.best(), posterior=posteriors.mean(axis=1))
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
    return maxima(answers, Model(_one_coin_chances), seed=seed).best()


def _one_coin_chances(counts: Floats, before: Floats) -> Floats:
    size = counts.shape[1]
    right = np.einsum("aksk->as", counts) / counts.sum(axis=(1, 3))
    wrong = (1 - right) / max(1, size - 1)
    same = np.eye(size, dtype=np.bool_)[None, :, None, :]
    chances: Floats = np.where(same, right[:, None, :, None], wrong[:, None, :, None])
    return chances


# --- MACE: an annotator either knows a unit's label, or guesses without regard to the unit.


KNOWING, HABIT = 0.5, 10.0  # the authors' symmetric Beta and Dirichlet priors


def fit_mace(answers: Answers, *, seed: str = "") -> Fit:
    """Fit MACE by variational EM.

    Annotator a knows the label with probability t_a, and otherwise answers l with probability x_al. All labels are
    equally likely to be the truth:

        c_akl = t_a [k = l] + (1 - t_a) x_al,   p_k = 1 / K

    (Hovy, Berg-Kirkpatrick, Vaswani and Hovy 2013, Learning Whom to Trust with MACE, NAACL-HLT). Of the answers k that
    a gave on units with true label k, a knew a share t_a / c_akk and guessed the rest. All other answers of a are
    guesses.

    t and x are computed from n, the expected counts of known answers, of guesses, and of guesses by label, as
    exp(digamma(n + prior)) / exp(digamma(s)), where s is the sum of n + prior. These weights add up to less than 1, and
    so does each row of the confusion. The likelihood is computed with the same weights. The authors also use it to
    choose among starts.

    seed: seed of the starts.
    """
    return maxima(answers, Model(_mace_chances, uniform=True), seed=seed).best()


def _mace_chances(counts: Floats, before: Floats) -> Floats:
    label = np.arange(counts.shape[1])
    # If the answer differs from the true label, it is a guess, and its probability does not depend on the true label.
    # The next label therefore represents all true labels for which the answer is wrong.
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
# GLAD is used to show which units are hard. The accuracy of its labels is only measured where true labels are
# available.


MEAN = 1.0  # prior mean of ability and of log ease; their standard deviation is 1
GLAD_ROUNDS, CLOSE = 1000, 1e-8  # maximum number of EM rounds, and the gain per answer below which EM stops
NEWTON_STEPS = 3  # Newton steps per M step


@dataclass(frozen=True)
class GladFit:
    """Fitted GLAD model.

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

    Let x_a be the ability of annotator a, and y_u the ease of unit u. All labels are equally likely to be the truth,
    and

        probability that a is right on u = 1 / (1 + exp(-x_a y_u)),   all wrong labels equally likely

    (Whitehill, Ruvolo, Wu, Bergsma and Movellan 2009, Whose Vote Should Count More: Optimal Integration of Labels from
    Labelers of Unknown Expertise, NIPS 22). As in that article, x_a and log y_u have normal priors with mean and
    variance 1, and EM starts from their means.

    seed: not used, because nothing is random. It is accepted so that all models have the same signature.
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
        converged = abs(objective - before) <= CLOSE * len(answers.unit)
    return GladFit(
        posterior.reshape(units, size), parameters[:people], np.exp(parameters[people:]), objective, rounds, converged
    )


def _glad_posterior(answers: Answers, parameters: Floats) -> tuple[Floats, float]:
    """Return the posterior of each unit's true label (U, K), and the objective.

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
    """Raise the expected objective by Newton steps, which alternate between abilities and log ease.

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
