"""Human preferences between systems: shares, sign test, position bias, and Bradley-Terry strengths.

A unit is a message with the replies of two systems. Judgments on the same unit are dependent, because they concern the
same replies, and so are judgments on different units with the same message. All intervals and tests therefore treat
messages as the independent observations. The annotators are treated as fixed, so an interval applies to other messages,
but not to other annotators. annotate/quality/preference_statistics.py decides whose judgments count.

The coverage of the intervals was measured by simulation. The simulated tasks include messages on which all annotators
agree, tasks with four ties in five judgments, and an annotator who chooses by position only. Intervals of shares
covered the true value in 93.2% to 96.7% of 1,000 tasks each with 50, 100 and 500 messages, and in at least 91% with 10
messages. Intervals of differences in strength covered it in 93.3% to 97.1% of 300 tasks each with 10, 20, 50 and 200
messages and three and five systems (`python -m benchmarks FOLDER preferences`).
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import scipy  # loads its subpackages on first use

from annotate.core.aggregation.answer_table import Floats
from annotate.core.estimation.differences import holm, mcnemar
from annotate.core.estimation.proportions import UNKNOWN, Estimate, Z, proportion
from annotate.core.estimation.resampling import LEAST_LEFT_OUT, generator, jackknife, percentiles, ratio
from annotate.core.measures.ranked_labels import Share

# --- The Bradley-Terry model of paired comparisons
#
# System i is preferred to j with probability p_i / (p_i + p_j). The strength of system i is log p_i. The strengths add
# up to 0 (Bradley and Terry 1952, Rank Analysis of Incomplete Block Designs, Biometrika 39).


ROUNDS = 100
CLOSE = 1e-10  # on the log scale
LONGEST_STEP = 2.0


def groups(wins: Floats) -> list[list[int]]:
    """Divide the systems into groups. Within a group, every system has beaten every other, directly or through others.

    All strengths are finite if and only if there is a single group (Ford 1957, Solution of a Ranking Problem from
    Binary Comparisons, American Mathematical Monthly 64(8)).

    wins: number of wins of the row's system against the column's, (K, K).

    Return the groups, best first: no system has been beaten by a system of a later group.
    """
    number, part = scipy.sparse.csgraph.connected_components(wins > 0, connection="strong")
    components: list[list[int]] = [np.flatnonzero(part == place).tolist() for place in range(number)]
    # The number of systems that each system has beaten, directly or through others. It is higher in better groups.
    reached = (~np.isinf(scipy.sparse.csgraph.shortest_path(wins > 0, unweighted=True))).sum(axis=1)
    return sorted(components, key=lambda part: (-reached[part[0]], part))


def strengths(wins: Floats) -> Floats:
    """Return the maximum likelihood strengths in natural logarithms, (..., K), which add up to 0.

    All strengths are NaN if there are several `groups`, because the strengths are then not finite. The log-likelihood
    is concave. Newton's method maximizes it, with steps of at most LONGEST_STEP.

    wins: number of wins of the row's system against the column's, (..., K, K). Ties can count as halves.
    """
    size = wins.shape[-1]
    logs: Floats = np.full(wins.shape[:-1], np.nan)
    finite = _are_finite(wins)
    logs[finite] = _strengths(wins[finite].reshape(-1, size, size))
    return logs


def _are_finite(wins: Floats) -> np.ndarray:
    """Return whether the strengths are finite, (...): whether there is a single group (`groups`).

    wins: see `strengths`.
    """
    size = wins.shape[-1]
    reached = (wins > 0) | np.eye(size, dtype=bool)
    for _ in range(size.bit_length()):
        reached = reached @ reached
    return np.asarray(reached.all(axis=(-1, -2)))


def _strengths(wins: Floats) -> Floats:
    """Return the strengths for N tables of wins, (N, K, K), all of which must have finite strengths."""
    played, won = wins + wins.swapaxes(1, 2), wins.sum(axis=2)
    logs: Floats = np.zeros(won.shape)
    for _ in range(ROUNDS):
        chance = scipy.special.expit(logs[:, :, None] - logs[:, None, :])
        weights = played * chance * (1 - chance)
        information = weights.sum(axis=2)[:, :, None] * np.eye(won.shape[1]) - weights
        # The data don't determine the sum of the strengths, so the matrix is singular. Adding 1 to every cell makes it
        # invertible, and the steps then add up to 0.
        step = np.linalg.solve(information + 1, (won - (played * chance).sum(axis=2))[:, :, None])[:, :, 0]
        longest = np.abs(step).max(axis=1, keepdims=True, initial=CLOSE)
        logs = logs + step * np.minimum(1.0, LONGEST_STEP / longest)
        if not (longest > CLOSE).any():
            break
    centred: Floats = logs - logs.mean(axis=1, keepdims=True)
    return centred


TIE, NONE = "tie", "none"
REPLICATES = 1000
# Intervals are reported if strengths are finite in at least this share of the bootstrap replicates.
MIN_FINITE = 0.95
FLAGGED_BELOW = 0.01  # annotators with a smaller Holm-adjusted p-value are flagged


class Judgment(NamedTuple):
    """A judgment between two systems.

    unit: the message with the two systems' replies.
    person: the annotator; None for the automatic judgment of identical replies.
    systems: the two systems, in alphabetical order.
    answer: the preferred system, or TIE.
    first: the system shown first; empty if unknown.
    message: the message, if several units compare replies to it; None if it has only this unit.
    is_finished: whether the unit needs no more judgments.
    """

    unit: Hashable
    person: Hashable
    systems: tuple[str, str]
    answer: str
    first: str = ""
    language: str = ""
    message: Hashable = None
    is_finished: bool = True

    @property
    def cluster(self) -> Hashable:
        """The message, or the unit if it has no message. Judgments within a cluster are dependent."""
        return self.unit if self.message is None else self.message


class Pair(NamedTuple):
    """Comparison of two systems, a and b.

    units, finished: number of units, and how many of them are finished.
    judgments: number of judgments.
    counts, shares: number and share of judgments that prefer `a`, that prefer `b`, and that are ties.
    majority, majority_shares: number and share of finished units with a majority for `a`, for `b`, for a tie, and with
        no majority. Unfinished units are left out, because later judgments may change their majority.
    win: share of judgments that prefer `a`, where a tie counts as half.
    p: p-value of the exact sign test that both systems are preferred equally often (Dixon and Mood 1946, The
        Statistical Sign Test, JASA 41(236)). The test counts the majority of each unit instead of single judgments,
        because judgments on the same replies are dependent and the test would otherwise reject too often. p is 1 if no
        unit has a majority for either system.
    """

    systems: tuple[str, str]
    units: int
    finished: int
    judgments: int
    counts: Mapping[str, int]
    shares: Mapping[str, Estimate]
    majority: Mapping[str, int]
    majority_shares: Mapping[str, Estimate]
    win: Estimate
    p: float


def majority(answers: Iterable[str]) -> str:
    """Return the answer of more than half of a unit's judgments, or NONE."""
    [(answer, number), *_] = (counted := Counter(answers)).most_common(1)
    return answer if 2 * number > counted.total() else NONE


def compare_pairs(judgments: Sequence[Judgment]) -> list[Pair]:
    """Compare the two systems of each pair. Return the pairs in alphabetical order."""
    by_pair: defaultdict[tuple[str, str], list[Judgment]] = defaultdict(list)
    for judgment in judgments:
        by_pair[judgment.systems].append(judgment)
    return [_pair(systems, by_pair[systems]) for systems in sorted(by_pair)]


def _pair(systems: tuple[str, str], judgments: Sequence[Judgment]) -> Pair:
    answers = (*systems, TIE)
    answered = _by_unit(judgments)
    finished = _by_unit(judgment for judgment in judgments if judgment.is_finished)
    table = np.array([[unit.count(answer) for answer in answers] for unit in answered.values()], dtype=np.float64)
    majorities = Counter(map(majority, finished.values()))
    shares = {answer: _share(table[:, place], table.sum(axis=1)) for place, answer in enumerate(answers)}
    return Pair(
        systems,
        len(answered),
        len(finished),
        len(judgments),
        {answer: int(number) for answer, number in zip(answers, table.sum(axis=0), strict=True)},
        shares,
        {answer: majorities[answer] for answer in (*answers, NONE)},
        {answer: _unit_share(majorities[answer], len(finished)) for answer in (*answers, NONE)},
        _share(table[:, 0] + table[:, 2] / 2, table.sum(axis=1)),
        mcnemar(majorities[systems[0]], majorities[systems[1]]),
    )


def _by_unit(judgments: Iterable[Judgment]) -> dict[Hashable, list[str]]:
    answers: dict[Hashable, list[str]] = {}
    for judgment in judgments:
        answers.setdefault(judgment.unit, []).append(judgment.answer)
    return answers


def _share(parts: Floats, wholes: Floats) -> Estimate:
    """Estimate the ratio of two sums over units, with a jackknife interval."""
    return jackknife(*ratio(parts, wholes)) if wholes.any() else UNKNOWN


def _unit_share(hits: int, units: int) -> Estimate:
    """Estimate a share of units. There is no interval with fewer than LEAST_LEFT_OUT units."""
    share = proportion(hits, units)
    return share if units >= LEAST_LEFT_OUT else replace(share, low=0.0, high=1.0)


# --- Win rates over all opponents


class WinRate(NamedTuple):
    """A system's win rate against all others.

    judgments, won, tied: number of judgments that include the system, how many of them it won, and how many are ties.
    win: win rate, where a tie counts as half a win.
    """

    system: str
    judgments: int
    won: int
    tied: int
    win: Estimate


def win_rates(judgments: Sequence[Judgment]) -> list[WinRate]:
    """Return each system's win rate against all others, highest first."""
    rows = []
    for system in systems_of(judgments):
        parts: defaultdict[Hashable, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        for judgment in judgments:
            if system in judgment.systems:
                counts = parts[judgment.cluster]
                counts[0] += judgment.answer == system
                counts[1] += judgment.answer == TIE
                counts[2] += 1
        table = np.array(list(parts.values()), dtype=np.float64)
        won, tied, whole = (int(number) for number in table.sum(axis=0))
        rows.append(WinRate(system, whole, won, tied, _share(table[:, 0] + table[:, 1] / 2, table[:, 2])))
    return sorted(rows, key=lambda row: (-(row.win.value or 0.0), row.system))


def systems_of(judgments: Iterable[Judgment]) -> list[str]:
    return sorted({system for judgment in judgments for system in judgment.systems})


# --- Bradley-Terry estimates


class Order(NamedTuple):
    """Bradley-Terry strengths in natural logarithms.

    reference: the system with the most judgments.
    strengths: strength of each system minus that of the reference, highest first.
    differences: strength of a minus strength of b, for each pair (a, b) in alphabetical order. Empty, like `strengths`,
        if the strengths are not finite.
    groups: groups of systems, best first. No system has been preferred to a system of an earlier group.
    lost: share of bootstrap replicates without finite strengths.
    """

    reference: str
    strengths: Mapping[str, Share]
    differences: Mapping[tuple[str, str], Share]
    groups: Sequence[Sequence[str]]
    lost: float


def order(judgments: Sequence[Judgment], *, ties: bool, seed: str, replicates: int = REPLICATES) -> Order:
    """Estimate the systems' strengths, with bootstrap intervals over messages.

    Intervals are widened if there are few messages. There are no intervals with fewer than LEAST_LEFT_OUT messages, or
    if the strengths are not finite in more than one of 20 replicates. Only differences between strengths are estimated.
    Strengths that add up to 0 depend on all systems, so one system with few judgments would widen every interval.

    ties: whether a tie counts as half a win for both systems. Otherwise, ties are left out.
    seed, replicates: seed and number of replicates of the bootstrap.
    """
    systems = systems_of(judgments)
    if not systems:
        return Order("", {}, {}, [], 1.0)
    units, messages = _wins(judgments, systems, ties=ties)
    size = len(systems)
    whole = units.sum(axis=0).reshape(size, size)
    parts = [[systems[number] for number in part] for part in groups(whole)]
    counted = Counter(system for judgment in judgments for system in judgment.systems)
    reference = max(range(size), key=lambda number: (counted[systems[number]], -number))
    estimates = strengths(whole)
    if np.isnan(estimates).any():
        return Order(systems[reference], {}, {}, parts, 1.0)
    resampled = strengths(_resample(units, messages, seed, replicates).reshape(-1, size, size))
    resampled = resampled[~np.isnan(resampled).any(axis=1)]
    lost = 1 - len(resampled) / replicates
    has_intervals = lost <= 1 - MIN_FINITE and messages >= LEAST_LEFT_OUT

    def difference(a: int, b: int) -> Share:
        value = float(estimates[a] - estimates[b])
        if not has_intervals:
            return Share(value, None, None)
        return Share(value, *_widen(value, percentiles(resampled[:, a] - resampled[:, b]), messages))

    by_strength = sorted(range(size), key=lambda number: (-estimates[number], systems[number]))
    pairs = combinations(range(size), 2)
    return Order(
        systems[reference],
        {systems[n]: difference(n, reference) for n in by_strength},
        {(systems[a], systems[b]): difference(a, b) for a, b in pairs},
        parts,
        lost,
    )


def _resample(units: Floats, messages: int, seed: str, replicates: int) -> Floats:
    """Return the wins in each bootstrap replicate, (replicates, K * K)."""
    drawing = generator(seed, "bradley-terry")
    wins = np.empty((replicates, units.shape[1]))
    for number in range(replicates):
        wins[number] = np.bincount(drawing.integers(messages, size=messages), minlength=messages) @ units
    return wins


def _widen(value: float, ends: tuple[float, float], messages: int) -> tuple[float, float]:
    """Widen a bootstrap interval to correct for a small number of messages.

    The bootstrap treats the variance as known, and divides by n where a sample variance divides by n - 1 (Hesterberg
    2015, What Teachers Should Know About the Bootstrap, The American Statistician 69(4), section 4).
    """
    factor = scipy.special.stdtrit(messages - 1, 0.975) / Z * sqrt(messages / (messages - 1))
    low, high = (value + factor * (end - value) for end in ends)
    return min(low, value), max(high, value)


def _wins(judgments: Sequence[Judgment], systems: Sequence[str], *, ties: bool) -> tuple[Floats, int]:
    """Return the wins on each message, (messages, K * K), and the number of messages."""
    place = {system: number for number, system in enumerate(systems)}
    units = {unit: number for number, unit in enumerate(dict.fromkeys(judgment.cluster for judgment in judgments))}
    wins = np.zeros((len(units), len(systems), len(systems)))
    for judgment in judgments:
        a, b = (place[system] for system in judgment.systems)
        of_unit = wins[units[judgment.cluster]]
        if judgment.answer == TIE:
            of_unit[a, b] += ties / 2
            of_unit[b, a] += ties / 2
        else:
            won, lost = (a, b) if judgment.answer == judgment.systems[0] else (b, a)
            of_unit[won, lost] += 1
    return wins.reshape(len(units), len(systems) ** 2), len(units)


# --- Position bias


class Sides(NamedTuple):
    """How often the system shown first was chosen, in judgments with a known position.

    person: the annotator; None for all annotators together.
    judgments, ties: number of judgments, and how many of them are ties.
    first: number of judgments for the system shown first.
    share: share of the judgments for the system shown first, leaving out ties.
    p: Holm-adjusted p-value of the hypothesis that the annotator is equally likely to choose either position; None for
        all annotators together. Positions are random, so the hypothesis is true for annotators who ignore them.
    """

    person: Any
    judgments: int
    ties: int
    first: int
    share: Estimate
    p: float | None = None

    @property
    def is_flagged(self) -> bool:
        return self.p is not None and self.p < FLAGGED_BELOW


def sides(judgments: Iterable[Judgment]) -> tuple[Sides, list[Sides]]:
    """Return the position bias of all annotators together, and of each annotator, smallest p-value first."""
    shown = [judgment for judgment in judgments if judgment.first and judgment.person is not None]
    by_person: defaultdict[Hashable, list[Judgment]] = defaultdict(list)
    for judgment in shown:
        by_person[judgment.person].append(judgment)
    people = [_sides(person, of_person) for person, of_person in by_person.items()]
    adjusted = holm([mcnemar(bias.first, bias.judgments - bias.ties - bias.first) for bias in people])
    people = [bias._replace(p=p) for bias, p in zip(people, adjusted, strict=True)]
    return _sides(None, shown), sorted(people, key=lambda bias: (bias.p, -_bias_size(bias), -bias.judgments))


def _sides(person: Hashable, judgments: Sequence[Judgment]) -> Sides:
    chosen = [judgment for judgment in judgments if judgment.answer != TIE]
    first = np.array([judgment.answer == judgment.first for judgment in chosen], dtype=np.float64)
    numbers: dict[Hashable, int] = {}
    places = [numbers.setdefault(judgment.cluster, len(numbers)) for judgment in chosen]
    counts = (np.bincount(places, weights).astype(np.float64) for weights in (first, np.ones(len(first))))
    share = _share(*counts) if chosen else UNKNOWN
    return Sides(person, len(judgments), len(judgments) - len(chosen), int(first.sum()), share)


def _bias_size(bias: Sides) -> float:
    return abs((bias.share.value if bias.share.value is not None else 0.5) - 0.5)
