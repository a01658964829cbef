"""MACE: an annotator knows a unit's label, or else answers by a habit that does not look at the unit."""

from collections.abc import Callable
from functools import partial

import numpy as np
import scipy

from annotate.core import latent
from annotate.core.answers import Answers, Floats

# As in the authors' program: the variational version's symmetric priors, Beta on knowing and Dirichlet on habits; and
# what the plain version adds to each expected number, over the number of labels.
KNOWING, HABIT, ADDED = 0.5, 10.0, 0.01


def fit(answers: Answers, *, seed: str = "", variational: bool = True) -> latent.Fit:
    """The greatest likelihood that MACE has from the starts which latent.py draws by `seed`.

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
        partial(_chances, weigh=_variational, knowing=KNOWING, habit=HABIT)
        if variational
        else partial(_chances, weigh=_plain, knowing=added, habit=added)
    )
    return latent.maxima(answers, latent.Model(chances, uniform=True), seed=seed).best()


def _chances(
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
