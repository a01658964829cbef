"""What a limit on the error of agreement costs: the posts that people read since an audit failed by chance."""

from bisect import bisect_left
from functools import cache

import scipy

from annotate.core.audits import Audit, is_over


@cache
def contest_chance(audits: int, wrong: float, limit: float) -> float:
    """How likely it is that a language in which this share of agreement is wrong is over the limit: by the number of
    wrong posts among those audited, a binomial one (Johnson, Kemp and Kotz 2005, Univariate Discrete Distributions,
    chapter 3). 0 without audits.
    """
    if not audits:
        return 0.0
    fewest = bisect_left(range(audits + 1), True, key=lambda found: is_over(_audit(audits, found), limit))
    return float(scipy.special.bdtrc(fewest - 1, audits, wrong)) if fewest else 1.0


def _audit(audits: int, wrong: int) -> Audit:
    return Audit(audits, doubted=wrong, doubted_wrong=wrong, confirmed=audits - wrong, checked=0, checked_wrong=0)


def contested(posts: int, audits: int, wrong: float, limit: float) -> float:
    """How many posts are read besides the audits on average, since the language was over the limit."""
    return contest_chance(audits, wrong, limit) * (posts - audits)
