"""Agreement of a judge with annotators, and the alternative annotator test: whether the judge can replace an annotator.

The test (Calderon, Reichart and Dror 2025, The Alternative Annotator Test for LLM-as-a-Judge, Proceedings of ACL 2025,
arXiv 2501.10970, section 3) leaves out one annotator at a time. On that annotator's units, it checks whether the judge
or the annotator is closer to the other annotators.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import scipy

from annotate.core.aggregation.answer_table import Answers, Bools, Floats, Ints
from annotate.core.agreement.coefficients import REPLICATES, Measure, alpha, counts_with_others
from annotate.core.estimation.differences import Difference, benjamini_yekutieli
from annotate.core.estimation.proportions import SLACK, UNKNOWN, Estimate
from annotate.core.estimation.resampling import jackknife, jackknife_difference, ratio

# --- Agreement of a judge with annotators, and of annotators with each other, on the same units.


@dataclass(frozen=True)
class JudgeAgreement:
    """Mean pairwise agreement of a judge and annotators. Units have equal weight. Intervals are clustered by unit.

    judge: agreement of the judge with the annotators, on all units labelled by both.
    judge_shared: the same, on the units with two or more annotators only.
    people: agreement of annotators with each other, on the same units as `judge_shared`.
    difference: `judge_shared` minus `people`; None with fewer than 20 units, or if all units have the same difference.
    judge_alpha: Krippendorff's alpha of the judge and the annotators together, on the same units as `judge_shared`.
    people_alpha: Krippendorff's alpha of the annotators only, on the same units.
    units: number of units labelled by the judge and by annotators.
    units_shared: number of these units with two or more annotators.
    """

    judge: Estimate
    judge_shared: Estimate
    people: Estimate
    difference: Difference | None
    judge_alpha: Measure
    people_alpha: Measure
    units: int
    units_shared: int


def judge_agreement(answers: Answers, judge: Ints, *, seed: int, replicates: int = REPLICATES) -> JudgeAgreement:
    """Estimate how well the judge agrees with annotators, and how well annotators agree with each other.

    Let n_uc be the number of answers c on unit u, and m_u the number of all answers on u. The agreement with the
    judge's label j is n_uj / m_u. The agreement between annotators is the sum over c of
    n_uc (n_uc - 1) / (m_u (m_u - 1)). The intervals use the jackknife over units (Efron and Tibshirani 1993, An
    Introduction to the Bootstrap, chapter 11), so answers on the same unit can be dependent. There is no interval with
    fewer than 10 units.

    answers: the annotators' answers, for U units and K labels.
    judge: the judge's label of each unit as an index into `answers.labels`, or -1 if there is none, (U,).
    seed, replicates: seed and number of bootstrap replicates for the intervals of alpha.

    Raise ValueError if `judge` does not have one valid index per unit.
    """
    judge = check_judge_labels(answers, judge)
    counts = answers.counts()
    labelled = (judge >= 0) & counts.any(axis=1)
    counts, judge = counts[labelled], judge[labelled]
    number = counts.sum(axis=1)
    with_judge = counts[np.arange(len(counts)), judge] / number
    shared = number > 1
    shared_counts, answered = counts[shared], number[shared]
    among = (shared_counts * (shared_counts - 1)).sum(axis=1) / (answered * (answered - 1))
    differences = with_judge[shared] - among
    is_constant = not len(differences) or np.ptp(differences) <= SLACK
    all_answers = shared_counts + np.eye(counts.shape[1], dtype=np.int64)[judge[shared]]
    return JudgeAgreement(
        _mean(with_judge),
        _mean(with_judge[shared]),
        _mean(among),
        None if is_constant else jackknife_difference(*ratio(differences, np.ones(len(differences)))),
        alpha(all_answers, seed=seed, replicates=replicates),
        alpha(shared_counts, seed=seed, replicates=replicates),
        len(counts),
        len(shared_counts),
    )


def check_judge_labels(answers: Answers, judge: Ints) -> Ints:
    """Return the judge's labels. Raise ValueError unless each unit has an index into `answers.labels`, or -1."""
    if judge.shape != (len(answers.units),) or np.any((judge < -1) | (judge >= len(answers.labels))):
        raise ValueError(
            "The judge's labels do not match the answers. Each unit requires the index of one label, or -1."
        )
    return judge


def _mean(values: Floats) -> Estimate:
    return jackknife(*ratio(values, np.ones(len(values)))) if len(values) else UNKNOWN


EPSILON = 0.15  # for skilled annotators; the article (section 3.3) uses 0.2 for experts and 0.1 for crowd workers
LEAST_UNITS = 30  # minimum number of units per annotator for the t-test (section 3.2)
LEAST_ANNOTATORS = 3
LEVEL = 0.05  # false discovery rate
PASS = 0.5  # smallest winning rate that passes


class NoVerdict(Enum):
    """Why there is no verdict. The value is the sentence to show."""

    FEW_ANNOTATORS = "The test requires three annotators. Collect answers to the same units from more people."
    FEW_UNITS = (
        "The test requires three annotators who each answered 30 units that others answered too. Collect more answers."
    )


@dataclass(frozen=True)
class LeftOut:
    """Comparison of the judge with one annotator, who is left out.

    annotator: the annotator.
    units: number of the annotator's units that the judge labelled and somebody else answered.
    judge: share of the units on which the judge is at least as close to the other annotators as the annotator is.
    person: share of the units on which the annotator is at least as close to the other annotators as the judge is.
    p: p-value of the hypothesis that the judge is worse than the annotator by epsilon or more.
    adjusted: `p` after the Benjamini-Yekutieli adjustment. `p` and `adjusted` are None if there are too few units.
    """

    annotator: Hashable
    units: int
    judge: float | None
    person: float | None
    p: float | None = None
    adjusted: float | None = None

    @property
    def judge_wins(self) -> bool:
        return self.adjusted is not None and self.adjusted <= LEVEL


@dataclass(frozen=True)
class AlternativeAnnotatorTest:
    """Result of the alternative annotator test.

    winning_rate: omega, the share of tested annotators whom the judge beats.
    advantage: rho, the mean of `LeftOut.judge` over the tested annotators.
    passed: whether the winning rate is 0.5 or more; None if there is no verdict.
    annotators: the result for each annotator, in the order of `Answers.annotators`.
    reasons: why there is no verdict.
    """

    winning_rate: float | None
    advantage: float | None
    passed: bool | None
    annotators: tuple[LeftOut, ...]
    reasons: tuple[NoVerdict, ...] = ()


def alternative_annotator_test(answers: Answers, judge: Ints, *, epsilon: float = EPSILON) -> AlternativeAnnotatorTest:
    """Test whether the judge can replace an annotator.

    Because the judge saves work, it is allowed to be worse than an annotator by up to epsilon. The score of an answer
    is the share of the other annotators' answers that are the same. On each unit, W_f is 1 if the judge's score is at
    least as high as the left-out annotator's, and 0 otherwise. W_h is 1 if the annotator's score is at least as high as
    the judge's, and 0 otherwise. For each annotator with at least LEAST_UNITS units, a one-sided t-test tests the
    hypothesis that the mean of W_h - W_f is epsilon or more. The p-values are adjusted by the Benjamini-Yekutieli
    procedure.

    answers: the annotators' answers, for U units and K labels.
    judge: the judge's label of each unit as an index into `answers.labels`, or -1 if there is none, (U,).
    epsilon: how much worse than an annotator the judge is allowed to be, as a share of units.

    Raise ValueError if `judge` does not have one valid index per unit, or epsilon is not in [0, 1).
    """
    judge = check_judge_labels(answers, judge)
    if not 0 <= epsilon < 1:
        raise ValueError(f"epsilon is {epsilon}. It must be at least 0 and below 1.")
    counts = answers.counts()
    results = []
    for place, annotator in enumerate(answers.annotators):
        places = np.flatnonzero((answers.annotator == place) & (judge[answers.unit] >= 0))
        units, both = counts_with_others(answers, counts, places)
        results.append(_compare_with_judge(annotator, both, judge[units], epsilon))
    return _verdict(results)


def _compare_with_judge(annotator: Hashable, both: Ints, judge: Ints, epsilon: float) -> LeftOut:
    """Compare the judge with one annotator.

    both: the annotator's answer counts followed by the others', on the units both have answered, (units, 2K).
    judge: the judge's label of each of these units, (units,).
    """
    units, size = len(both), both.shape[1] // 2
    if not units:
        return LeftOut(annotator, 0, None, None)
    answers, scores = both[:, :size], both[:, size:] / both[:, size:].sum(axis=1, keepdims=True)
    of_judge, of_annotator = scores[np.arange(units), judge], (scores * answers).sum(axis=1) / answers.sum(axis=1)
    judge_wins: Bools = of_judge >= of_annotator - SLACK
    annotator_wins: Bools = of_annotator >= of_judge - SLACK
    p = _t_test(annotator_wins.astype(np.float64) - judge_wins, epsilon) if units >= LEAST_UNITS else None
    return LeftOut(annotator, units, float(judge_wins.mean()), float(annotator_wins.mean()), p)


def _t_test(differences: Floats, epsilon: float) -> float:
    """Return the one-sided p-value of the hypothesis that the mean difference is epsilon or more."""
    off, spread = float(differences.mean()) - epsilon, float(differences.std(ddof=1))
    if not spread:
        return 0.0 if off < 0 else 1.0
    return float(scipy.special.stdtr(len(differences) - 1, off / spread * len(differences) ** 0.5))


def _verdict(results: list[LeftOut]) -> AlternativeAnnotatorTest:
    tested = [one for one in results if one.p is not None]
    adjusted = iter(benjamini_yekutieli([one.p for one in tested if one.p is not None]))
    annotators = tuple(one if one.p is None else replace(one, adjusted=next(adjusted)) for one in results)
    rate = sum(one.judge_wins for one in annotators) / len(tested) if tested else None
    advantage = sum(one.judge or 0.0 for one in tested) / len(tested) if tested else None
    if rate is None or len(tested) < LEAST_ANNOTATORS:
        reason = NoVerdict.FEW_UNITS if len(results) >= LEAST_ANNOTATORS else NoVerdict.FEW_ANNOTATORS
        return AlternativeAnnotatorTest(rate, advantage, None, annotators, (reason,))
    return AlternativeAnnotatorTest(rate, advantage, rate >= PASS, annotators)
