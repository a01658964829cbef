"""BLEU-4 of generated texts as in XGLUE's evaluation: sacrebleu's lower-cased corpus BLEU, between 0 and 1.

See Papineni et al. 2002, ACL; Post 2018, A Call for Clarity in Reporting BLEU Scores, WMT. Tokenization is mteval v13a
in every language, so the score is meaningless for languages written without spaces.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from annotate.core.aggregation.answer_table import Floats
from annotate.core.estimation.resampling import bootstrap

METRIC = BLEU(lowercase=True)


@dataclass(frozen=True)
class Generated:
    """Corpus BLEU over all pairs, with a bootstrap interval over pairs.

    value: BLEU; None without pairs.
    low, high: ends of the interval; None with fewer than 20 pairs.
    pairs: number of pairs.
    """

    value: float | None
    low: float | None
    high: float | None
    pairs: int


def corpus_bleu(said: Sequence[str], meant: Sequence[str], *, seed: str) -> Generated:
    """Compute corpus BLEU.

    said: generated texts.
    meant: the reference for each text, in the same order.
    seed: seed of the bootstrap.

    Raises ValueError if the numbers of texts and references differ.
    """
    if len(said) != len(meant):
        raise ValueError(f"{len(said)} texts for {len(meant)} references; give one for each.")
    if not said:
        return Generated(None, None, None, 0)
    score = METRIC.corpus_score(said, [meant])
    low, high = bootstrap(counts(said, meant), lambda total: float(scores(total[:, None])[0]), seed=seed)
    return Generated(_share(score.score), low, high, len(said))


def signature() -> str:
    """Return sacrebleu's signature, which shows whether two scores are comparable."""
    return str(METRIC.get_signature())


def counts(said: Sequence[str], meant: Sequence[str]) -> Floats:
    """Return the counts that BLEU needs for each pair: both lengths, matching n-grams and total n-grams, (n, 10)."""
    found = []
    for hypothesis, reference in zip(said, meant, strict=True):
        one = METRIC.corpus_score([hypothesis], [[reference]])
        found.append([one.sys_len, one.ref_len, *one.counts, *one.totals])
    return np.array(found, dtype=np.float64)


def scores(sums: Floats) -> Floats:
    """Return BLEU for sums of such counts, (10, times)."""
    found = []
    for said, meant, *rest in sums.T.astype(int).tolist():
        order = len(rest) // 2
        made = BLEU.compute_bleu(rest[:order], rest[order:], said, meant, METRIC.smooth_method)
        found.append(_share(float(made.score)))
    return np.array(found)


def _share(score: float) -> float:
    """Convert a score out of 100 to a share. A perfect score may exceed 1 by rounding error."""
    return min(1.0, score / 100)
