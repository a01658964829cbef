"""What the draws of `population` show: how often intervals cover, and what the recall-oriented draw reaches."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from math import sqrt
from typing import NamedTuple

from annotate.core.estimation.proportions import jeffreys
from benchmarks.place import BenchmarkFailed
from benchmarks.tables import share, show

# If more of a frame is drawn, an interval from plain counts is too long, and covers more often than stated.
SMALL_FRACTION = 0.1
COVERED = (0.93, 0.97)
# Languages with fewer posts in the later window are not shown separately.
LEAST_SHOWN = 30
REASONS = {
    "silent": "nothing",
    "none": "nothing in the language",
    "under": "under a tenth in the language",
    "mislabelled": "a tenth or more, labelled otherwise",
}

interval = cache(jeffreys)


class Cell(NamedTuple):
    """One figure of one seed's draw. fraction: how much of its frame was drawn."""

    design: str
    predictor: str
    figure: str
    language: str
    fraction: float
    truth: float
    stream: float | None  # the recall in the whole window, of a recall-oriented draw
    hits: int
    posts: int

    @property
    def inner(self) -> bool:
        return 0 < self.truth < 1

    @property
    def plain(self) -> bool:
        return self.inner and self.fraction < SMALL_FRACTION

    def covers(self, truth: float) -> bool:
        low, high = interval(self.hits, self.posts)
        return low <= truth <= high


def cells_of(truths: dict, counted: Iterable[list]) -> Iterable[Cell]:
    frames = {(design, language): posts for design, language, posts, _ in truths["frames"]}
    truth = {
        (design, language, *key): hits / posts
        for design, language, _, figures in truths["frames"]
        for *key, hits, posts in figures
        if posts
    }
    stream = {
        (reached["language"], name): parts["stream"][0] / parts["stream"][1]
        for reached in truths["reached"]
        for name, parts in reached["recall"].items()
        if parts["stream"][1]
    }
    for draws in counted:
        for design, drawn_for, drawn, *key, hits, posts in draws:
            yield Cell(
                design,
                *key,
                fraction=drawn / frames[design, drawn_for],
                truth=truth[design, drawn_for, *key],
                stream=stream[drawn_for, key[0]] if design == "recall" else None,
                hits=hits,
                posts=posts,
            )


def report(truths: dict, cells: list[Cell], predictor: str, detail: bool) -> None:
    groups: dict[str, list[Cell]] = {"under a tenth drawn, truth between 0 and 1": [c for c in cells if c.plain]}
    for design, figure in dict.fromkeys((cell.design, cell.figure) for cell in cells):
        groups[f"  {design}: {figure}"] = [c for c in cells if c.plain and (c.design, c.figure) == (design, figure)]
    groups |= {
        "the others": [c for c in cells if not c.plain],
        "  a tenth or more drawn, truth between 0 and 1": [c for c in cells if c.inner and not c.plain],
        "  truth 0 or 1": [c for c in cells if not c.inner],
    }
    show(
        "How often the 95% interval covers what is true of the frame",
        ["", "cells", "figures", "covers", "truth below", "truth above"],
        [[title, len(rows), *_sides(rows)] for title, rows in groups.items()],
    )
    recall = [cell for cell in cells if cell.design == "recall"]
    measured = list(dict.fromkeys(cell.predictor for cell in recall))
    parts = {
        "under a tenth drawn": [cell for cell in recall if cell.fraction < SMALL_FRACTION],
        "a tenth or more": [cell for cell in recall if cell.fraction >= SMALL_FRACTION],
    }
    show(
        "Recall-oriented draws: how often the interval covers; estimate less truth, mean over languages (points)",
        ["", "languages", "cells", "covers frame", "covers stream", "off frame", "off stream"],
        [
            [f"{name}, {title}", *_recall_row([cell for cell in rows if cell.predictor == name])]
            for title, rows in parts.items()
            for name in measured
        ],
    )
    for name in measured if detail else [predictor]:
        show_reached(truths["reached"], [cell for cell in recall if cell.predictor == name], name)
    missed = Counter()
    for reached in truths["reached"]:
        missed.update(reached["missed"])
    posts = sum(reached["recall"][predictor]["stream"][1] for reached in truths["reached"])
    show(
        "Posts that no recall-oriented draw can reach, by what their author wrote in the history",
        ["", "posts", "of all"],
        [[REASONS[reason], count, share(count, posts)] for reason, count in missed.items()],
    )
    if detail:
        show_figures(cells)


def _sides(rows: Sequence[Cell]) -> tuple[int, str, str, str]:
    """Return the number of figures, the coverage, and how often the truth lies on either side of the interval."""
    below = sum(cell.truth < interval(cell.hits, cell.posts)[0] for cell in rows)
    above = sum(cell.truth > interval(cell.hits, cell.posts)[1] for cell in rows)
    figures = len({(cell.design, cell.predictor, cell.figure, cell.language) for cell in rows})
    return figures, *(share(count, len(rows)) for count in (len(rows) - below - above, below, above))


def _recall_row(rows: Sequence[Cell]) -> list[object]:
    by_language: dict[str, list[Cell]] = {}
    for cell in rows:
        by_language.setdefault(cell.language, []).append(cell)
    return [
        len(by_language),
        len(rows),
        share(sum(cell.covers(cell.truth) for cell in rows), len(rows)),
        share(sum(cell.covers(cell.stream) for cell in rows), len(rows)),
        100 * _mean(_mean(cell.hits / cell.posts - cell.truth for cell in group) for group in by_language.values()),
        100 * _mean(_mean(cell.hits / cell.posts - cell.stream for cell in group) for group in by_language.values()),
    ]


def show_reached(languages: list[dict], cells: Sequence[Cell], name: str) -> None:
    """Show the recall by language (%), the languages with most posts first.

    The gap is the recall of the posts that the design can reach minus the recall of all posts (points). Next to it is
    its standard deviation if the posts out of reach were random.
    """
    rows = []
    for reached in sorted(languages, key=lambda reached: -reached["recall"][name]["stream"][1]):
        parts = reached["recall"][name]
        posts, inside = parts["stream"][1], parts["inside"][1]
        if posts < LEAST_SHOWN or not inside:
            continue
        group = [cell for cell in cells if cell.language == reached["language"]]
        of, within = parts["stream"][0] / posts, parts["inside"][0] / inside
        rows.append(
            [
                reached["language"],
                posts,
                reached["frame"],
                share(inside, posts),
                100 * of,
                100 * within,
                100 * parts["missed"][0] / parts["missed"][1] if parts["missed"][1] else "-",
                100 * (within - of),
                100 * sqrt(of * (1 - of) / posts * (posts - inside) / inside),
                len(group),
                100 * _mean(cell.hits / cell.posts for cell in group) if group else "-",
                share(sum(cell.covers(cell.truth) for cell in group), len(group)),
                share(sum(cell.covers(cell.stream) for cell in group), len(group)),
            ]
        )
    show(
        f"Recall-oriented draws: recall (%) of {name} in the later window, by language",
        [
            *("language", "posts", "frame", "reached", "recall", "in reach", "out of it", "gap", "by chance"),
            *("cells", "estimate", "covers frame", "covers stream"),
        ],
        rows,
    )


def show_figures(cells: Sequence[Cell]) -> None:
    by_figure: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        by_figure.setdefault((cell.design, cell.figure, cell.language, cell.predictor), []).append(cell)
    show(
        "Every figure: posts (mean), how much of the frame is drawn, truth and mean estimate (%), how often it covers",
        ["figure", "cells", "posts", "drawn", "truth", "estimate", "covers"],
        [
            [
                " ".join(filter(None, key)),
                len(group),
                _mean(cell.posts for cell in group),
                f"{group[0].fraction:.1%}",
                100 * group[0].truth,
                100 * _mean(cell.hits / cell.posts for cell in group),
                share(sum(cell.covers(cell.truth) for cell in group), len(group)),
            ]
            for key, group in sorted(by_figure.items())
        ],
    )


def check(cells: Sequence[Cell]) -> None:
    low, high = COVERED
    covered = _mean(cell.covers(cell.truth) for cell in cells if cell.plain)
    others = _mean(cell.covers(cell.truth) for cell in cells if not cell.plain)
    if not low <= covered <= high:
        raise BenchmarkFailed(
            f"The intervals cover the truth {covered:.2%} of the time instead of {low:.0%}-{high:.0%}."
        )
    if others < low:
        raise BenchmarkFailed(f"Of the other cells, {others:.2%} are covered instead of at least {low:.0%}.")


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else float("nan")
