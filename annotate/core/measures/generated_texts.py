"""BLEU-4 and chrF of generated texts as sacrebleu computes them, between 0 and 1, with bootstrap intervals over texts.

For BLEU, texts are lower-cased as in XGLUE's evaluation, and tokenized by mteval v13a. BLEU is therefore meaningless
for scripts without spaces (Papineni et al. 2002; Post 2018, A Call for Clarity in Reporting BLEU Scores). BLEU4_CHAR
compares character n-grams instead. chrF also compares character n-grams, so it suits all languages (Popović 2015). A
text can have several references.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import zip_longest
from typing import Any

import numpy as np

from annotate.core.aggregation.answer_table import Floats
from annotate.core.estimation.resampling import bootstrap

BLEU4, BLEU4_CHAR, CHRF = "bleu4", "bleu4_char", "chrf"
# sacrebleu's module, class and options for each measure.
METRICS: Mapping[str, tuple[str, str, dict[str, Any]]] = {
    BLEU4: ("sacrebleu.metrics.bleu", "BLEU", {"lowercase": True, "force": True}),
    CHRF: ("sacrebleu.metrics.chrf", "CHRF", {}),
}
_VARIANTS = {BLEU4_CHAR: ("sacrebleu.metrics.bleu", "BLEU", {"lowercase": True, "force": True, "tokenize": "char"})}


class MissingExtra(Exception):
    """A package is missing because one of Assay's extras is not installed.

    what: what requires the package; the subject of the message
    packages: names of the packages to install
    extra: name of the extra that contains them
    """

    def __init__(self, what: str, packages: str, extra: str) -> None:
        super().__init__(f"{what} requires Assay's extra {extra}: pip install {packages}")


@cache
def _metric(measure: str) -> Any:
    """Return sacrebleu's metric. Raise MissingExtra if sacrebleu is not installed."""
    module, name, options = {**METRICS, **_VARIANTS}[measure]
    try:
        return getattr(import_module(module), name)(**options)
    except ImportError:
        raise MissingExtra("chrF" if measure == CHRF else "BLEU", "sacrebleu", "text") from None


@dataclass(frozen=True)
class Generated:
    """A score over all texts, with a bootstrap interval over texts.

    value: the score; None if there are no texts.
    low, high: ends of the interval; None if there are fewer than 20 texts.
    texts: number of texts.
    """

    value: float | None
    low: float | None
    high: float | None
    texts: int


def corpus_score(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, seed: str, measure: str = BLEU4
) -> Generated:
    """Compute BLEU-4 or chrF.

    hypotheses: generated texts.
    references: references of each text, at least one, in the same order.
    seed: seed of the bootstrap.

    Raise ValueError if the numbers of texts and references differ.
    """
    if len(hypotheses) != len(references):
        raise ValueError(
            f"There are {len(hypotheses)} texts for {len(references)} references. Each reference requires one text."
        )
    if not hypotheses:
        return Generated(None, None, None, 0)
    rows = counts(hypotheses, references, measure)
    low, high = bootstrap(rows, lambda total: float(scores(total[:, None], measure)[0]), seed=seed)
    return Generated(float(scores(rows.sum(axis=0)[:, None], measure)[0]), low, high, len(hypotheses))


def signature(measure: str = BLEU4) -> str:
    """Return sacrebleu's signature, which shows whether two scores are comparable."""
    return str(_metric(measure).get_signature())


def counts(hypotheses: Sequence[str], references: Sequence[Sequence[str]], measure: str = BLEU4) -> Floats:
    """Return the n-gram matches and lengths of each text, used to compute the score, (n, columns)."""
    streams = list(zip_longest(*references))
    return np.array(_metric(measure)._extract_corpus_statistics(hypotheses, streams), dtype=np.float64)


def scores(sums: Floats, measure: str = BLEU4) -> Floats:
    """Return the score of each of several sums of counts, (times,).

    sums: sums of rows from `counts`, (columns, times).
    """
    metric = _metric(measure)
    return np.array([_share(metric._compute_score_from_stats(row)) for row in sums.T.astype(int).tolist()])


def _share(score: Any) -> float:
    """Convert a score out of 100 to a share. A perfect score may exceed 1 by rounding error."""
    return min(1.0, float(score.score) / 100)
