"""Which further work narrows accuracy most, and how much of it reaches a wished width: by the counts of a draw that was
made. Numbers in, numbers out; the widths are those of planning.py.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from annotate.core.audits import Audit, allotted, deviation
from annotate.core.planning import Counted, Draw, Expected, planned, reading, width

AUDITS, CHECKS, SECONDS, POSTS = "audits", "checks", "second opinions", "a larger draw"
LABELS = 3  # whose audits have a row of their own
LEAST = 1e-5  # by which a width is narrower, at least


class Measured(NamedTuple):
    """A draw that was made, as planning takes it, and what there is for further work. unread: label -> the posts that
    may be audited, and the audit so far; unchecked: the same of what one reader decides, by first queue; frame: posts
    that may be drawn."""

    counted: Counted
    draw: Draw
    expected: Expected
    unread: Mapping[str, tuple[int, Audit]]
    unchecked: Mapping[str, tuple[int, Audit]]
    frame: int
    seconds: float


Enlarged = Callable[[int], tuple[Counted, Draw]]


def narrowing(of: Measured, wished: float | None = None) -> dict[str, Any]:
    """{"width", "wished", "accuracy", "seconds", "rows": [ROW, ...]}.

    width: of the 95% interval of accuracy, once all that is chosen has been read; wished: by default half of that,
    to a tenth of a point; accuracy: what the predictor is expected to have.
    ROW: work (AUDITS, CHECKS, SECONDS, POSTS), label (whose audits; empty for all), amount (audits, checks, second
    opinions, or posts to draw, in all), posts (to read, adjudicators' too), hours, width, gain (of width, by hour), and
    enough: whether it reaches the wished width; else it is all that there is of this work. The most gain comes first.
    """

    def width_of(counted: Counted, draw: Draw) -> float:
        return width(planned("accuracy", "", counted, draw, of.expected))

    def negative_width(enlarged: Enlarged, amount: int) -> float:
        return -width_of(*enlarged(amount))

    now, work_now = width_of(of.counted, of.draw), reading(of.counted, of.draw).work
    wished = max(0.001, round(now / 2, 3)) if wished is None else wished
    rows: list[dict[str, Any]] = []
    for work, label, most, enlarged in _kinds(of):
        if most < 1:
            continue
        amounts = range(1, most + 1)
        place = bisect_left(amounts, -wished, key=partial(negative_width, enlarged))
        amount = amounts[min(place, most - 1)]
        narrower, posts = width_of(*enlarged(amount)), reading(*enlarged(amount)).work - work_now
        hours = posts * of.seconds / 3600
        if posts > 0 and now - narrower > LEAST:
            total = amount + of.draw.size * (work == POSTS)
            row = {"work": work, "label": label, "amount": total, "posts": posts, "hours": hours, "width": narrower}
            rows.append(row | {"gain": (now - narrower) / hours, "enough": place < most})
    rows.sort(key=lambda row: -row["gain"])
    known = {"width": now, "wished": wished, "accuracy": of.expected.accuracy, "seconds": of.seconds}
    return known | {"rows": rows if now > wished else []}


def _kinds(of: Measured) -> Iterator[tuple[str, str, int, Enlarged]]:
    """Each kind of work, the label that it is about, how much there is to do, and what so much of it makes."""
    counted, draw = of.counted, of.draw

    def audit(labels: Mapping[str, tuple[int, Audit]]) -> Enlarged:
        return lambda n: (replace(counted, audited=Counter(counted.audited) + Counter(allotted(n, labels))), draw)

    def check(n: int) -> tuple[Counted, Draw]:
        return replace(counted, checked=Counter(counted.checked) + Counter(allotted(n, of.unchecked))), draw

    def second(n: int) -> tuple[Counted, Draw]:
        more = draw.checks.second + n / decisions
        return counted, draw._replace(checks=draw.checks._replace(second=min(1.0, more)))

    unread = {label: of_label for label, of_label in of.unread.items() if of_label[0]}
    yield AUDITS, "", sum(posts for posts, _ in unread.values()), audit(unread)
    # What one post more takes off the interval: as Neyman's weight, for each post that was read.
    gain = {label: posts * deviation(audit) / (1 + audit.resolved) for label, (posts, audit) in unread.items()}
    for label in sorted(gain, key=lambda label: (-gain[label], label))[:LABELS] if len(gain) > 1 else ():
        yield AUDITS, label, unread[label][0], audit({label: unread[label]})
    yield CHECKS, "", sum(units for units, _ in of.unchecked.values()), check
    decisions = reading(counted, draw).checks
    yield SECONDS, "", int((1 - draw.checks.second) * decisions), second
    yield POSTS, "", of.frame - draw.size, lambda n: (counted, draw._replace(size=draw.size + n))
