"""The designs of draws: what each is told and what it refuses, before any corpus is asked.

`uniform` takes posts, each with the same chance; `recall` and `precision` look for one language, and `triggers` does so
among the posts of a uniform task; `records` takes some of each language. Recall and precision follow "Evaluating
language identification performance" (Twitter, 2015), sections Recall and Precision.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from corpora.core.errors import CorpusError

Window = tuple[datetime, datetime]  # from the first moment until before the second

# The article's: 2,000 posts of July by users who wrote in the language at least 10% of the time between March and
# May; "say, one thousand" posts for which the classifier triggers.
RECALL_SIZE, PRECISION_SIZE = 2_000, 1_000
SHARE, LEAST_POSTS = Fraction(1, 10), 1
HISTORY: Window = (datetime(2014, 3, 1, tzinfo=UTC), datetime(2014, 6, 1, tzinfo=UTC))
WINDOW: Window = (datetime(2014, 7, 1, tzinfo=UTC), datetime(2014, 8, 1, tzinfo=UTC))

_MAX_TERM = 10**6  # of the share as a fraction, so that its products with counts of posts fit 64 bits


@dataclass(frozen=True)
class Design:
    """name: that of the frame's query; values: for the view `design` of the queries; parameters: for the record, as
    JSON."""

    name: str
    values: dict[str, Any]
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Taken:
    """What was found for one language. rows: posts with their votes, or records, in the draw's order."""

    language: str
    frame_size: int
    parameters: dict[str, Any]
    rows: Collection[dict[str, Any]]


def recall_design(share: Fraction, least_posts: int, history: Window, window: Window) -> Design:
    """Posts of the window by authors who wrote in the language in the history. CorpusError for senseless values."""
    share = Fraction(str(share))  # a float's decimal digits, not the nearest binary fraction
    if not 0 < share <= 1:
        raise CorpusError(f"The share of an author's posts is {share}; it must be above 0 and at most 1.")
    if share.denominator > _MAX_TERM:
        raise CorpusError(f"The share of an author's posts is {share}; round it to six places.")
    if least_posts < 1:
        raise CorpusError(f"The least number of an author's posts is {least_posts}; it must be 1 or more.")
    _check_window("history", history)
    _check_window("window", window)
    if window[0] < history[1]:
        raise CorpusError(
            f"The history ({spoken(history)}) must end before the window ({spoken(window)}) begins; otherwise "
            "authors are chosen by the very posts that are drawn."
        )
    return Design(
        name="recall",
        values={
            "least_posts": least_posts,
            "share_over": share.numerator,
            "share_under": share.denominator,
            "history_start": history[0],
            "history_end": history[1],
            "window_start": window[0],
            "window_end": window[1],
        },
        parameters={
            "share": str(share),
            "least_posts": least_posts,
            "history": [moment.isoformat() for moment in history],
            "window": [moment.isoformat() for moment in window],
        },
    )


def precision_design(window: Window | None) -> Design:
    """Posts (of the window) that the predictor labels with the language. CorpusError for an empty window."""
    if window is None:
        return Design("precision", {}, {})
    _check_window("window", window)
    return Design(
        name="precision",
        values={"window_start": window[0], "window_end": window[1]},
        parameters={"window": [moment.isoformat() for moment in window]},
    )


def triggers_design(of: str) -> Design:
    """Posts of a uniform task that nobody has read and the predictor labels with the language. of: the task's name."""
    return Design("triggers", {}, {"of": of})


def _check_window(name: str, window: Window) -> None:
    start, end = window
    if start.tzinfo is None or end.tzinfo is None:
        raise CorpusError(f"The {name} must be given in times with an offset, such as 2014-07-01T00:00:00Z.")
    if end <= start:
        raise CorpusError(f"The {name} ({spoken(window)}) is empty; its end must come after its start.")


def spoken(window: Window) -> str:
    """A window in words; midnights as days."""
    moments = [moment.astimezone(UTC) for moment in window]
    return " to ".join(f"{moment:%Y-%m-%dT%H:%M:%SZ}".removesuffix("T00:00:00Z") for moment in moments)


def check_asked(size: int | None, seed: str, noun: str = "post") -> None:
    """CorpusError if nothing is asked for or the seed is invalid. noun: what is drawn."""
    if size is not None and size < 1:
        raise CorpusError(f"Draw at least one {noun}.")
    if not 0 < len(seed) <= 64:
        raise CorpusError(f"The seed has {len(seed)} characters; give it 1 to 64.")
