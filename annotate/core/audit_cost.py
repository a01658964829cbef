"""What the audit of the detectors' agreement costs: the posts it reads, and those that are read since it failed.

What an audit finds is in audits.py. The defaults of the audit were chosen by `loss`: docs/explanation/audit.md.
"""

from bisect import bisect_left
from functools import cache

import scipy

from annotate.core import lottery
from annotate.core.audits import Audit, error


def audited(posts: int, share: float, least: int) -> int:
    """How many of the posts in a language on which the detectors agree are chosen for the audit."""
    return lottery.wanted(posts, share, least)


@cache
def contest_chance(audits: int, wrong: float, limit: float) -> float:
    """How likely it is that a language in which this share of agreement is wrong is over the limit: by the number of
    wrong posts among those audited, a binomial one (Johnson, Kemp and Kotz 2005, Univariate Discrete Distributions,
    chapter 3). 0 without audits.
    """
    if not audits:
        return 0.0
    fewest = bisect_left(range(audits + 1), True, key=lambda found: error(_audit(audits, found)).high > limit)
    return float(scipy.special.bdtrc(fewest - 1, audits, wrong)) if fewest else 1.0


def _audit(audits: int, wrong: int) -> Audit:
    return Audit(audits, doubted=wrong, doubted_wrong=wrong, confirmed=audits - wrong, checked=0, checked_wrong=0)


def contested(posts: int, audits: int, wrong: float, limit: float) -> float:
    """How many posts are read besides the audits on average, since the language was over the limit."""
    return contest_chance(audits, wrong, limit) * (posts - audits)


def expected_reading(posts: int, wrong: float, share: float, least: int, limit: float) -> float:
    """How many of a language's posts on which the detectors agree are read on average: the audits, and the others where
    the language is over the limit."""
    audits = audited(posts, share, least)
    return audits + contested(posts, audits, wrong, limit)


def loss(posts: int, wrong: float, share: float, least: int, limit: float, price: float) -> float:
    """The expected reading, and the price of each wrong label among what nobody reads, in posts read."""
    read = expected_reading(posts, wrong, share, least, limit)
    return read + price * wrong * (posts - read)
