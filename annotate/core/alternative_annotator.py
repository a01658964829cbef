"""The alternative annotator test: whether a judge may replace an annotator.

Calderon, Reichart and Dror 2025, The Alternative Annotator Test for LLM-as-a-Judge, Proceedings of ACL 2025, arXiv
2501.10970, section 3. Each annotator is left out once, and both the judge and that annotator are held against the
others who answered the same units.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import scipy

from annotate.core.agreement import own_and_rest
from annotate.core.answers import Answers, Bools, Floats, Ints
from annotate.core.comparing import benjamini_yekutieli
from annotate.core.estimation import SLACK
from annotate.core.judge_agreement import places_of_judge

EPSILON = 0.15  # of skilled annotators; experts 0.2, crowd workers 0.1 (section 3.3 of the article)
LEAST_UNITS = 30  # of an annotator, for the t-test (section 3.2)
LEAST_ANNOTATORS = 3
LEVEL = 0.05  # expected share of false rejections
PASS = 0.5  # the least winning rate of a judge that passes


class NoVerdict(Enum):
    """Why there is no verdict; the value is the sentence."""

    FEW_ANNOTATORS = "The test needs three annotators; ask more people for answers on the units that were read."
    FEW_UNITS = "The test needs three annotators with 30 units each that others answered too; ask for more answers."


@dataclass(frozen=True)
class LeftOut:
    """The judge against one annotator, who is left out of the comparison.

    annotator: who is left out.
    units: how many of the annotator's units the judge labelled and somebody else answered.
    judge: the share of them on which the judge is at least as close to the others as the annotator is.
    own: the share on which the annotator is at least as close to them as the judge is.
    p: the p-value of the hypothesis that the judge does no better than the annotator less epsilon.
    adjusted: the same by Benjamini and Yekutieli; p and adjusted are None where there are too few units.
    """

    annotator: Hashable
    units: int
    judge: float | None
    own: float | None
    p: float | None = None
    adjusted: float | None = None

    @property
    def judge_wins(self) -> bool:
        return self.adjusted is not None and self.adjusted <= LEVEL


@dataclass(frozen=True)
class AlternativeAnnotatorTest:
    """winning_rate: omega, the share of the annotators tested against whom the judge wins.
    advantage: rho, the mean over them of the share of units on which the judge is at least as close to the others.
    passed: whether the winning rate is 0.5 or more; None where there is no verdict.
    annotators: every annotator, in the order of the answers.
    reasons: why there is no verdict.
    """

    winning_rate: float | None
    advantage: float | None
    passed: bool | None
    annotators: tuple[LeftOut, ...]
    reasons: tuple[NoVerdict, ...] = ()


def alternative_annotator_test(
    answers: Answers, judge: Ints, *, epsilon: float = EPSILON, unlike: Floats | None = None
) -> AlternativeAnnotatorTest:
    """Whether the judge is as good as an annotator, given what it saves.

    answers: people's answers, of U units and K labels.
    judge: the judge's label of each unit, its place in `answers.labels`, -1 where it has none, (U,).
    epsilon: how much worse than an annotator the judge may be, as a share of units.
    unlike: squared distances of labels, (K, K): an answer scores minus the root of its mean squared distance from the
        others' answers. By default an answer scores the share of the others' answers that are the same.

    With W_f and W_h, whether the judge and the annotator left out score at least as high as the other on a unit, the
    hypothesis that the mean of W_h - W_f is epsilon or more is tested by a one-sided t-test for each annotator with
    LEAST_UNITS units, and the p-values are adjusted by Benjamini and Yekutieli.

    ValueError where `judge` is not one place for each unit, or epsilon is not from 0 to below 1.
    """
    judge = places_of_judge(answers, judge)
    if not 0 <= epsilon < 1:
        raise ValueError(f"An epsilon of {epsilon} is not possible; give a share of units from 0 to below 1.")
    counts = answers.counts()
    found = []
    for place, annotator in enumerate(answers.annotators):
        own = np.flatnonzero((answers.annotator == place) & (judge[answers.unit] >= 0))
        units, both = own_and_rest(answers, counts, own)
        found.append(_left_out(annotator, both, judge[units], epsilon, unlike))
    return _verdict(found)


def _left_out(annotator: Hashable, both: Ints, judge: Ints, epsilon: float, unlike: Floats | None) -> LeftOut:
    """both: the annotator's answers by label, then the others', on each unit that both answered, (units, 2K); judge:
    the judge's labels of these units, (units,)."""
    units, size = len(both), both.shape[1] // 2
    if not units:
        return LeftOut(annotator, 0, None, None)
    own, rest = both[:, :size], both[:, size:] / both[:, size:].sum(axis=1, keepdims=True)
    scores = rest if unlike is None else -np.sqrt(rest @ unlike)
    of_judge, of_own = scores[np.arange(units), judge], (scores * own).sum(axis=1) / own.sum(axis=1)
    judge_wins: Bools = of_judge >= of_own - SLACK
    own_wins: Bools = of_own >= of_judge - SLACK
    p = None
    if units >= LEAST_UNITS:
        p = _t_test(own_wins.astype(np.float64) - judge_wins, epsilon)
    return LeftOut(annotator, units, float(judge_wins.mean()), float(own_wins.mean()), p)


def _t_test(differences: Floats, epsilon: float) -> float:
    """The one-sided p-value of the hypothesis that their mean is epsilon or more."""
    off, spread = float(differences.mean()) - epsilon, float(differences.std(ddof=1))
    if not spread:
        return 0.0 if off < 0 else 1.0
    return float(scipy.special.stdtr(len(differences) - 1, off / spread * len(differences) ** 0.5))


def _verdict(found: list[LeftOut]) -> AlternativeAnnotatorTest:
    tested = [one for one in found if one.p is not None]
    adjusted = iter(benjamini_yekutieli([one.p for one in tested if one.p is not None]))
    annotators = tuple(one if one.p is None else replace(one, adjusted=next(adjusted)) for one in found)
    rate = sum(one.judge_wins for one in annotators) / len(tested) if tested else None
    advantage = sum(one.judge or 0.0 for one in tested) / len(tested) if tested else None
    if rate is None or len(tested) < LEAST_ANNOTATORS:
        reason = NoVerdict.FEW_UNITS if len(found) >= LEAST_ANNOTATORS else NoVerdict.FEW_ANNOTATORS
        return AlternativeAnnotatorTest(rate, advantage, None, annotators, (reason,))
    return AlternativeAnnotatorTest(rate, advantage, rate >= PASS, annotators)
