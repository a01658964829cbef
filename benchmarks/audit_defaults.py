"""How the defaults of the audit were chosen: the exponent of its allocation, its share, and its limit.

The tables show:

- the expected widths by the exponent of the allocation, for the same number of audits;
- widths and coverage in draws from generated posts (made_posts.py), with the former and the current allocation;
- the loss by the limit: the posts that people read, for the audit or because a language failed it, plus a price (in
  posts read) for each wrong label that remains. WRONG has the error of the languages' agreement.
"""

from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from annotate.core.estimation import label_errors
from annotate.core.estimation.label_errors import additional_units, expected_contested
from annotate.figures import interval_width
from annotate.figures.interval_width import Checks, Draw, Expected, Stream
from benchmarks.made_posts import (
    AUDIT_SHARE,
    CHECK_SHARE,
    LEAST_AUDITS,
    LEAST_CHECKS,
    RECHECK,
    SECOND,
    World,
)
from benchmarks.material import shares
from benchmarks.place import in_places
from benchmarks.tables import share, show

AGREED = 0.8  # the share of posts on which the detectors agree
# Error of a language's agreement -> share of languages.
WRONG = {0.001: 0.6, 0.01: 0.3, 0.05: 0.07, 0.15: 0.03}
SIZES, PRICES = (10_000, 100_000), (5, 10, 20, 40)
SHARES, LIMITS = (0.05, 0.1, 0.15, 0.2), (0.1, 0.15, 0.2, 1.0)
EXPONENTS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

# 10,000 posts of 50 labels, on a quarter of which the detectors do not agree.
_POSTS = World(labels=50, zipf=1.1, disputed=0.25, first=(None, 0.7), checked=True)
_AS_BEFORE = replace(
    _POSTS, audit_share=0.02, least_audits=30, recheck=0.2, check_share=0.02, least_checks=5, by_power=False
)
# In all but the last, people read the same number of posts for the audit, including adjudicators' checks.
WORLDS = {
    "2% and at least 30 of each label; 20% of what is confirmed is checked": _AS_BEFORE,
    "20% of all, by power allocation; 20% checked": replace(_POSTS, audit_share=0.2, recheck=0.2),
    "18.5%; 30% checked": replace(_POSTS, audit_share=0.185),
    "17.2%; 40% checked": replace(_POSTS, audit_share=0.172, recheck=0.4),
    "as by default": _POSTS,
}
RANKS = (1, 5, 10, 20, 40)  # of the labels that are shown, the commonest first


class Row(NamedTuple):
    """A figure of one draw; width: None where it has no interval."""

    figure: str
    width: float | None
    covers: bool


def add_options(parser) -> None:
    parser.add_argument("--agreed", type=float, default=AGREED, help="of all posts (default %(default)s)")
    parser.add_argument("--default-draws", type=int, default=100, help="of each audit (default %(default)s)")


def run(folder, options) -> None:
    by_exponent()
    for name, rows in in_places("benchmarks.audit_defaults_work", WORLDS, options.default_draws, options.seed):
        report(name, [Row(*row) for row in rows])
    counts = shares(folder)
    for size in SIZES:
        languages = {
            label: posts
            for label, count in counts.items()
            if label != "und" and (posts := round(size * options.agreed * count / counts.total()))
        }
        by_limit(size, languages)


def by_exponent() -> None:
    """Show widths by exponent. Regret is how much wider a figure is than with the exponent that is best for it."""
    common = 1 / np.arange(1, _POSTS.labels + 1) ** _POSTS.zipf
    agreed, disputed = (
        {str(rank): int(posts * part) for rank, part in enumerate(common / common.sum(), 1)}
        for posts in (_POSTS.posts * (1 - _POSTS.disputed), _POSTS.posts * _POSTS.disputed)
    )
    checks = Checks(CHECK_SHARE, LEAST_CHECKS, RECHECK, SECOND)
    figures = [
        ("accuracy", ""),
        ("error", ""),
        *product(("recall", "precision"), map(str, RANKS)),
    ]
    for audit_share, voted in product((AUDIT_SHARE, 0.2), (True, False)):
        widths = {}
        for exponent in EXPONENTS:
            label_errors.EXPONENT = exponent
            stream, draw = Stream(agreed, disputed), Draw(_POSTS.drawn, audit_share, LEAST_AUDITS, checks)
            widths[exponent] = [
                interval_width.width(interval_width.planned(*figure, stream, draw, Expected(voted=voted)))
                for figure in figures
            ]
        best = [min(of) for of in zip(*widths.values(), strict=True)]
        rows = [
            [
                str(exponent),
                *(f"{100 * width:.1f}" for width in of),
                f"{max(width / least for width, least in zip(of, best, strict=True)):.2f}",
            ]
            for exponent, of in widths.items()
        ]
        title = f"Widths by exponent; {audit_share:.0%} audited, the predictor {'voted' if voted else 'did not vote'}"
        show(title, ["", *(" ".join(figure) for figure in figures), "regret"], rows)


def report(name: str, rows: list[Row]) -> None:
    table = []
    for figure in dict.fromkeys(row.figure for row in rows):
        all_of = [row for row in rows if row.figure == figure]
        widths = [row.width for row in all_of if row.width is not None]
        covered = sum(row.covers for row in all_of if row.width is not None)
        width = f"{100 * float(np.mean(widths)):.1f}" if widths else "-"
        table.append([figure, share(len(widths), len(all_of)), width, share(covered, len(widths))])
    show(name, ["", "an interval", "width in points", "cover"], table)


def by_limit(size: int, languages: dict[str, int]) -> None:
    rows = []
    for audit_share, limit in product(SHARES, LIMITS):
        counts = additional_units({label: (posts, 0) for label, posts in languages.items()}, audit_share, LEAST_AUDITS)
        costs = [
            (posts, wrong, part, counts[label] + expected_contested(posts, counts[label], wrong, limit))
            for label, posts in languages.items()
            for wrong, part in WRONG.items()
        ]
        read = sum(part * read for _, _, part, read in costs)
        left = sum(part * wrong * (posts - read) for posts, wrong, part, read in costs)
        losses = [round(read + price * left) for price in PRICES]
        rows.append([f"{audit_share:.0%}, {limit:.0%}", sum(counts.values()), round(read), *losses])
    title = f"{size:,} posts, of which {sum(languages.values()):,} are agreed on, in {len(languages)} languages"
    show(title, ["share, limit", "audits", "read in all", *(f"loss at {price}" for price in PRICES)], rows)
