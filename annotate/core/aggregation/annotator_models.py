"""Models that estimate true labels and annotator errors jointly: Dawid-Skene, one-coin, MACE and GLAD.

The models give a second opinion and never replace the majority. quality/agreement_statistics.py decides where to show
their results.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy

from annotate.core.aggregation import latent_models
from annotate.core.aggregation.answer_table import Answers, Floats

# Number of answers that are added for each annotator and true label to compute posteriors. They are spread evenly over
# the labels (Perks 1947, Some Observations on Inverse Probability, Journal of the Institute of Actuaries 73(2)).
SMOOTHING = 1.0


def fit_dawid_skene(
    answers: Answers,
    *,
    seed: str = "",
    tolerance: float = latent_models.CONVERGED,
    longest: int = latent_models.LONGEST,
) -> latent_models.Fit:
    """Fit the Dawid-Skene model by maximum likelihood from many starts, with smoothed posteriors.

    Let n_aul be the number of answers l of annotator a on unit u. EM iterates

        p_k   = mean over u of T_uk                                      prior
        c_akl = sum over u of T_uk n_aul / sum over u, l of the same     confusion, 0 if a never met k
        T_uk  ~ p_k product over a, l of c_akl^n_aul                     posterior, normalized over k

    (Dawid and Skene 1979, Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm, Applied
    Statistics 28(1)). latent_models.py draws the starts. It is possible that none of them leads to the global maximum.

    Prior, confusion and likelihood are those of the best maximum, without smoothing. Posteriors are smoothed, because
    an error that was not observed would otherwise count as impossible: each c_akl gets SMOOTHING / K additional
    answers, where K is the number of labels in use. Posteriors are also averaged over all maxima with equal weight.
    With few answers, weights by likelihood would prefer maxima that fit chance errors.
    docs/explanation/agreement.md reports the effect of smoothing and averaging.

    The posteriors are not calibrated, because the model assumes that annotators err independently, even on the same
    unit. If the data do not distinguish some labels, their posteriors tie; `answer_table.winners` returns all labels
    that tie. If an annotator has several answers on one unit, they count as separate observations.

    seed: seed of the starts.
    tolerance, longest: stopping rule, see latent_models.maxima.
    """
    if not answers.units:
        return latent_models.maxima(answers, MODEL).best()
    # A label that nobody gave is not the true label of any unit. If there are a hundred languages, this excludes most
    # of them.
    used = np.unique(answers.label)
    fewer = replace(answers, labels=tuple(answers.labels[k] for k in used), label=np.searchsorted(used, answers.label))
    maxima = latent_models.maxima(fewer, MODEL, seed=seed, tolerance=tolerance, longest=longest)
    counts = latent_models.expected(fewer, maxima.posterior)
    smoothed = _confusion(counts + SMOOTHING / used.size, counts)
    posteriors = latent_models.posterior_of(fewer, maxima.prior, smoothed)
    best = replace(maxima.best(), posterior=posteriors.mean(axis=1))
    size, people = len(answers.labels), len(answers.annotators)
    posterior, confusion = np.zeros((len(answers.units), size)), np.zeros((people, size, size))
    prior = np.zeros(size)
    posterior[:, used], confusion[:, used[:, None], used], prior[used] = best.posterior, best.confusion, best.prior
    return replace(best, posterior=posterior, confusion=confusion, prior=prior)


def _confusion(counts: Floats, before: Floats) -> Floats:
    met = counts.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(counts, met, out=np.zeros_like(counts), where=met > 0)
    return shares


MODEL = latent_models.Model(_confusion)


# --- The one-coin model: each annotator has a single accuracy, and all wrong labels are equally likely.


def fit_one_coin(answers: Answers, *, seed: str = "") -> latent_models.Fit:
    """Fit the one-coin model, with one accuracy q_a per annotator.

        q_a   = sum over u, k of T_uk n_auk / number of a's answers
        c_akl = q_a if l is k, (1 - q_a) / (K - 1) if not

    (Zhang, Chen, Zhou and Jordan 2016, Spectral Methods Meet EM, Journal of Machine Learning Research 17(102), section
    2). The model has far fewer parameters than the Dawid-Skene model, so it suits data with few answers and many
    labels.

    seed: seed of the starts (latent_models.py).
    """
    return latent_models.maxima(answers, latent_models.Model(_one_coin_chances), seed=seed).best()


def _one_coin_chances(counts: Floats, before: Floats) -> Floats:
    size = counts.shape[1]
    right = np.einsum("aksk->as", counts) / counts.sum(axis=(1, 3))
    wrong = (1 - right) / max(1, size - 1)
    same = np.eye(size, dtype=np.bool_)[None, :, None, :]
    chances: Floats = np.where(same, right[:, None, :, None], wrong[:, None, :, None])
    return chances


# --- MACE: an annotator either knows a unit's label, or guesses without regard to the unit.


# The authors' settings. KNOWING and HABIT are the symmetric Beta and Dirichlet priors of the variational version. The
# plain version adds ADDED, divided by the number of labels, to each expected count.
KNOWING, HABIT, ADDED = 0.5, 10.0, 0.01


def fit_mace(answers: Answers, *, seed: str = "", variational: bool = True) -> latent_models.Fit:
    """Fit MACE by EM.

    Annotator a knows the label with probability t_a, and otherwise answers l with probability x_al. All labels are
    equally likely to be the truth:

        c_akl = t_a [k = l] + (1 - t_a) x_al,   p_k = 1 / K

    (Hovy, Berg-Kirkpatrick, Vaswani and Hovy 2013, Learning Whom to Trust with MACE, NAACL-HLT). Of the answers k that
    a gave on units with true label k, a knew a share t_a / c_akk and guessed the rest. All other answers of a are
    guesses.

    t and x are computed from n, the expected counts of known answers, of guesses, and of guesses by label. The plain
    version normalizes n + ADDED / K. The variational version uses exp(digamma(n + prior)) / exp(digamma(s)), where s is
    the sum of n + prior. These weights add up to less than 1, and so does each row of the confusion. The likelihood is
    computed with the same weights. The authors also use it to choose among starts.

    seed: seed of the starts (latent_models.py).
    variational: whether to use the variational version.
    """
    added = ADDED / max(1, len(answers.labels))
    chances = (
        partial(_mace_chances, weigh=_variational, knowing=KNOWING, habit=HABIT)
        if variational
        else partial(_mace_chances, weigh=_plain, knowing=added, habit=added)
    )
    return latent_models.maxima(answers, latent_models.Model(chances, uniform=True), seed=seed).best()


def _mace_chances(
    counts: Floats, before: Floats, *, weigh: Callable[[Floats, float], Floats], knowing: float, habit: float
) -> Floats:
    label = np.arange(counts.shape[1])
    # If the answer differs from the true label, it is a guess, and its probability does not depend on the true label.
    # The next label therefore represents all true labels for which the answer is wrong.
    unknown = before[:, label, :, (label + 1) % len(label)].transpose(1, 0, 2)
    informed = np.maximum(0, np.einsum("alsl->als", counts) * (1 - unknown / np.einsum("alsl->als", before)))
    habits = counts.sum(axis=3) - informed
    knows, guesses = np.moveaxis(weigh(np.stack([informed.sum(axis=1), habits.sum(axis=1)], axis=1), knowing), 1, 0)
    guessed = guesses[:, None] * weigh(habits, habit)
    chances: Floats = guessed[..., None] + np.eye(len(label))[None, :, None, :] * knows[:, None, :, None]
    return chances


def _plain(numbers: Floats, prior: float) -> Floats:
    shares: Floats = (numbers + prior) / (numbers + prior).sum(axis=1, keepdims=True)
    return shares


def _variational(numbers: Floats, prior: float) -> Floats:
    digamma, raised = scipy.special.digamma, numbers + prior
    weights: Floats = np.exp(digamma(raised) - digamma(raised.sum(axis=1, keepdims=True)))
    return weights


# --- GLAD: the probability of a right answer depends on the annotator's ability and the unit's ease.
#
# GLAD is used to show which units are hard. The accuracy of its labels is only measured where true labels are
# available.


MEAN = 1.0  # prior mean of ability and of log ease; their standard deviation is 1
ROUNDS, CLOSE = 1000, 1e-8  # maximum number of EM rounds, and the gain per answer below which EM stops
STEPS = 3  # Newton steps per M step


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
    posterior, objective = _expect(answers, parameters)
    rounds, converged = 0, not units
    while rounds < ROUNDS and not converged:
        rounds += 1
        parameters = _maximize(answers, posterior[answers.unit, answers.label], parameters)
        before = objective
        posterior, objective = _expect(answers, parameters)
        converged = abs(objective - before) <= CLOSE * len(answers.unit)
    return GladFit(
        posterior.reshape(units, size), parameters[:people], np.exp(parameters[people:]), objective, rounds, converged
    )


def _expect(answers: Answers, parameters: Floats) -> tuple[Floats, float]:
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


def _maximize(answers: Answers, right: Floats, parameters: Floats) -> Floats:
    """Raise the expected objective by Newton steps, which alternate between abilities and log ease.

    right: probability that each answer is right.
    parameters: see `_expect`.
    """
    people = len(answers.annotators)
    parameters = parameters.copy()
    for _ in range(STEPS):
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
