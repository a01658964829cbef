"""Dawid and Skene's model: labels and each annotator's errors, estimated from one another.

A second opinion beside the majority, never instead of it; where it is shown, quality/agreement.py decides.
"""

from dataclasses import replace

import numpy as np

from annotate.core import latent
from annotate.core.answers import Answers, Floats

# So many more answers on units of each true label are each annotator's, spread evenly over the labels, when posteriors
# are computed (Perks 1947, Some Observations on Inverse Probability, Journal of the Institute of Actuaries 73(2)).
SMOOTHING = 1.0


def fit(
    answers: Answers, *, seed: str = "", tolerance: float = latent.CONVERGED, longest: int = latent.LONGEST
) -> latent.Fit:
    """The greatest likelihood that many starts found, which may not be the greatest there is, and posteriors from all
    the maxima found, smoothed.

    With n_aul answers l of annotator a on unit u, EM repeats

        p_k   = mean over u of T_uk                                      prior
        c_akl = sum over u of T_uk n_aul / sum over u, l of the same     confusion, 0 where a never met k
        T_uk  ~ p_k product over a, l of c_akl^n_aul                     posterior, summing to 1 over k

    (Dawid and Skene 1979, Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm, Applied
    Statistics 28(1)), from the starts that latent.py draws by `seed`. Prior, confusion and likelihood are those of the
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
        return latent.maxima(answers, MODEL).best()
    # A label that nobody gave is the truth of no unit; of a hundred languages most are such.
    used = np.unique(answers.label)
    fewer = replace(answers, labels=tuple(answers.labels[k] for k in used), label=np.searchsorted(used, answers.label))
    found = latent.maxima(fewer, MODEL, seed=seed, tolerance=tolerance, longest=longest)
    given = latent.expected(fewer, found.posterior)
    smoothed = _confusion(given + SMOOTHING / used.size, given)
    each = latent.posterior_of(fewer, found.prior, smoothed)
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


MODEL = latent.Model(_confusion)
