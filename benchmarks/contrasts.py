"""Draws for the comparison of two systems: whether the intervals cover the difference, and how many answers they save.

No data are needed: a corpus of 100,000 posts is generated (made_posts.py). Each draw is compared with the corpus and
with two uniform draws, one of which is read completely while the other has the default audit.
"""

from benchmarks.made_posts import World
from benchmarks.place import in_places
from benchmarks.tables import show

POSTS, ANSWERS, UNIFORM = 100_000, 400, 4_000  # in the corpus; answers of a draw; posts of a uniform draw
_CORPUS = {"posts": POSTS, "drawn": UNIFORM, "labels": 10}
WORLDS = {
    "right in 94 and 92%": World(**_CORPUS, first=(0.967, 0.77), second=(0.948, 0.73)),
    "right in 92% each": World(**_CORPUS, first=(0.948, 0.73), second=(0.948, 0.73)),
    "a voter, and a classifier": World(**_CORPUS, wrong=0.03, second=(0.965, 0.75)),
}
HEAD = [
    *("figure", "covers", "width in points", "answers", "answers of a uniform draw, all read"),
    *("saved", "of one with the default audit", "saved by that"),
]


def add_options(parser) -> None:
    parser.add_argument("--contrasts-draws", type=int, default=300, help="of each population (default %(default)s)")


def run(folder, options) -> None:
    program = "benchmarks.contrasts_work"
    for name, rows in in_places(program, WORLDS, options.contrasts_draws, options.seed):
        show(name, HEAD, [_row(*row) for row in rows])


def _row(figure: str, covers: float, width: float, all_read: float, audited: float) -> list[str]:
    """all_read, audited: the answers with which a uniform draw has an interval of that width."""
    others = [cell for answers in (all_read, audited) for cell in (f"{answers:,.0f}", f"{1 - ANSWERS / answers:.0%}")]
    return [figure, f"{covers:.1%}", f"{100 * width:.1f}", f"{ANSWERS:,}", *others]
