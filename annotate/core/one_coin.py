"""The one-coin model: each annotator has one accuracy, and every wrong label is as likely as another."""

import numpy as np

from annotate.core import latent
from annotate.core.answers import Answers, Floats


def fit(answers: Answers, *, seed: str = "") -> latent.Fit:
    """The greatest likelihood of one accuracy q_a for each annotator, from the starts that latent.py draws by `seed`.

        q_a   = sum over u, k of T_uk n_auk / number of a's answers
        c_akl = q_a if l is k, (1 - q_a) / (K - 1) if not

    (Zhang, Chen, Zhou and Jordan 2016, Spectral Methods Meet EM, Journal of Machine Learning Research 17(102), section
    2.) It has far fewer numbers to estimate than Dawid and Skene's model: for few answers, and many labels.
    """
    return latent.maxima(answers, latent.Model(_chances), seed=seed).best()


def _chances(given: Floats, before: Floats) -> Floats:
    size = given.shape[1]
    right = np.einsum("aksk->as", given) / given.sum(axis=(1, 3))
    wrong = (1 - right) / max(1, size - 1)
    same = np.eye(size, dtype=np.bool_)[None, :, None, :]
    chances: Floats = np.where(same, right[:, None, :, None], wrong[:, None, :, None])
    return chances
