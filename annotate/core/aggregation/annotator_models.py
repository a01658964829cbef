"""Models that estimate true labels and annotators' errors together: Dawid-Skene, one-coin, MACE and GLAD.

A second opinion beside the majority, never instead of it; where it is shown, quality/agreement_statistics.py decides.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy

from annotate.core.aggregation import latent_models
from annotate.core.aggregation.answer_table import Answers, Floats

# So many more answers on units of each true label are each annotator's, spread evenly over the labels, when posteriors
# are computed (Perks 1947, Some Observations on Inverse Probability, Journal of the Institute of Actuaries 73(2)).
SMOOTHING = 1.0


def fit_dawid_skene(
    answers: Answers,
    *,
    seed: str = "",
    tolerance: float = latent_models.CONVERGED,
    longest: int = latent_models.LONGEST,
) -> latent_models.Fit:
    """The greatest likelihood that many starts found, which may not be the greatest there is, and posteriors from all
    the maxima found, smoothed.

    With n_aul answers l of annotator a on unit u, EM repeats

        p_k   = mean over u of T_uk                                      prior
        c_akl = sum over u of T_uk n_aul / sum over u, l of the same     confusion, 0 where a never met k
        T_uk  ~ p_k product over a, l of c_akl^n_aul                     posterior, summing to 1 over k

    (Dawid and Skene 1979, Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm, Applied
    Statistics 28(1)), from the starts that latent_models.py draws. Prior, confusion and likelihood are those of the
    best maximum, without smoothing: smoothed, they would not be a maximum. Without smoothing an error that was never
    seen counts as impossible, so in the posterior each c_akl has SMOOTHING / K answers more, K being the number of
    labels that anybody gave. And among maxima the likelihood prefers one that fits the chance errors of few answers, so
    the posterior is the mean over all of them, each weighing the same (docs/explanation/agreement.md has what either
    was worth). It is still no calibrated probability: people who err on the same units are taken to err each for
    themselves.

    Posteriors tie where nothing tells labels apart; `answers.winners` names all that tie. Several answers of one
    annotator on one unit count as so many observations.
    """
    if not answers.units:
        return latent_models.maxima(answers, MODEL).best()
    # A label that nobody gave is the truth of no unit; of a hundred languages most are such.
    used = np.unique(answers.label)
    fewer = replace(answers, labels=tuple(answers.labels[k] for k in used), label=np.searchsorted(used, answers.label))
    found = latent_models.maxima(fewer, MODEL, seed=seed, tolerance=tolerance, longest=longest)
    given = latent_models.expected(fewer, found.posterior)
    smoothed = _confusion(given + SMOOTHING / used.size, given)
    each = latent_models.posterior_of(fewer, found.prior, smoothed)
    best = replace(found.best(), posterior=each.mean(axis=1))
    size, people = len(answers.labels), len(answers.annotators)
    posterior, confusion = np.zeros((len(answers.units), size)), np.zeros((people, size, size))
    prior = np.zeros(size)
    posterior[:, used], confusion[:, used[:, None], used], prior[used] = best.posterior, best.confusion, best.prior
    return replace(best, posterior=posterior, confusion=confusion, prior=prior)


def _confusion(given: Floats, before: Floats) -> Floats:
    met = given.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(given, met, out=np.zeros_like(given), where=met > 0)
    return shares


MODEL = latent_models.Model(_confusion)


# --- The one-coin model: each annotator has one accuracy, and every wrong label is as likely as another.


def fit_one_coin(answers: Answers, *, seed: str = "") -> latent_models.Fit:
    """Fit the one-coin model: one accuracy q_a for each annotator. `seed` draws the starts (latent_models.py).

        q_a   = sum over u, k of T_uk n_auk / number of a's answers
        c_akl = q_a if l is k, (1 - q_a) / (K - 1) if not

    (Zhang, Chen, Zhou and Jordan 2016, Spectral Methods Meet EM, Journal of Machine Learning Research 17(102), section
    2.) It has far fewer numbers to estimate than Dawid and Skene's model: for few answers, and many labels.
    """
    return latent_models.maxima(answers, latent_models.Model(_one_coin_chances), seed=seed).best()


def _one_coin_chances(given: Floats, before: Floats) -> Floats:
    size = given.shape[1]
    right = np.einsum("aksk->as", given) / given.sum(axis=(1, 3))
    wrong = (1 - right) / max(1, size - 1)
    same = np.eye(size, dtype=np.bool_)[None, :, None, :]
    chances: Floats = np.where(same, right[:, None, :, None], wrong[:, None, :, None])
    return chances


# --- MACE: an annotator knows a unit's label, or else answers by a habit that does not look at the unit.


# As in the authors' program: the variational version's symmetric priors, Beta on knowing and Dirichlet on habits; and
# what the plain version adds to each expected number, over the number of labels.
KNOWING, HABIT, ADDED = 0.5, 10.0, 0.01


def fit_mace(answers: Answers, *, seed: str = "", variational: bool = True) -> latent_models.Fit:
    """Fit MACE by maximum likelihood. `seed` draws the starts (latent_models.py).

    Annotator a knows with chance t_a, and else answers l with chance x_al; every label is the truth as often:

        c_akl = t_a [k = l] + (1 - t_a) x_al,   p_k = 1 / K

    (Hovy, Berg-Kirkpatrick, Vaswani and Hovy 2013, Learning Whom to Trust with MACE, NAACL-HLT.) Of a's answers k on
    units whose truth is k, the share t_a / c_akk was known, and all other answers are habit. From these numbers n, of
    known and not, and of each habit, t and x are in turn (n + ADDED / K) / sum of the same; or, variational,
    exp(digamma(n + prior)) / exp(digamma(sum of the same)). The latter sum to less than 1 over the answers, so the
    confusion does, and the likelihood is that of these weights, by which the authors choose among starts too.
    """
    added = ADDED / max(1, len(answers.labels))
    chances = (
        partial(_mace_chances, weigh=_variational, knowing=KNOWING, habit=HABIT)
        if variational
        else partial(_mace_chances, weigh=_plain, knowing=added, habit=added)
    )
    return latent_models.maxima(answers, latent_models.Model(chances, uniform=True), seed=seed).best()


def _mace_chances(
    given: Floats, before: Floats, *, weigh: Callable[[Floats, float], Floats], knowing: float, habit: float
) -> Floats:
    label = np.arange(given.shape[1])
    # An answer that is not the truth is habit, whatever the truth is: the next label serves for all.
    unknown = before[:, label, :, (label + 1) % len(label)].transpose(1, 0, 2)
    known = np.maximum(0, np.einsum("alsl->als", given) * (1 - unknown / np.einsum("alsl->als", before)))
    habits = given.sum(axis=3) - known
    knows, guesses = np.moveaxis(weigh(np.stack([known.sum(axis=1), habits.sum(axis=1)], axis=1), knowing), 1, 0)
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


# --- GLAD: whether an answer is right depends on the ability of the annotator and the ease of the unit.
#
# A second opinion beside the majority, measured where true labels are given; it says which units are hard.


MEAN = 1.0  # of ability, and of the logarithm of ease, before any answer is seen; their standard deviation is 1
ROUNDS, CLOSE = 1000, 1e-8  # of EM, and what a round must add to the objective, per answer, for another one
STEPS = 3  # of each maximization


@dataclass(frozen=True)
class GladFit:
    """What the model makes of the answers.

    posterior: of each unit's true label, (U, K). ability: of each annotator, (A,). ease: of each unit, above 0, (U,).
    objective: the logarithm of the likelihood times the priors. rounds, converged: as latent.GladFit has them.
    """

    posterior: Floats
    ability: Floats
    ease: Floats
    objective: float
    rounds: int
    converged: bool


def fit_glad(answers: Answers, *, seed: str = "") -> GladFit:
    """With ability x_a of annotator a, ease y_u of unit u, and every label as often the truth,

        chance that a is right on u = 1 / (1 + exp(-x_a y_u)),   each wrong label being as likely as another

    (Whitehill, Ruvolo, Wu, Bergsma and Movellan 2009, Whose Vote Should Count More: Optimal Integration of Labels from
    Labelers of Unknown Expertise, NIPS 22.) As there, x_a and log y_u have normal priors of mean and variance 1, and EM
    climbs from their means to a maximum. Nothing is random; `seed` is there as the other models have it.
    """
    units, people, size = len(answers.units), len(answers.annotators), len(answers.labels)
    found = np.full(people + units, MEAN)
    posterior, objective = _expect(answers, found)
    rounds, converged = 0, not units
    while rounds < ROUNDS and not converged:
        rounds += 1
        found = _maximize(answers, posterior[answers.unit, answers.label], found)
        before = objective
        posterior, objective = _expect(answers, found)
        converged = abs(objective - before) <= CLOSE * len(answers.unit)
    return GladFit(posterior.reshape(units, size), found[:people], np.exp(found[people:]), objective, rounds, converged)


def _expect(answers: Answers, found: Floats) -> tuple[Floats, float]:
    """The posterior of each unit's true label, (U, K), and the objective. found: abilities, and logarithms of ease."""
    size = len(answers.labels)
    scores = np.full((len(answers.units), size), -np.log(max(1, size)))
    product = _product(answers, found)
    wrong = scipy.special.log_expit(-product) - np.log(max(1, size - 1))
    scores += np.bincount(answers.unit, weights=wrong, minlength=len(scores))[:, None]
    np.add.at(scores, (answers.unit, answers.label), scipy.special.log_expit(product) - wrong)
    likelihood = scipy.special.logsumexp(scores, axis=1) if scores.size else np.zeros(len(scores))
    objective = float(likelihood.sum() - ((found - MEAN) ** 2).sum() / 2)
    return np.exp(scores - likelihood[:, None]), objective


def _maximize(answers: Answers, right: Floats, found: Floats) -> Floats:
    """Abilities and logarithms of ease that raise the expected objective: each in turn by a Newton step, as the other
    leaves one number for each annotator, and for each unit. right: the chance that each answer is."""
    people = len(answers.annotators)
    found = found.copy()
    for _ in range(STEPS):
        for is_ease, of in ((False, answers.annotator), (True, answers.unit)):
            part = slice(people, None) if is_ease else slice(0, people)
            product, ease = _product(answers, found), np.exp(found[people + answers.unit])
            chance = scipy.special.expit(product)
            by = product if is_ease else ease  # what a product grows by with the number
            slope = np.bincount(of, weights=(right - chance) * by)
            bend = np.bincount(of, weights=chance * (1 - chance) * by**2) + 1
            bend += np.maximum(0, -slope) if is_ease else 0
            found[part] += np.clip((slope - (found[part] - MEAN)) / bend, -1, 1)
    return found


def _product(answers: Answers, found: Floats) -> Floats:
    people = len(answers.annotators)
    product: Floats = found[answers.annotator] * np.exp(found[people + answers.unit])
    return product
