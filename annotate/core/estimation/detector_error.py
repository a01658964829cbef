"""How wrong the detectors are where they agree, from the posts that people audited.

annotate/controls/audit_report.py counts the answers.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import sqrt

import scipy

from annotate.core.estimation.allocation import rounded, spread
from annotate.core.estimation.proportions import (
    MISS_TO_HIT,
    RECHECKS,
    UNKNOWN,
    UNREAD,
    Estimate,
    Unread,
    combined,
    moved,
    proportion,
    with_interval,
)


@dataclass(frozen=True)
class Audit:
    """What people found of a language's `posts` on which the detectors agreed.

    Of the audited posts the reader `doubted` some: all of these were adjudicated, and in `doubted_wrong` the detectors
    were wrong. The reader `confirmed` others; a share of them by chance, `checked`, was adjudicated too, and in
    `checked_wrong` the detectors were wrong, and the reader. `unresolved`: audited, but discarded or not done.
    These are whole numbers, except where a plan expects so many on average.
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
            raise ValueError(f"{self} cannot be: the wrong and the checked are parts of the posts that were audited.")

    @property
    def resolved(self) -> float:
        return self.doubted + self.confirmed

    @property
    def wrong(self) -> float:
        return self.doubted_wrong + self.checked_wrong


def error(audit: Audit, slips: Estimate | None = None) -> Estimate:
    """How often the detectors are wrong where they agree: the doubted that were wrong, and of the confirmed the share
    that the checks found wrong. slips: as in `without_slips`.

    If the checks found nothing, or all was checked, this is the plain Jeffreys interval of the audited posts.
    Otherwise the checks stand for all the confirmed, at the price of two-phase sampling (Cochran 1977, section 12.2).
    If nothing was checked, confirmations count as right, and errors that readers let slip are not included. Unresolved
    posts are taken to be like those that were resolved; `bounds` takes them for anything.
    """
    return without_slips(_of_resolved(audit), slips)


def bounds(audit: Audit, slips: Estimate | None = None) -> tuple[float, float]:
    """The ends of the error's interval if the detectors were right in all the unresolved posts, and wrong in all."""
    return _bounds([audit], lambda audits: error(audits[0], slips))


def overall_bounds(audits: Iterable[Audit], slips: Estimate | None = None) -> tuple[float, float]:
    """The same for the error in all languages."""
    return _bounds([*audits], lambda audits: overall_error(audits, slips))


def _bounds(audits: list[Audit], of: Callable[[list[Audit]], Estimate]) -> tuple[float, float]:
    """They hold the interval, if there is one."""
    found = [of([_resolved(audit, wrong=wrong) for audit in audits]) for wrong in (False, True)]
    if (known := of(audits)).has_interval:
        found.append(known)
    return min(each.low for each in found), max(each.high for each in found)


def _resolved(audit: Audit, *, wrong: bool) -> Audit:
    """The same audit if people had doubted all the unresolved posts, and the detectors were right or wrong in all."""
    doubted, doubted_wrong = audit.doubted + audit.unresolved, audit.doubted_wrong + audit.unresolved * wrong
    return replace(audit, doubted=doubted, doubted_wrong=doubted_wrong, unresolved=0)


def _of_resolved(audit: Audit) -> Estimate:
    if not audit.checked_wrong or audit.checked == audit.confirmed:
        return proportion(audit.wrong, audit.resolved)
    each = audit.confirmed / audit.checked
    value = (audit.doubted_wrong + audit.checked_wrong * each) / audit.resolved
    if audit.doubted_wrong == audit.doubted and audit.checked_wrong == audit.checked:  # Kish's effective size
        count = audit.resolved**2 / (audit.doubted + audit.checked * each**2)
        return proportion(count, count)
    share = (audit.checked_wrong + 0.5) / (audit.checked + 1)  # as Jeffreys' prior, since one check may be all
    weight = audit.confirmed / audit.resolved
    by_checks = weight**2 * share * (1 - share) * (1 / audit.checked - 1 / audit.confirmed)
    count = value * (1 - value) / (value * (1 - value) / audit.resolved + by_checks)
    return replace(proportion(value * count, count), value=value)


def can_tell(audits: float, limit: float) -> bool:
    """Whether an audit of so many posts has the power to test a limit: with one wrong post it would still pass."""
    return proportion(min(1, audits), audits).high <= limit


def is_over(audit: Audit, limit: float, slips: Estimate | None = None) -> bool:
    """Whether people are to label all posts: more than the limit may be wrong, and the audit has the power to tell; or
    certainly more is wrong. Posts may be unresolved because they are hard, so both are tested with the bounds.
    slips: as in `without_slips`."""
    low, high = bounds(audit, slips)
    return high > limit and (can_tell(audit.resolved + audit.unresolved, limit) or low > limit)


def overall_error(audits: Iterable[Audit], slips: Estimate | None = None) -> Estimate:
    """The error of agreement in all languages, each weighted by its posts, in the stream from which they were drawn.
    slips: as in `without_slips`. Unresolved posts are taken as in `error`.

    A language with posts but no resolved audit counts as the mean of the others, and may be all right or all wrong;
    where there are none others, this is UNKNOWN. Doubts, and checks of confirmations, tell each how much of what
    was not read is wrong (estimation.Unread). Where no check found a wrong post, readers are taken to confirm no more
    wrong posts than they doubt: few checks could not show that, and else the interval would reach as far as they do.
    """
    given = [audit for audit in audits if audit.posts]
    if not any(audit.resolved for audit in given):
        return UNKNOWN
    doubts, checks = Unread(), Unread()
    for audit in given:
        if not audit.resolved:
            doubts.blind += audit.posts
            continue
        weight = audit.posts / audit.resolved
        all_checked = audit.checked == audit.confirmed
        found = audit.doubted_wrong + audit.checked_wrong * all_checked
        doubts.add(weight, audit.posts - audit.resolved, audit.resolved, found)
        if audit.checked and not all_checked:
            each = weight * audit.confirmed / audit.checked
            checks.add(each, (each - 1) * audit.checked, audit.checked, audit.checked_wrong)
    found = sum(audit.wrong for audit in given)
    unread = [doubts.turned()] if doubts.posts + doubts.blind else []
    unchecked = []
    if checks.posts:
        value, low, high = checks.turned()
        as_doubted = doubts.turned()[2] + found
        unchecked.append((value, low, high if value else min(high, as_doubted)))
    posts = sum(audit.posts for audit in given)
    turned = {UNREAD: unread, RECHECKS: unchecked}
    by_source = {source: [(MISS_TO_HIT, number) for number in numbers] for source, numbers in turned.items()}
    return without_slips(combined(posts, found, by_source), slips)


def allotted(number: int, languages: Mapping[str, tuple[int, Audit]]) -> dict[str, int]:
    """How many posts more to read in each language, `number` in all, so that the error of agreement in all of them
    becomes as certain as it can; all there are where that is less. Only languages that get some are named.

    languages: label -> the posts that may be chosen, and the audit so far. The shares are Neyman's (1934, On the two
    different aspects of the representative method, Journal of the Royal Statistical Society 97(4); Cochran 1977,
    section 5.5): posts times sqrt(p(1 - p)), where p, the share of errors, is taken with half an error and half a right
    post more, so that a language in which none was found is read too. What one language lacks goes to the others.
    """
    most = {label: posts for label, (posts, _) in languages.items()}
    weights = {label: posts * deviation(audit) for label, (posts, audit) in languages.items()}
    return {label: posts for label, posts in rounded(spread(number, weights, most)).items() if posts}


def deviation(audit: Audit) -> float:
    """Of one post: whether the detectors are wrong in it, 0 or 1."""
    share = (audit.wrong + 0.5) / (audit.resolved + 1)
    return sqrt(share * (1 - share))


def slips_of(decisions: float, differing: float) -> Estimate:
    """How often an adjudicator slips, from decisions that two of them made without knowing the other's. Each is as
    likely to have slipped where they differ, so it is half of that."""
    differ = proportion(differing, decisions)
    value = None if differ.value is None else differ.value / 2
    return replace(differ, value=value, low=differ.low / 2, high=differ.high / 2)


def without_slips(found: Estimate, slips: Estimate | None) -> Estimate:
    """A share of wrong posts less what adjudicators called wrong, or right, by mistake: (found - s) / (1 - 2s).

    slips: s, how often they do so; None, or of unknown value, leaves the share as it is. (Rogan and Gladen 1978,
    Estimating prevalence from the results of a screening test, American Journal of Epidemiology 107(1), with as many
    slips either way; that they are as likely where the detectors are right as where they are wrong is a model.) The
    ends of both intervals move that of the share (estimation.moved). Where nothing is left of the share, its distances
    are lost with it, so the upper end is that with the fewest slips: few second opinions cannot show that no post is
    wrong.
    """
    if found.value is None or slips is None or slips.value is None:
        return found

    def corrected(share: float, slip: float) -> float:
        slip = min(slip, 0.49)
        return min(1.0, max(0.0, (share - slip) / (1 - 2 * slip)))

    value = corrected(found.value, slips.value)
    by_slips = sorted(corrected(found.value, end) for end in (slips.low, slips.high))
    by_share = (corrected(found.low, slips.value), corrected(found.high, slips.value))
    low, high = moved(value, [by_share, (by_slips[0], by_slips[1])])
    if not value:
        high = corrected(found.high, slips.low)
    return with_interval(value, low, high, found.count)


# --- what a limit on the error of agreement costs


@cache
def contest_chance(audits: int, wrong: float, limit: float) -> float:
    """How likely it is that a language in which this share of agreement is wrong is over the limit: by the number of
    wrong posts among those audited, a binomial one (Johnson, Kemp and Kotz 2005, Univariate Discrete Distributions,
    chapter 3). 0 without audits.
    """
    if not audits:
        return 0.0

    def is_wrong_enough(found: int) -> bool:
        return is_over(Audit(audits, found, found, audits - found, 0, 0), limit)

    fewest = bisect_left(range(audits + 1), True, key=is_wrong_enough)
    return float(scipy.special.bdtrc(fewest - 1, audits, wrong)) if fewest else 1.0


def contested(posts: int, audits: int, wrong: float, limit: float) -> float:
    """How many posts are read besides the audits on average because the language is over the limit."""
    return contest_chance(audits, wrong, limit) * (posts - audits)
