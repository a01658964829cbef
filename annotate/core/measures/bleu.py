"""BLEU-4 of generated texts, as XGLUE's evaluation has it: sacrebleu's corpus BLEU in lower case, between 0 and 1.

Papineni et al. 2002, ACL; Post 2018, A Call for Clarity in Reporting BLEU Scores, WMT. Its tokens are those of mteval
v13a in every language, so it is useless for a language written without spaces.
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
    """BLEU over all pairs, not the mean of each; the interval is over pairs drawn again.

    low, high: None of fewer than 20.
    """

    value: float | None
    low: float | None
    high: float | None
    pairs: int


def corpus_bleu(said: Sequence[str], meant: Sequence[str], *, seed: str) -> Generated:
    """said: one text for each that was meant, in the same order."""
    if len(said) != len(meant):
        raise ValueError(f"{len(said)} texts for {len(meant)} references; give one for each.")
    if not said:
        return Generated(None, None, None, 0)
    score = METRIC.corpus_score(said, [meant])
    low, high = bootstrap(counts(said, meant), lambda total: float(scores(total[:, None])[0]), seed=seed)
    return Generated(_share(score.score), low, high, len(said))


def signature() -> str:
    """Sacrebleu's own, by which two scores that were computed are known to be comparable."""
    return str(METRIC.get_signature())


def counts(said: Sequence[str], meant: Sequence[str]) -> Floats:
    """Of each pair what BLEU is computed from: both lengths, and n-grams that match and that there are, (n, 10)."""
    found = []
    for hypothesis, reference in zip(said, meant, strict=True):
        one = METRIC.corpus_score([hypothesis], [[reference]])
        found.append([one.sys_len, one.ref_len, *one.counts, *one.totals])
    return np.array(found, dtype=np.float64)


def scores(sums: Floats) -> Floats:
    """BLEU of sums of such counts, (10, times)."""
    found = []
    for said, meant, *rest in sums.T.astype(int).tolist():
        order = len(rest) // 2
        made = BLEU.compute_bleu(rest[:order], rest[order:], said, meant, METRIC.smooth_method)
        found.append(_share(float(made.score)))
    return np.array(found)


def _share(score: float) -> float:
    """A score of 100 as a share; a perfect score may exceed 1 by the last bit of a float."""
    return min(1.0, score / 100)
