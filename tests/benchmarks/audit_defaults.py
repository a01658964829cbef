"""What the audit costs by its options, in a stream with the languages of Twitter: how the defaults were chosen.

Nothing is drawn: the loss (annotate/core/audit_cost.py) is computed. It is the posts that people read, for the audit
or since a language failed it, and a price for each wrong label that stays, in posts read. As much of each language's
agreement is taken to be wrong as stands in WRONG, each in its share of languages.
"""

from itertools import product

from annotate.core.audit_cost import audited, expected_reading, loss
from annotate.core.intervals import jeffreys
from tests.benchmarks.material import shares
from tests.benchmarks.tables import show

AGREED = 0.8  # the share of posts on which the detectors agree
# Share of a language's agreement that is wrong -> in how many languages.
WRONG = {0.001: 0.6, 0.01: 0.3, 0.05: 0.07, 0.15: 0.03}
SIZES, PRICES = (10_000, 100_000), (5, 10, 20, 40)
SHARES, LEASTS, LIMITS = (0.01, 0.02, 0.05), (20, 30, 60, 100), (0.05, 0.1, 0.15, 0.2, 0.3, 1.0)


def add_options(parser) -> None:
    parser.add_argument("--agreed", type=float, default=AGREED, help="of all posts (default %(default)s)")


def run(folder, options) -> None:
    counts = shares(folder)
    for size in SIZES:
        languages = [
            posts
            for label, count in counts.items()
            if label != "und" and (posts := round(size * options.agreed * count / counts.total()))
        ]
        rows = []
        for share, least, limit in product(SHARES, LEASTS, LIMITS):
            if jeffreys(0, least)[1] > limit:
                continue  # which is refused, since everything would be contested
            rule = share, least, limit
            losses = [
                sum(part * loss(posts, wrong, *rule, price) for posts in languages for wrong, part in WRONG.items())
                for price in PRICES
            ]
            audits = sum(audited(posts, share, least) for posts in languages)
            read = sum(
                part * expected_reading(posts, wrong, *rule) for posts in languages for wrong, part in WRONG.items()
            )
            rows.append([f"{share:.0%}, {least}, {limit:.0%}", audits, round(read), *map(round, losses)])
        title = f"{size:,} posts, of which {sum(languages):,} are agreed on, in {len(languages)} languages"
        show(title, ["audit", "audits", "read in all", *(f"loss at {price}" for price in PRICES)], rows)
