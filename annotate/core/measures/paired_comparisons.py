"""What people prefer, from judgments of two systems each: shares, the sign test, how often the first side is chosen,
and the strengths of three systems or more.

A unit is a message with the replies of two systems. Judgments of one unit are not independent, as all see the same
replies, and nor are those of one message, so that every interval and test is over messages. The people are taken as
they are: an interval says what other messages would have given, not other people. Numbers in, numbers out; whose
judgments count is decided in annotate/quality/preference_statistics.py.

In 1,000 simulated tasks each of 50, 100 and 500 messages, with messages on which all judges say the same, four of five
ties, and a judge who looks at sides alone, the intervals of shares held the truth in 93.2% to 96.7%, and of 10 messages
in 91% or more. Of 300 tasks each of 10, 20, 50 and 200 messages with three and five systems, those of the differences
of strength held it in 93.3% to 97.1% (`python -m tests.benchmarks FOLDER preferences`).
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import sqrt
from typing import NamedTuple

import numpy as np
import scipy  # which loads its parts when they are first used

from annotate.core.aggregation.answer_table import Floats
from annotate.core.draws.hash_order import lot
from annotate.core.estimation.comparisons import holm, mcnemar
from annotate.core.estimation.proportions import UNKNOWN, Estimate, Z, proportion
from annotate.core.estimation.resampling import LEAST_LEFT_OUT, jackknife, percentiles
from annotate.core.measures.ranked_labels import Share

# --- Bradley and Terry's model of paired comparisons: how strong each of several systems is.
#
# A system i is preferred to j with the chance p_i / (p_i + p_j); a strength is log p_i, and all add up to 0 (Bradley
# and Terry 1952, Rank Analysis of Incomplete Block Designs, Biometrika 39).


ROUNDS = 100
CLOSE = 1e-10  # in logs
LONGEST_STEP = 2.0


def groups(wins: Floats) -> list[list[int]]:
    """The systems in parts, in each of which every system has won, by others between them, against every other; the
    part whose systems are not beaten by others of another part first. With one part, and only then, all strengths are
    finite (Ford 1957, Solution of a Ranking Problem from Binary Comparisons, American Mathematical Monthly 64(8)).

    wins: of the row's system against the column's, (K, K).
    """
    number, part = scipy.sparse.csgraph.connected_components(wins > 0, connection="strong")
    found: list[list[int]] = [np.flatnonzero(part == place).tolist() for place in range(number)]
    # How many systems each reaches by its wins and those of whom it beat: a part above another reaches more.
    reached = (~np.isinf(scipy.sparse.csgraph.shortest_path(wins > 0, unweighted=True))).sum(axis=1)
    return sorted(found, key=lambda part: (-reached[part[0]], part))


def strengths(wins: Floats) -> Floats:
    """The strengths of greatest likelihood, in natural logarithms, (..., K), that add up to 0; NaN where they are not
    finite, as the systems are of several `groups`.

    wins: of the row's system against the column's, (..., K, K), of as many comparisons as there are; halves count too.
    By Newton's method, the likelihood of strengths being concave, with steps of LONGEST_STEP at most.
    """
    size = wins.shape[-1]
    found: Floats = np.full(wins.shape[:-1], np.nan)
    finite = _are_finite(wins)
    found[finite] = _strengths(wins[finite].reshape(-1, size, size))
    return found


def _are_finite(wins: Floats) -> np.ndarray:
    """Whether every system has won against every other, by others between them: (...)."""
    size = wins.shape[-1]
    reached = (wins > 0) | np.eye(size, dtype=bool)
    for _ in range(size.bit_length()):
        reached = reached @ reached
    return np.asarray(reached.all(axis=(-1, -2)))


def _strengths(wins: Floats) -> Floats:
    """wins: (N, K, K), of which each has finite strengths."""
    played, won = wins + wins.swapaxes(1, 2), wins.sum(axis=2)
    found: Floats = np.zeros(won.shape)
    for _ in range(ROUNDS):
        chance = scipy.special.expit(found[:, :, None] - found[:, None, :])
        weights = played * chance * (1 - chance)
        information = weights.sum(axis=2)[:, :, None] * np.eye(won.shape[1]) - weights
        # The sum of strengths is free; with 1 added in all cells the matrix has an inverse, and the step adds up to 0.
        step = np.linalg.solve(information + 1, (won - (played * chance).sum(axis=2))[:, :, None])[:, :, 0]
        longest = np.abs(step).max(axis=1, keepdims=True, initial=CLOSE)
        found = found + step * np.minimum(1.0, LONGEST_STEP / longest)
        if not (longest > CLOSE).any():
            break
    centred: Floats = found - found.mean(axis=1, keepdims=True)
    return centred


TIE, NONE = "tie", "none"
REPLICATES = 1000
# Of this share of the replicates or more all strengths must be finite, for their interval to be given.
ENOUGH = 0.95
OUT_OF_LINE = 0.01  # a Holm p below it


class Judgment(NamedTuple):
    """systems: the two, in the order of the alphabet. answer: the one preferred, or TIE. first: the one that stood
    first; empty if that is not known. person: None for the machine's judgment of equal replies. message: what several
    units have in common, in each of which other systems are compared; None if they have nothing. is_finished: whether
    nobody else is asked about the unit.
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
        """Whose judgments are not independent."""
        return self.unit if self.message is None else self.message


class Pair(NamedTuple):
    """Two systems compared. units: of them; counts, shares: of the judgments for a, for b, and ties; majority,
    majority_shares: of the finished units for a, b, ties, and those without a majority, since a unit that lacks answers
    may yet come to one.

    win: the share of a, ties as half. p: of the sign test; 1 where no unit has a majority for a system.
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
    """The answer of more than half of the judgments of a unit, or NONE."""
    [(answer, number), *_] = (counted := Counter(answers)).most_common(1)
    return answer if 2 * number > counted.total() else NONE


def compared(judgments: Sequence[Judgment]) -> list[Pair]:
    """Each two systems that were compared, in the order of the alphabet."""
    by_pair: defaultdict[tuple[str, str], list[Judgment]] = defaultdict(list)
    for each in judgments:
        by_pair[each.systems].append(each)
    return [_pair(systems, by_pair[systems]) for systems in sorted(by_pair)]


def _pair(systems: tuple[str, str], judgments: Sequence[Judgment]) -> Pair:
    answers = (*systems, TIE)
    said, finished = _by_unit(judgments), _by_unit(each for each in judgments if each.is_finished)
    table = np.array([[each.count(answer) for answer in answers] for each in said.values()], dtype=np.float64)
    decided = Counter(majority(each) for each in finished.values())
    shares = {answer: _share(table[:, place], table.sum(axis=1)) for place, answer in enumerate(answers)}
    return Pair(
        systems,
        len(said),
        len(finished),
        len(judgments),
        {answer: int(number) for answer, number in zip(answers, table.sum(axis=0), strict=True)},
        shares,
        {answer: decided[answer] for answer in (*answers, NONE)},
        {answer: _of_units(decided[answer], len(finished)) for answer in (*answers, NONE)},
        _share(table[:, 0] + table[:, 2] / 2, table.sum(axis=1)),
        sign_test(decided[systems[0]], decided[systems[1]]),
    )


def _by_unit(judgments: Iterable[Judgment]) -> dict[Hashable, list[str]]:
    found: dict[Hashable, list[str]] = {}
    for each in judgments:
        found.setdefault(each.unit, []).append(each.answer)
    return found


def _share(parts: Floats, wholes: Floats) -> Estimate:
    """Of the sums of both over units, with an interval over units. parts, wholes: of each unit, (units,)."""
    whole = wholes.sum()
    if not whole:
        return UNKNOWN
    value = float(parts.sum() / whole)
    left = whole - wholes
    without = np.divide(parts.sum() - parts, left, out=np.full(len(parts), value), where=left > 0)
    return jackknife(value, without)


def _of_units(hits: int, units: int) -> Estimate:
    """A share of units, with no interval of fewer than a share of judgments needs for one."""
    found = proportion(hits, units)
    return found if units >= LEAST_LEFT_OUT else replace(found, low=0.0, high=1.0)


def sign_test(first: int, second: int) -> float:
    """The two-sided p-value that neither of two systems is preferred more often. first, second: the units whose
    majority is for each; ties and units without a majority say nothing (Dixon and Mood 1946, The Statistical Sign Test,
    JASA 41(236)).

    Of units and not of judgments: three people who see the same replies are not three throws of a coin, and the test
    would find a difference too often. It is the exact binomial test, as McNemar's is.
    """
    return mcnemar(first, second)


# --- how often a system wins, whoever it is compared with


class Standing(NamedTuple):
    """A system against all others. win: its share of the judgments that it is part of, ties as half."""

    system: str
    judgments: int
    won: int
    tied: int
    win: Estimate


def standings(judgments: Sequence[Judgment]) -> list[Standing]:
    """The system with the greatest share first."""
    found = []
    for system in systems_of(judgments):
        parts: defaultdict[Hashable, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        for each in judgments:
            if system in each.systems:
                own = parts[each.cluster]
                own[0] += each.answer == system
                own[1] += each.answer == TIE
                own[2] += 1
        table = np.array(list(parts.values()), dtype=np.float64)
        won, tied, whole = (int(number) for number in table.sum(axis=0))
        found.append(Standing(system, whole, won, tied, _share(table[:, 0] + table[:, 1] / 2, table[:, 2])))
    return sorted(found, key=lambda each: (-(each.win.value or 0.0), each.system))


def systems_of(judgments: Iterable[Judgment]) -> list[str]:
    return sorted({system for each in judgments for system in each.systems})


# --- Bradley-Terry


class Order(NamedTuple):
    """Strengths, in natural logarithms, the greatest first, each less that of `reference`, the system with the most
    judgments; differences: a and b, by the alphabet -> the strength of a less that of b. Both are empty where strengths
    are not finite: groups, the best first, of which no system has been preferred to any of the group before. lost: the
    share of the replicates in which strengths were not finite."""

    reference: str
    strengths: Mapping[str, Share]
    differences: Mapping[tuple[str, str], Share]
    groups: Sequence[Sequence[str]]
    lost: float


def order(judgments: Sequence[Judgment], *, ties: bool, seed: str, replicates: int = REPLICATES) -> Order:
    """ties: count as half a win for both; else they are left out. The interval is between the 2.5% and the 97.5%
    quantile of what messages drawn again give, widened for few messages; there is none of fewer than LEAST_LEFT_OUT
    messages, or if strengths are not finite in more than one of twenty drawings.

    Only differences are estimated. Had the strengths of all systems to add up to 0, one system with few judgments would
    widen every interval.
    """
    systems = systems_of(judgments)
    if not systems:
        return Order("", {}, {}, [], 1.0)
    units, messages = _wins(judgments, systems, ties=ties)
    size = len(systems)
    whole = units.sum(axis=0).reshape(size, size)
    parts = [[systems[number] for number in part] for part in groups(whole)]
    counted = Counter(system for each in judgments for system in each.systems)
    reference = max(range(size), key=lambda number: (counted[systems[number]], -number))
    found = strengths(whole)
    if np.isnan(found).any():
        return Order(systems[reference], {}, {}, parts, 1.0)
    drawn = strengths(_drawn_again(units, messages, seed, replicates).reshape(-1, size, size))
    drawn = drawn[~np.isnan(drawn).any(axis=1)]
    lost = 1 - len(drawn) / replicates
    has_intervals = lost <= 1 - ENOUGH and messages >= LEAST_LEFT_OUT

    def less(a: int, b: int) -> Share:
        value = float(found[a] - found[b])
        ends = _widened(value, percentiles(drawn[:, a] - drawn[:, b]), messages) if has_intervals else (None, None)
        return Share(value, *ends)

    by_strength = sorted(range(size), key=lambda number: (-found[number], systems[number]))
    pairs = combinations(range(size), 2)
    return Order(
        systems[reference],
        {systems[n]: less(n, reference) for n in by_strength},
        {(systems[a], systems[b]): less(a, b) for a, b in pairs},
        parts,
        lost,
    )


def _drawn_again(units: Floats, messages: int, seed: str, replicates: int) -> Floats:
    """The wins on as many messages, drawn again with replacement: (replicates, K * K)."""
    drawing = np.random.Generator(np.random.PCG64(int(lot(seed, "bradley-terry", ""), 16)))
    again = np.empty((replicates, units.shape[1]))
    for number in range(replicates):
        again[number] = np.bincount(drawing.integers(messages, size=messages), minlength=messages) @ units
    return again


def _widened(value: float, ends: tuple[float, float], messages: int) -> tuple[float, float]:
    """The bootstrap takes the spread of the messages for known, and divides by their number where an estimate of the
    spread divides by one less (Hesterberg 2015, What Teachers Should Know About the Bootstrap, The American
    Statistician 69(4), section 4)."""
    factor = scipy.special.stdtrit(messages - 1, 0.975) / Z * sqrt(messages / (messages - 1))
    low, high = (value + factor * (end - value) for end in ends)
    return min(low, value), max(high, value)


def _wins(judgments: Sequence[Judgment], systems: Sequence[str], *, ties: bool) -> tuple[Floats, int]:
    """The wins on each message, (messages, K * K), and how many messages there are."""
    place = {system: number for number, system in enumerate(systems)}
    units = {unit: number for number, unit in enumerate(dict.fromkeys(each.cluster for each in judgments))}
    wins = np.zeros((len(units), len(systems), len(systems)))
    for each in judgments:
        a, b = (place[system] for system in each.systems)
        of_unit = wins[units[each.cluster]]
        if each.answer == TIE:
            of_unit[a, b] += ties / 2
            of_unit[b, a] += ties / 2
        else:
            won, lost = (a, b) if each.answer == each.systems[0] else (b, a)
            of_unit[won, lost] += 1
    return wins.reshape(len(units), len(systems) ** 2), len(units)


# --- sides


class Sides(NamedTuple):
    """How often the first side was chosen, of the judgments whose sides are known and that were no tie. p: of people
    only, that they choose either side with a chance of a half, corrected for the number of people by Holm; sides are
    drawn by lot, so that this holds for whoever does not look at them."""

    person: Hashable
    judgments: int
    ties: int
    first: int
    share: Estimate
    p: float | None = None

    @property
    def is_out_of_line(self) -> bool:
        return self.p is not None and self.p < OUT_OF_LINE


def sides(judgments: Iterable[Judgment]) -> tuple[Sides, list[Sides]]:
    """Of all together, and of each person, the one who is farthest from a half first."""
    known = [each for each in judgments if each.first and each.person is not None]
    by_person: defaultdict[Hashable, list[Judgment]] = defaultdict(list)
    for each in known:
        by_person[each.person].append(each)
    whole = _sides(None, known)
    people = [_sides(person, own) for person, own in by_person.items()]
    tested = holm([_against_half(each) for each in people])
    people = [each._replace(p=p) for each, p in zip(people, tested, strict=True)]
    return whole, sorted(people, key=lambda each: (each.p if each.p is not None else 1.0, -_off(each), -each.judgments))


def _sides(person: Hashable, judgments: Sequence[Judgment]) -> Sides:
    chosen = [each for each in judgments if each.answer != TIE]
    first = np.array([each.answer == each.first for each in chosen], dtype=np.float64)
    units: dict[Hashable, list[float]] = {}
    for each, is_first in zip(chosen, first, strict=True):
        own = units.setdefault(each.cluster, [0.0, 0.0])
        own[0] += is_first
        own[1] += 1
    table = np.array(list(units.values()), dtype=np.float64).reshape(-1, 2)
    share = _share(table[:, 0], table[:, 1])
    return Sides(person, len(judgments), len(judgments) - len(chosen), int(first.sum()), share)


def _against_half(own: Sides) -> float:
    return mcnemar(own.first, own.judgments - own.ties - own.first)


def _off(own: Sides) -> float:
    return abs((own.share.value if own.share.value is not None else 0.5) - 0.5)
