"""Error rates of the detectors' labels, on items where the detectors agree, and of annotators' labels.

Audits show how often the detectors are wrong. annotate/controls/audit_report.py counts the results.

Annotators sometimes answer Yes to a post that is not in the language. Decoys are posts in other languages, so the share
of decoys with a Yes bounds this error rate. `evaluate` applies the bound to a finished set; `plan` and `open_task` use
it to choose the number of decoys. Checks show how often labels from a single annotator are wrong.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from math import floor, fsum, sqrt
from typing import NamedTuple, TypeVar

import scipy

from annotate.core.draws.hash_order import part_of
from annotate.core.estimation.proportions import (
    MISS_TO_HIT,
    RECHECKS,
    SECONDS,
    UNKNOWN,
    UNREAD,
    Estimate,
    Turned,
    Unread,
    Way,
    combine,
    from_parts,
    jeffreys,
    mover,
    part_by,
    proportion,
    with_interval,
)

# --- Allocation of a sample to strata, with a minimum and a maximum for each stratum.


# Exponent of the power allocation, chosen with the benchmark `audit_defaults` (docs/explanation/audit.md). With 0,
# every stratum gets the same number of units; with 1, every unit has the same inclusion probability (Bankier 1988,
# Power allocations: determining sample sizes for subnational areas, The American Statistician 42(3)).
EXPONENT = 0.7

Key = TypeVar("Key", str, tuple[str, ...])  # identifies a stratum

# Where the detectors agreed, annotators must have labelled at least this many posts per label and in total, or all
# posts if there are fewer. For a predictor that voted, only these audits show how often an agreed label is right.
LEAST_READ, LEAST_READ_IN_ALL = 5, 30


def allocate(
    total: float, weights: Mapping[Key, float], most: Mapping[Key, float], least: float = 0
) -> dict[Key, float]:
    """Divide a total among strata in proportion to their weights, within bounds.

    total: number of units to allocate.
    weights: weight of each stratum; positive if the stratum has units.
    most: maximum for each stratum: its number of units.
    least: minimum for each stratum. A smaller stratum gets all of its units. The minimum holds even if the total is
        exceeded.

    Return the number of units for each stratum, not rounded.
    """

    def at(level: float) -> dict[Key, float]:
        return {key: min(of, max(least, level * weights[key])) for key, of in most.items()}

    def sum_at(level: float) -> float:
        return fsum(at(level).values())

    # Between two adjacent levels, the sum is linear in the level.
    levels = sorted({bound / weights[key] for key, of in most.items() if of for bound in (min(least, of), of)})
    place = bisect_left(levels, total, key=sum_at)
    if place == 0 or place == len(levels):
        return at(levels[max(0, place - 1)] if levels else 0)
    low, high = levels[place - 1 : place + 1]
    start, end = sum_at(low), sum_at(high)
    return at(low + (high - low) * (total - start) / (end - start))


def power_allocation(sizes: Mapping[Key, float], share: float, least: float) -> dict[Key, float]:
    """Allocate a share of all units to strata in proportion to stratum size to the power EXPONENT, not rounded."""
    return allocate(share * fsum(sizes.values()), {key: size**EXPONENT for key, size in sizes.items()}, sizes, least)


def round_to_total(shares: Mapping[Key, float]) -> dict[Key, int]:
    """Round numbers to integers with the same sum, by largest remainder. Ties go to the first key in sorted order."""
    whole = {key: floor(share) for key, share in sorted(shares.items())}
    by_remainder = sorted(whole, key=lambda key: whole[key] - shares[key])
    for key in by_remainder[: round(fsum(shares.values())) - sum(whole.values())]:
        whole[key] += 1
    return whole


def additional_units(counts: Mapping[Key, tuple[int, int]], share: float, least: int) -> dict[Key, int]:
    """Return how many more units to select in each stratum by power allocation. Selected units are kept.

    counts: number of units in each stratum, and number of units already selected.
    share: share of all units to select in total, rounded up.
    least: minimum number of units per stratum.
    """
    sizes = {key: units for key, (units, _) in counts.items()}
    weights = {key: units**EXPONENT for key, units in sizes.items()}
    target = round_to_total(allocate(part_of(share, sum(sizes.values())), weights, sizes, least))
    return {key: max(0, target[key] - chosen) for key, (_, chosen) in counts.items()}


@dataclass(frozen=True)
class Audit:
    """Audit results for one language.

    Counts are integers, except for expected values in a plan.

    posts: number of items on which the detectors agreed.
    doubted: number of audited items whose annotator did not confirm the detectors' label. All of them were adjudicated.
    doubted_wrong: number of doubted items on which the detectors were wrong.
    confirmed: number of audited items whose annotator confirmed the detectors' label.
    checked: number of confirmed items that were selected at random and adjudicated.
    checked_wrong: number of checked items on which the detectors, and therefore the annotator, were wrong.
    unresolved: number of audited items that were discarded or are unfinished.

    Raise ValueError if the counts are inconsistent.
    """

    posts: float
    doubted: float
    doubted_wrong: float
    confirmed: float
    checked: float
    checked_wrong: float
    unresolved: float = 0

    def __post_init__(self) -> None:
        if not (
            0 <= self.doubted_wrong <= self.doubted
            and 0 <= self.checked_wrong <= self.checked <= self.confirmed
            and 0 <= self.unresolved <= self.posts - self.resolved
        ):
            raise ValueError(f"{self} is impossible: wrong and checked posts must be among the audited posts.")

    @property
    def resolved(self) -> float:
        return self.doubted + self.confirmed

    @property
    def wrong(self) -> float:
        return self.doubted_wrong + self.checked_wrong


class AuditStratum(NamedTuple):
    """The items of one language to which the voters gave the same label."""

    language: str
    label: str


@dataclass
class AuditResponse:
    """Audits of agreed items, and the weights that correct for audits without a label.

    Audits with a label represent all audits of their stratum, under the assumption that the error rates are equal.

    weights: number of agreed items that the drawn audits represent, by stratum.
    read_weights: number of agreed items that the audits with a label represent, by stratum.
    read: number of audits with a label.
    missing: number of audits without a label, by reason.
    """

    weights: dict[AuditStratum, float] = field(default_factory=dict)
    read_weights: dict[AuditStratum, float] = field(default_factory=dict)
    read: int = 0
    missing: Counter[str] = field(default_factory=Counter)

    def add(self, stratum: AuditStratum, weight: float, missing: str = "") -> None:
        """Count an audit. missing: why the audit has no label; "" if it has a label."""
        self.weights[stratum] = self.weights.get(stratum, 0.0) + weight
        if missing:
            self.missing[missing] += 1
        else:
            self.read += 1
            self.read_weights[stratum] = self.read_weights.get(stratum, 0.0) + weight

    @property
    def unread(self) -> list[AuditStratum]:
        """The strata without any audits that have a label."""
        return sorted(self.weights.keys() - self.read_weights.keys())

    def shares(self) -> dict[AuditStratum, float]:
        """Return the weighted response rate of each stratum that has audits with a label.

        These strata also represent the other strata of their language. If a language has no audits with a label, all
        other languages represent it. The rates are reduced accordingly.
        """
        total: defaultdict[str, float] = defaultdict(float)
        answered: defaultdict[str, float] = defaultdict(float)
        for stratum, weight in self.weights.items():
            total[stratum.language] += weight
            answered[stratum.language] += weight * (stratum in self.read_weights)
        seen = fsum(total[language] for language, weight in answered.items() if weight)
        whole = seen / fsum(total.values()) if seen else 1.0
        return {
            stratum: weight / self.weights[stratum] * answered[stratum.language] / total[stratum.language] * whole
            for stratum, weight in self.read_weights.items()
        }


def error(audit: Audit, slips: Estimate | None = None) -> Estimate:
    """Estimate how often the detectors are wrong on items where they agree.

    If no check found an error, or if all confirmed items were checked, this is the plain share of wrong items among the
    audited items, with the Jeffreys interval. Otherwise, the checked items represent all confirmed items, with the
    variance of two-phase sampling (Cochran 1977, section 12.2). If nothing was checked, confirmed items count as right,
    so errors that annotators missed are not included. Unresolved items are assumed to be like resolved items; `bounds`
    drops this assumption.

    slips: error rate of adjudicators, see `without_slips`.
    """
    return without_slips(_error_of_resolved(audit), slips)


def bounds(audit: Audit, slips: Estimate | None = None) -> tuple[float, float]:
    """Return the lowest and the highest possible end of the interval of `error`.

    At one extreme, the detectors are right on all unresolved items. At the other, they are wrong on all of them.
    """
    return _bounds([audit], lambda audits: error(audits[0], slips))


def overall_bounds(audits: Iterable[Audit], slips: Estimate | None = None) -> tuple[float, float]:
    """Return the bounds for the error rate over all languages; see `bounds`."""
    return _bounds([*audits], lambda audits: overall_error(audits, slips))


def _bounds(audits: list[Audit], of: Callable[[list[Audit]], Estimate]) -> tuple[float, float]:
    """Return the lowest and the highest end of three intervals: at both extremes, and for the estimate itself."""
    estimates = [of([_resolve(audit, wrong=wrong) for audit in audits]) for wrong in (False, True)]
    if (estimate := of(audits)).has_interval:
        estimates.append(estimate)
    return min(interval.low for interval in estimates), max(interval.high for interval in estimates)


def _resolve(audit: Audit, *, wrong: bool) -> Audit:
    """Return the audit with all unresolved items counted as doubted.

    wrong: whether the detectors are assumed to be wrong on all unresolved items, or on none.
    """
    doubted, doubted_wrong = audit.doubted + audit.unresolved, audit.doubted_wrong + audit.unresolved * wrong
    return replace(audit, doubted=doubted, doubted_wrong=doubted_wrong, unresolved=0)


def _error_of_resolved(audit: Audit) -> Estimate:
    if not audit.checked_wrong or audit.checked == audit.confirmed:
        return proportion(audit.wrong, audit.resolved)
    scale = audit.confirmed / audit.checked
    value = (audit.doubted_wrong + audit.checked_wrong * scale) / audit.resolved
    if audit.doubted_wrong == audit.doubted and audit.checked_wrong == audit.checked:  # Kish's effective sample size
        count = audit.resolved**2 / (audit.doubted + audit.checked * scale**2)
        return proportion(count, count)
    share = (audit.checked_wrong + 0.5) / (audit.checked + 1)  # with the Jeffreys prior, because checks may be few
    weight = audit.confirmed / audit.resolved
    by_checks = weight**2 * share * (1 - share) * (1 / audit.checked - 1 / audit.confirmed)
    count = value * (1 - value) / (value * (1 - value) / audit.resolved + by_checks)
    return replace(proportion(value * count, count), value=value)


def can_tell(audits: float, limit: float) -> bool:
    """Return whether an audit is large enough to test the limit on the error rate.

    It is large enough if a language with one error among its audited items would still pass.
    """
    return proportion(min(1, audits), audits).high <= limit


def is_over(audit: Audit, limit: float, slips: Estimate | None = None) -> bool:
    """Return whether annotators must label all items of the language, because too many labels may be wrong.

    This is the case if the error rate may exceed the limit and the audit is large enough to test the limit, or if the
    error rate certainly exceeds the limit. Items may be unresolved because they are hard, so both tests use `bounds`.

    slips: error rate of adjudicators, see `without_slips`.
    """
    low, high = bounds(audit, slips)
    return high > limit and (can_tell(audit.resolved + audit.unresolved, limit) or low > limit)


def overall_error(audits: Iterable[Audit], slips: Estimate | None = None) -> Estimate:
    """Estimate the error rate over all languages, each weighted by its number of items.

    Unresolved items are treated as in `error`. If a language has items but no resolved audits, its rate is assumed to
    be the mean of the other languages, and its interval runs from all right to all wrong. Errors in unread items are
    estimated from the audits, and errors in unchecked items from the checks (proportions.Unread). If no check found an
    error, confirmed items are assumed to contain at most as many errors as doubted items. Without this assumption, a
    few checks would make the interval far too wide.

    slips: error rate of adjudicators, see `without_slips`.

    Return UNKNOWN if no language has a resolved audit.
    """
    weighted = [audit for audit in audits if audit.posts]
    if not any(audit.resolved for audit in weighted):
        return UNKNOWN
    doubts, checks = Unread(), Unread()
    for audit in weighted:
        if not audit.resolved:
            doubts.blind += audit.posts
            continue
        weight = audit.posts / audit.resolved
        all_checked = audit.checked == audit.confirmed
        wrong = audit.doubted_wrong + audit.checked_wrong * all_checked
        doubts.add(weight, audit.posts - audit.resolved, audit.resolved, wrong)
        if audit.checked and not all_checked:
            check_weight = weight * audit.confirmed / audit.checked
            checks.add(check_weight, (check_weight - 1) * audit.checked, audit.checked, audit.checked_wrong)
    wrong = sum(audit.wrong for audit in weighted)
    unread = [doubts.turned()] if doubts.posts + doubts.blind else []
    unchecked = []
    if checks.posts:
        value, low, high = checks.turned()
        as_doubted = doubts.turned()[2] + wrong
        unchecked.append((value, low, high if value else min(high, as_doubted)))
    posts = sum(audit.posts for audit in weighted)
    turned = {UNREAD: unread, RECHECKS: unchecked}
    by_source = {source: [(MISS_TO_HIT, number) for number in numbers] for source, numbers in turned.items()}
    return without_slips(combine(posts, wrong, by_source), slips)


def neyman_allocation(number: int, languages: Mapping[str, tuple[int, Audit]]) -> dict[str, int]:
    """Allocate additional audits to languages so that the overall error rate is estimated most precisely.

    Each language gets audits in proportion to its number of items times sqrt(p(1 - p)), where p is its error rate
    (Neyman 1934, On the two different aspects of the representative method, Journal of the Royal Statistical Society
    97(4); Cochran 1977, section 5.5). To compute p, half an error and half a correct item are added, so languages
    without observed errors are audited too. If a language has too few items, the rest goes to other languages.

    number: total number of items to audit.
    languages: number of items available, and audit to date, by language.

    Return the number of items by language. Languages that get no items are left out.
    """
    most = {label: posts for label, (posts, _) in languages.items()}
    weights = {label: posts * deviation(audit) for label, (posts, audit) in languages.items()}
    return {label: posts for label, posts in round_to_total(allocate(number, weights, most)).items() if posts}


def deviation(audit: Audit) -> float:
    """Return the standard deviation of the error indicator: 1 if the detectors are wrong on an item, 0 if not."""
    share = (audit.wrong + 0.5) / (audit.resolved + 1)
    return sqrt(share * (1 - share))


def slips_of(decisions: float, differing: float) -> Estimate:
    """Estimate the error rate of adjudicators from items that two of them decided independently.

    If two adjudicators differ, either is equally likely to be wrong, so the error rate is half the share of differing
    decisions.

    decisions: number of items decided twice.
    differing: number of these items on which the adjudicators differ.
    """
    differ = proportion(differing, decisions)
    value = None if differ.value is None else differ.value / 2
    return replace(differ, value=value, low=differ.low / 2, high=differ.high / 2)


def without_slips(estimate: Estimate, slips: Estimate | None) -> Estimate:
    """Correct a share of wrong items for the errors of adjudicators: (share - s) / (1 - 2s).

    This is the correction of Rogan and Gladen 1978, Estimating prevalence from the results of a screening test,
    American Journal of Epidemiology 107(1), under the assumption that adjudicators err at the same rate s whether the
    detectors are right or wrong. MOVER combines the intervals of the share and of s (proportions.mover). If the
    corrected share is 0, the upper end is computed from the lowest s in its interval, because a few second opinions
    cannot show that no items are wrong.

    estimate: share of items that adjudicators found to be wrong.
    slips: error rate s of adjudicators. If it is None or has no value, the share is not corrected.
    """
    if estimate.value is None or slips is None or slips.value is None:
        return estimate

    def corrected(share: float, slip: float) -> float:
        slip = min(slip, 0.49)
        return min(1.0, max(0.0, (share - slip) / (1 - 2 * slip)))

    value = corrected(estimate.value, slips.value)
    by_slips = sorted(corrected(estimate.value, end) for end in (slips.low, slips.high))
    by_share = (corrected(estimate.low, slips.value), corrected(estimate.high, slips.value))
    low, high = mover(value, [by_share, (by_slips[0], by_slips[1])])
    if not value:
        high = corrected(estimate.high, slips.low)
    return with_interval(value, low, high, estimate.count)


# --- Cost of a limit on the error rate.


@cache
def contest_chance(audits: int, wrong: float, limit: float) -> float:
    """Return the probability that an audit finds a language over the limit (`is_over`).

    The number of errors among the audits is binomial (Johnson, Kemp and Kotz 2005, Univariate Discrete Distributions,
    chapter 3). The probability is 0 without audits.

    audits: number of audited items.
    wrong: the detectors' true error rate.
    limit: highest acceptable error rate.
    """
    if not audits:
        return 0.0

    def is_wrong_enough(wrong_audits: int) -> bool:
        return is_over(Audit(audits, wrong_audits, wrong_audits, audits - wrong_audits, 0, 0), limit)

    fewest = bisect_left(range(audits + 1), True, key=is_wrong_enough)
    return float(scipy.special.bdtrc(fewest - 1, audits, wrong)) if fewest else 1.0


def expected_contested(posts: int, audits: int, wrong: float, limit: float) -> float:
    """Return the expected number of additional items to label because the language may be over the limit.

    posts: number of items in the language on which the detectors agree.
    audits, wrong, limit: see `contest_chance`.
    """
    return contest_chance(audits, wrong, limit) * (posts - audits)


# --- False Yes answers: posts that annotators assign to a language although they are not in it.


# Share of a recall-oriented draw that is not in the author's language. It was a third to a half in tweets in four
# languages.
OTHERS = 0.4
ASSUMED = (0.02, 0.05)  # shares of false Yes answers to report if no decoys were answered
WIDER = 1.1  # maximum ratio of the width with the bound to the width of the plain interval


def false_among(answers: float, yes: float, is_so: float, is_not: float) -> float:
    """Return an upper bound on the share of Yes posts that are not in the language.

    The bound applies the upper end of the false-Yes rate on decoys to all posts outside the language. Decoys are more
    tempting than ordinary posts, so the result is a bound and not an estimate.

    answers: number of answered decoys.
    yes: number of decoys with a Yes.
    is_so: number of posts that annotators assigned to the language.
    is_not: number of posts that annotators assigned to other languages.

    Return 0 if no decoys were answered or no posts are in the language. The result is always less than 1.
    """
    if not answers or not is_so:
        return 0.0
    _, rate = jeffreys(yes, answers)
    return min(0.99, rate / max(0.01, 1 - rate) * is_not / is_so)


def in_recall(plain: Estimate, false_yes: float) -> Estimate:
    """Widen the interval of recall to allow for a share `false_yes` of posts that are not in the language.

    The predictor may have missed all of these posts, or found all of them.
    """
    return _widen(plain, lambda value: ((value - false_yes) / (1 - false_yes), value / (1 - false_yes)))


def in_precision(plain: Estimate, false_yes: float) -> Estimate:
    """Widen the precision's interval for the case that a share `false_yes` of the hits are wrong."""
    return _widen(plain, lambda value: (value * (1 - false_yes), value))


def _widen(plain: Estimate, ends: Callable[[float], tuple[float, float]]) -> Estimate:
    """Widen an interval to include the values that false answers may cause.

    ends: function from the estimate to the lowest and the highest of these values.
    """
    if plain.value is None or ends(plain.value) == (plain.value, plain.value):
        return plain
    low, high = (min(1.0, max(0.0, end)) for end in ends(plain.value))
    return with_interval(plain.value, *mover(plain.value, [(plain.low, plain.high), (low, high)]), plain.count)


@dataclass(frozen=True)
class AskedSet:
    """Expected properties of a set for one language, before it is drawn.

    by_author: whether the set is recall-oriented; otherwise, it is precision-oriented.
    accuracy: expected recall or precision.
    others: expected share of posts in other languages.
    rate: expected share of decoys with a Yes.
    """

    by_author: bool
    accuracy: float = 0.95
    others: float = OTHERS
    rate: float = 0.0

    def counts(self, posts: float) -> tuple[float, float]:
        """Return the expected number of posts inside and outside the language."""
        inside = posts * (1 - self.others if self.by_author else self.accuracy)
        return inside, posts - inside

    def estimate(self, posts: float, decoys: float) -> Estimate:
        """Return the estimate that `evaluate` is expected to report."""
        inside, outside = self.counts(posts)
        false = false_among(decoys, self.rate * decoys, inside, outside)
        if self.by_author:
            return in_recall(proportion(inside * self.accuracy, inside), false)
        return in_precision(proportion(inside, posts), false)

    def widths_without_decoys(self, posts: float) -> dict[float, float]:
        """Return the interval's width without decoys, for each share of false Yes answers in ASSUMED."""
        plain = self.estimate(posts, 0)
        widened = in_recall if self.by_author else in_precision
        return {share: _width(widened(plain, share)) for share in ASSUMED}

    def decoys(self, posts: int) -> int:
        """Return the smallest number of decoys that keeps the interval narrow.

        The interval is then at most WIDER times as wide as without false Yes answers. The result is at most the number
        of posts, and at least 1 if there are any posts. It is also close to the number that gives the narrowest
        interval if the total number of posts and decoys is fixed.
        """

        def is_enough(decoys: int) -> bool:
            return _width(self.estimate(posts, decoys)) <= most

        most = WIDER * _width(AskedSet(self.by_author, self.accuracy, self.others).estimate(posts, 0))
        return min(posts, bisect_left(range(posts), True, lo=min(1, posts), key=is_enough))


def _width(estimate: Estimate) -> float:
    return estimate.high - estimate.low


# --- Labels from a single annotator.


class Errors(NamedTuple):
    """Error rates of labels that come from a single annotator.

    lost: error rate among the labels that match the prediction.
    gained: share of all labels that are wrong while the prediction is right.
    gone: share of all labels that are wrong and differ from the prediction.
    """

    lost: Estimate
    gained: Estimate
    gone: Estimate


_NEVER = Estimate(0.0, 0.0, 0.0, 0.0, 0.0)


def of_adjudicators(slips: Estimate, right: float) -> Errors:
    """Return the error rates of adjudicators, whose errors are assumed to be independent of the predictions.

    slips: error rate of the adjudicators' labels.
    right: share of the adjudicators' labels that match the prediction. The prediction is assumed to be right equally
        often where the adjudicators are wrong.
    """
    return Errors(_NEVER, scale(slips, right), slips)


def scale(slips: Estimate, share: float) -> Estimate:
    """Multiply an error rate by a share, to count only the errors in this share of the labels."""
    value = None if slips.value is None else slips.value * share
    return replace(slips, value=value, low=slips.low * share, high=slips.high * share)


def with_slips(of: Callable[[Estimate | None], Estimate], slips: Estimate | None) -> Estimate:
    """Widen the interval of a share to allow for adjudicators' errors.

    The errors affect all gold pools in the same direction, so they count as a single source of error. Its interval runs
    from the share at the lowest error rate to the share at the highest.

    of: function from the adjudicators' error rate to the share.
    slips: the adjudicators' error rate; None if unknown.
    """
    if slips is None or slips.value is None:
        return of(None)
    shares = {rate: of(Estimate(rate, rate, rate, 0.0, 0.0)) for rate in {slips.value, slips.low, slips.high}}
    estimate = shares[slips.value]
    reached = {share.value for share in shares.values() if share.value is not None}
    if estimate.value is None or reached == {estimate.value}:
        return estimate
    by_slips = part_by(SECONDS, estimate.value, [(min(reached), max(reached))])
    return from_parts(estimate.value, [*estimate.parts, by_slips], estimate.count)


def turned(way: Way, posts: float, rate: Estimate, labels: float = 1.0) -> tuple[Way, Turned]:
    """Estimate how many items change in one way if wrong labels are corrected. Return the way and the number.

    Wrong labels that differ from the prediction are assumed to be distributed over the domain like all of the
    predictor's misses, because labels given by mistake are usually rare labels.

    way: what a changed item adds to the domain and to the hits.
    posts: number of items that can change.
    rate: share of all labels that are wrong.
    labels: ratio of the number of all labels to the number of labels that can change.
    """
    number, fewest, most = (min(posts, posts * labels * (share or 0.0)) for share in (rate.value, rate.low, rate.high))
    return way, (number, fewest, most)
