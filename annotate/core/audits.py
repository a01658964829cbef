"""How wrong the detectors are where they agree, from the posts that people audited.

annotate/quality/audits.py counts the answers.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import fsum

from annotate.core.estimation import Estimate, Stratum, combined_ratio, proportion


@dataclass(frozen=True)
class Audit:
    """What people found of a language's `posts` on which the detectors agreed.

    Of the audited posts the reader `doubted` some: all of these were adjudicated, and in `doubted_wrong` the detectors
    were wrong. The reader `confirmed` others; a share of them by chance, `checked`, was adjudicated too, and in
    `checked_wrong` the detectors were wrong, and the reader. `unresolved`: audited, but discarded or not done.
    """

    posts: int
    doubted: int
    doubted_wrong: int
    confirmed: int
    checked: int
    checked_wrong: int
    unresolved: int = 0

    def __post_init__(self) -> None:
        if not (
            0 <= self.doubted_wrong <= self.doubted
            and 0 <= self.checked_wrong <= self.checked <= self.confirmed
            and 0 <= self.unresolved <= self.posts - self.resolved
        ):
            raise ValueError(f"{self} cannot be: the wrong and the checked are parts of the posts that were audited.")

    @property
    def resolved(self) -> int:
        return self.doubted + self.confirmed


def error(audit: Audit) -> Estimate:
    """How often the detectors are wrong where they agree: the doubted that were wrong, and of the confirmed the share
    that the checks found wrong.

    If the checks found nothing, or all was checked, this is the plain Jeffreys interval of the audited posts.
    Otherwise the checks stand for all the confirmed, at the price of two-phase sampling (Cochran 1977, section 12.2).
    If nothing was checked, confirmations count as right, and errors that readers let slip are not included.
    """
    if not audit.checked_wrong or audit.checked == audit.confirmed:
        return proportion(audit.doubted_wrong + audit.checked_wrong, audit.resolved)
    each = audit.confirmed / audit.checked
    value = (audit.doubted_wrong + audit.checked_wrong * each) / audit.resolved
    if audit.doubted_wrong == audit.doubted and audit.checked_wrong == audit.checked:  # Kish's effective size
        count = audit.resolved**2 / (audit.doubted + audit.checked * each**2)
        return proportion(count, count)
    count = value * (1 - value) / (value * (1 - value) / audit.resolved + _slip_variance(audit))
    return replace(proportion(value * count, count), value=value)


def _slip_variance(audit: Audit) -> float:
    """The variance that checking only a part of the confirmed adds to the error; 0 where no check found one wrong."""
    if not audit.checked_wrong:
        return 0.0
    share = (audit.checked_wrong + 0.5) / (audit.checked + 1)  # as Jeffreys' prior, since one check may be all
    weight = audit.confirmed / audit.resolved
    return weight**2 * share * (1 - share) * (1 / audit.checked - 1 / audit.confirmed)


def bounds(audit: Audit) -> tuple[float, float]:
    """The ends of the error's interval if the detectors were right in all the unresolved posts, and wrong in all."""
    right = replace(audit, doubted=audit.doubted + audit.unresolved, unresolved=0)
    wrong = replace(right, doubted_wrong=audit.doubted_wrong + audit.unresolved)
    return error(right).low, error(wrong).high


def overall_error(audits: Iterable[Audit]) -> Estimate:
    """The error of agreement in all languages, each weighted by its posts; of the stream, not of this draw.

    A language with posts but no resolved audit, whose own error() is UNKNOWN, counts as the mean of those audited in
    part; where there is none such, so is this.
    """
    given = [audit for audit in audits if audit.posts]
    audited = [(audit, share) for audit in given if (share := error(audit).value) is not None]
    posts = sum(audit.posts for audit, _ in audited)
    hits = {audit: min(share * audit.resolved, audit.resolved) for audit, share in audited}
    return combined_ratio(
        [Stratum(audit.posts, audit.resolved, audit.resolved, hits.get(audit, 0)) for audit in given],
        None,
        fsum((audit.posts / posts) ** 2 * _slip_variance(audit) for audit, _ in audited),
    )
