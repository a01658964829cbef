"""The designs that look for one language: recall-oriented and precision-oriented. What they ask of a corpus, and take.

From "Evaluating language identification performance" (Twitter, 2015), sections Recall and Precision. Whatever the
language, one run of each query serves all that are wanted. Records and items are drawing.py's matter.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pyarrow as pa

from corpora.core.languages import LANGUAGES, UND
from corpora.errors import CorpusError
from corpora.predictors import Predictor, counts, knows
from corpora.store import Store

Window = tuple[datetime, datetime]  # from the first moment until before the second

# The article's: 2,000 posts of July by users who wrote in the language at least 10% of the time between March and
# May; "say, one thousand" posts for which the classifier triggers.
RECALL_SIZE, PRECISION_SIZE = 2_000, 1_000
SHARE, LEAST_POSTS = Fraction(1, 10), 1
HISTORY: Window = (datetime(2014, 3, 1, tzinfo=UTC), datetime(2014, 6, 1, tzinfo=UTC))
WINDOW: Window = (datetime(2014, 7, 1, tzinfo=UTC), datetime(2014, 8, 1, tzinfo=UTC))

_MAX_TERM = 10**6  # of the share's fraction, so that its products with counts of posts fit 64 bits
_TIME = pa.timestamp("us", tz="UTC")
_DESIGN = pa.schema(
    {
        "seed": pa.string(),
        "size": pa.int64(),
        "least_posts": pa.int64(),
        "share_over": pa.int64(),
        "share_under": pa.int64(),
        "history_start": _TIME,
        "history_end": _TIME,
        "window_start": _TIME,
        "window_end": _TIME,
    }
)
_AUTHORS = pa.schema({"language": pa.string(), "author": pa.string()})


@dataclass(frozen=True)
class Design:
    """name: recall or precision; values: for the view `design` of the queries; parameters: for the record, as JSON."""

    name: str
    values: dict[str, Any]
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Taken:
    """What was found for one language. rows: those of sql/draw_by_language.sql, in the order of the draw."""

    language: str
    frame_size: int
    parameters: dict[str, Any]
    rows: list[dict[str, Any]]


def recall_design(share: Fraction, least_posts: int, history: Window, window: Window) -> Design:
    """Posts of the window by authors who wrote in the language in the history. CorpusError for what makes no sense."""
    share = Fraction(str(share))  # of a float what is written, not the nearest binary fraction
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
            f"The history ({_spoken(history)}) must end before the window ({_spoken(window)}) begins; else authors "
            "are chosen by the very posts that are drawn."
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


def _check_window(name: str, window: Window) -> None:
    start, end = window
    if start.tzinfo is None or end.tzinfo is None:
        raise CorpusError(f"The {name} must be given in times with an offset, such as 2014-07-01T00:00:00Z.")
    if end <= start:
        raise CorpusError(f"The {name} ({_spoken(window)}) is empty; its end must come after its start.")


def _spoken(window: Window) -> str:
    """A window in words; midnights as days."""
    moments = [moment.astimezone(UTC) for moment in window]
    return " to ".join(f"{moment:%Y-%m-%dT%H:%M:%SZ}".removesuffix("T00:00:00Z") for moment in moments)


def take(
    store: Store,
    corpus_name: str,
    design: Design,
    languages: Iterable[str] | None,
    size: int,
    seed: str,
    predictor: Predictor,
) -> list[Taken]:
    """Up to `size` posts for each language, in order of the codes, from a store that has the view `predicted`.

    languages: None for all that the predictor finds. CorpusError where the corpus has not what the design needs, or
    the predictor not the languages.
    """
    values = {**dict.fromkeys(_DESIGN.names), **design.values, "seed": seed, "size": size}
    store.rows("design", pa.Table.from_pylist([values], schema=_DESIGN))
    parameters = design.parameters | (_surveyed(store, corpus_name, design) if design.values else {})
    wanted = _wanted(languages, predictor, counts(store, "label_counts"))
    store.rows("wanted", pa.table({"language": pa.array(wanted, pa.string())}))
    if design.name == "recall":
        store.relation("recall_authors").create("authors")
    else:
        store.rows("authors", _AUTHORS.empty_table())
    store.relation(f"{design.name}_frame").create_view("frame")
    rows: dict[str, list[dict[str, Any]]] = {language: [] for language in wanted}
    for batch in store.query("draw_by_language"):
        for row in batch.to_pylist():
            rows[row.pop("language")].append(row)
    return [
        Taken(
            language=frame["language"],
            frame_size=frame["posts"],
            parameters=parameters | ({"authors": frame["authors"]} if design.name == "recall" else {}),
            rows=rows[frame["language"]],
        )
        for frame in store.query("frame_sizes").read_all().to_pylist()
    ]


def _surveyed(store: Store, corpus_name: str, design: Design) -> dict[str, int]:
    """How many posts the design cannot see. CorpusError where that is all of those that it needs."""
    (found,) = store.query("design_survey").read_all().to_pylist()
    of_authors = design.name == "recall"
    if of_authors and not found["authored"]:
        raise CorpusError(
            f"No post of corpus {corpus_name} has an author, and a recall-oriented draw is made of authors' posts; "
            "import the files as another corpus, with --column author=COLUMN."
        )
    if not found["timed"]:
        raise CorpusError(
            f"No post of corpus {corpus_name} has a time, so none is in a window; import the files as another corpus, "
            "with --column posted_at=COLUMN."
        )
    what = "post with an author" if of_authors else "post"
    needed = {"history": "in_history", "window": "authored_in_window"} if of_authors else {"window": "in_window"}
    for window, count in needed.items():
        if not found[count]:
            ends = _spoken((design.values[f"{window}_start"], design.values[f"{window}_end"]))
            raise CorpusError(
                f"No {what} of corpus {corpus_name} is from the {window} ({ends}); what has a time is from "
                f"{_spoken((found['first_time'], found['last_time']))}."
            )
    without = {"posts_without_time": found["posts"] - found["timed"]}
    return without | ({"posts_without_author": found["posts"] - found["authored"]} if of_authors else {})


def _wanted(languages: Iterable[str] | None, predictor: Predictor, found: dict[str, int]) -> list[str]:
    """The languages to draw for, in order. found: label -> how many posts the predictor gives it."""
    wanted = sorted(label for label in found if label in LANGUAGES) if languages is None else sorted(set(languages))
    if not wanted:
        none = f"{predictor} labels no post with a language" if languages is None else "No language is named"
        raise CorpusError(f"{none}, so there is nothing to draw for.")
    for code in wanted:
        if code not in LANGUAGES:
            why = "no language" if code == UND else "no language code known here, such as de, zh-CN or hi-Latn"
            raise CorpusError(f"{code!r} is {why}; a draw is for a language.")
        if code in found or (predictor.voted and knows(predictor, code)):
            continue
        other = [label for label, targets in predictor.mapping.items() if code in targets]
        other += [label for label in LANGUAGES[code].labels if label in found]
        if other:
            raise CorpusError(
                f"{predictor} has no label {code}, but {', '.join(other)} for it; draw for {' and '.join(other)}."
            )
        if predictor.voted:
            raise CorpusError(f"{predictor} does not know {code}; draw for it by a predictor that does.")
    return wanted
