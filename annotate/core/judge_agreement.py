"""The agreement of a judge with people beside the agreement of people with each other, on the same units."""

from dataclasses import dataclass

import numpy as np

from annotate.core.agreement import alpha
from annotate.core.answers import Answers, Floats, Ints
from annotate.core.comparing import Difference
from annotate.core.estimation import SLACK, UNKNOWN, Estimate
from annotate.core.pairs import REPLICATES, Distance, Measure
from annotate.core.resampling import jackknife, jackknife_difference


@dataclass(frozen=True)
class JudgeAgreement:
    """Mean pairwise agreement, each unit weighing the same however it was drawn, with 95% intervals clustered by unit.

    judge: of the judge with each person, on every unit that both labelled.
    judge_shared: the same on the units with two people's answers or more.
    people: of each two people, on the latter units.
    difference: judge_shared less people; None of fewer than 20 units, or where it is the same on every unit.
    judge_alpha: Krippendorff's alpha of the judge's and people's answers together, on the latter units.
    people_alpha: the same of people's answers alone.
    units, units_shared: number of units of the one kind and of the other.
    """

    judge: Estimate
    judge_shared: Estimate
    people: Estimate
    difference: Difference | None
    judge_alpha: Measure
    people_alpha: Measure
    units: int
    units_shared: int


def judge_agreement(
    answers: Answers, judge: Ints, distance: Distance | None = None, *, seed: int, replicates: int = REPLICATES
) -> JudgeAgreement:
    """How far the judge agrees with people, and people with each other.

    answers: people's answers, of U units and K labels.
    judge: the judge's label of each unit, its place in `answers.labels`, -1 where it has none, (U,).
    distance: of labels, for alpha; nominal by default (see agreement.alpha).
    seed, replicates: of alpha's interval.

    On unit u with n_uc answers c, m_u in all, the agreement with the judge's label j is n_uj / m_u, and that of people
    with each other is the sum of n_uc (n_uc - 1) / (m_u (m_u - 1)). The intervals come from leaving out one unit at a
    time (jackknife: Efron and Tibshirani 1993, An Introduction to the Bootstrap, chapter 11), so the answers on a unit
    may depend on each other. There is none of fewer than 10 units.

    ValueError where `judge` is not one place for each unit.
    """
    judge = places_of_judge(answers, judge)
    counts = answers.counts()
    labelled = (judge >= 0) & counts.any(axis=1)
    counts, judge = counts[labelled], judge[labelled]
    number = counts.sum(axis=1)
    with_judge = counts[np.arange(len(counts)), judge] / number
    shared = number > 1
    several, answered = counts[shared], number[shared]
    among = (several * (several - 1)).sum(axis=1) / (answered * (answered - 1))
    apart = with_judge[shared] - among
    all_answers = several + np.eye(counts.shape[1], dtype=np.int64)[judge[shared]]
    return JudgeAgreement(
        _mean(with_judge),
        _mean(with_judge[shared]),
        _mean(among),
        jackknife_difference(float(apart.mean()), _without(apart)) if len(apart) and np.ptp(apart) > SLACK else None,
        alpha(all_answers, distance, seed=seed, replicates=replicates),
        alpha(several, distance, seed=seed, replicates=replicates),
        len(counts),
        len(several),
    )


def places_of_judge(answers: Answers, judge: Ints) -> Ints:
    """The judge's labels, if they are one place in `answers.labels` for each unit, or -1; ValueError if not."""
    if judge.shape != (len(answers.units),) or np.any((judge < -1) | (judge >= len(answers.labels))):
        raise ValueError("The judge's labels do not fit the answers; give the place of one label for each unit, or -1.")
    return judge


def _mean(values: Floats) -> Estimate:
    return jackknife(float(values.mean()), _without(values)) if len(values) else UNKNOWN


def _without(values: Floats) -> Floats:
    """The mean with each of the values left out."""
    means: Floats = (values.sum() - values) / max(1, len(values) - 1)
    return means
