"""GLAD: whether an answer is right depends on the ability of the annotator and the ease of the unit.

A second opinion beside the majority, measured where true labels are given; it says which units are hard.
"""

from dataclasses import dataclass

import numpy as np
import scipy  # which loads its parts when they are first used

from annotate.core.answers import Answers, Floats

MEAN = 1.0  # of ability, and of the logarithm of ease, before any answer is seen; their standard deviation is 1
ROUNDS, CLOSE = 1000, 1e-8  # of EM, and what a round must add to the objective, per answer, for another one
STEPS = 3  # of each maximization


@dataclass(frozen=True)
class Fit:
    """What the model makes of the answers.

    posterior: of each unit's true label, (U, K). ability: of each annotator, (A,). ease: of each unit, above 0, (U,).
    objective: the logarithm of the likelihood times the priors. rounds, converged: as latent.Fit has them.
    """

    posterior: Floats
    ability: Floats
    ease: Floats
    objective: float
    rounds: int
    converged: bool


def fit(answers: Answers, *, seed: str = "") -> Fit:
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
    return Fit(posterior.reshape(units, size), found[:people], np.exp(found[people:]), objective, rounds, converged)


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
