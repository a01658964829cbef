"""Draws of posts for one language: recall-oriented draws, precision-oriented draws, and draws of unread triggers.

`recall` and `precision` follow "Evaluating language identification performance" (Twitter, 2015), sections Recall and
Precision. `triggers` draws posts that were auto-labelled in a uniform task, and to which only the predictor assigns the
language.

Posts are drawn in order of a hash of seed, language and id. The draws for two languages are therefore independent,
and a language's draw does not depend on which other languages are requested. Each query runs once for all requested
languages. The sample_* functions only read files; samples.record writes to the database.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pyarrow as pa

from corpora.core import CorpusError
from corpora.core.languages import LANGUAGES, finer, unknown_code
from corpora.core.voters import DEFAULT
from corpora.draws.samples import Sample, by_language, check_size_and_seed, frame_of, in_memory, sample_of
from corpora.engines import Store, explain_full_disk, texts
from corpora.models import Corpus
from corpora.predictions.predictor_labels import (
    Predictor,
    can_assign,
    check_complete,
    counts,
    find_predictor,
    open_predictions,
)
from corpora.storage.layout import check_posts, check_votes, manifest_of

Window = tuple[datetime, datetime]  # start (inclusive) and end (exclusive)

# Defaults from the article. For recall, it draws 2,000 posts from July by users who wrote in the language at least 10%
# of the time between March and May. For precision, it draws "say, one thousand" posts where the classifier triggers.
RECALL_SIZE, PRECISION_SIZE = 2_000, 1_000
SHARE, LEAST_POSTS = Fraction(1, 10), 1
HISTORY: Window = (datetime(2014, 3, 1, tzinfo=UTC), datetime(2014, 6, 1, tzinfo=UTC))
WINDOW: Window = (datetime(2014, 7, 1, tzinfo=UTC), datetime(2014, 8, 1, tzinfo=UTC))

_MAX_TERM = 10**6  # maximum denominator of the share, so that its products with post counts fit into 64 bits


@dataclass(frozen=True)
class Design:
    """The definition of a sampling frame.

    name: name of the design; the frame's query is NAME_frame.sql
    values: values for the `design` view, which the queries read
    parameters: parameters to store with the draw, as JSON
    """

    name: str
    values: dict[str, Any]
    parameters: dict[str, Any]


def sample_recall(
    corpus: Corpus,
    languages: Iterable[str] | None,
    *,
    size: int,
    seed: str,
    predictor: Predictor,
    share: Fraction = SHARE,
    least_posts: int = LEAST_POSTS,
    history: Window = HISTORY,
    window: Window = WINDOW,
) -> list[Sample]:
    """Draw posts for each language by authors who have written in the language before.

    An author qualifies for a language if they have at least `least_posts` posts in the history, and the predictor
    assigns the language to at least the proportion `share` of these posts. The frame consists of all posts by these
    authors in the window, in any language. Return a sample for each language, sorted by code.

    languages: codes of the requested languages; None for all languages that the predictor assigns in the corpus
    size: number of posts to draw for each language; a smaller frame is drawn completely

    Raise CorpusError if the windows overlap or are empty, or if the corpus lacks authors, times, votes or predictions.
    """
    return _samples(corpus, recall_design(share, least_posts, history, window), languages, size, seed, predictor)


def sample_precision(
    corpus: Corpus,
    languages: Iterable[str] | None,
    *,
    size: int,
    seed: str,
    predictor: Predictor,
    window: Window | None = None,
) -> list[Sample]:
    """Draw posts for each language from those to which the predictor assigns the language.

    window: period that limits the frame; None for all posts

    The other parameters are as in sample_recall.
    """
    return _samples(corpus, precision_design(window), languages, size, seed, predictor)


def sample_triggers(
    corpus: Corpus,
    languages: Iterable[str] | None,
    *,
    size: int | None,
    seed: str,
    predictor: Predictor,
    of: str,
    unread: Mapping[str, str],
    voters: Collection[str] = DEFAULT.voters,
) -> list[Sample]:
    """Draw a predictor's unread triggers for each language, from the posts of a uniform task.

    A trigger is a post to which the predictor assigns the language. It is unread if the task's voters agreed on a
    different label, so that the post was never shown to an annotator.

    size: number of posts to draw for each language; None for all
    of: name of the uniform task
    unread: the voters' agreed label by post id, for all unread posts
    voters: the uniform task's voters

    The other parameters are as in sample_precision.

    Raise CorpusError in the same cases as sample_precision, and if the predictor is one of the voters.
    """
    if {str(predictor), *(predictor.detectors if predictor.voted else ())}.intersection(voters):
        raise CorpusError(
            f"{predictor} voted in the task {of}, so it has the same label as the other voters where they agree and "
            "has no independent triggers. Use a predictor that did not vote."
        )
    return _samples(corpus, Design("triggers", {}, {"of": of}), languages, size, seed, predictor, unread)


def _equal_labels(predictor: Predictor, codes: Iterable[str]) -> list[tuple[str, str]]:
    """Return the pairs of (predicted label, agreed label) that count as equal.

    In such a pair, the labels are identical, or one of them covers the other.
    """
    classes = [(coarse, fine) for coarse, labels in predictor.mapping.items() for fine in labels]
    return [*classes, *((label, code) for code in set(codes) for label in {code, *finer(code)})]


def _samples(
    corpus: Corpus,
    design: Design,
    languages: Iterable[str] | None,
    size: int | None,
    seed: str,
    predictor: Predictor,
    unread: Mapping[str, str] | None = None,
) -> list[Sample]:
    check_size_and_seed(size, seed)
    manifest = manifest_of(corpus.name)
    check_posts(corpus.name, manifest)
    # A post's item includes its votes, so votes are needed even if the draw uses imported predictions.
    check_votes(corpus.name, manifest)
    predictions = check_complete(corpus.name, predictor, manifest)
    with explain_full_disk("nothing was drawn"), open_predictions(corpus.name, predictor, manifest) as store:
        if unread is not None:
            predicted, agreed = zip(*_equal_labels(predictor, unread.values()), strict=True) if unread else ((), ())
            store.rows("unread", texts(id=unread.keys(), label=unread.values()))
            store.rows("equal_labels", texts(predicted=predicted, agreed=agreed))
        _set_design(store, design, seed=seed, size=size or manifest.rows)
        parameters = design.parameters | (_count_missing(store, corpus.name, design) if design.values else {})
        codes = _labels_to_draw(languages, predictor, counts(store, "label_counts"))
        _frame(store, design, codes)
        rows = by_language(store.query("draw_by_language").read_all(), codes)
        frames = store.fetch("frame_sizes")
    return [
        sample_of(
            corpus,
            design.name,
            manifest,
            frame["language"],
            in_memory(rows[frame["language"]].drop_columns("language")),
            seed=seed,
            requested=size,
            frame_size=frame["posts"],
            predictor=str(predictor),
            predictions=predictions,
            parameters=parameters | ({"authors": frame["authors"]} if design.name == "recall" else {}),
        )
        for frame in frames
    ]


def ids_in_frame(
    corpus_name: str,
    spelled: str,
    parameters: Mapping[str, Any],
    digest: str,
    languages: Iterable[str],
    ids: Iterable[str],
) -> dict[str, set[str]]:
    """Look up which posts are in the frame of a recall-oriented draw. Return a set of ids for each language.

    spelled: name of the draw's predictor, such as `mine@2`
    parameters: the draw's parameters
    digest: the draw's frame digest
    languages: codes of the languages
    ids: ids of the posts to look up

    Raise CorpusError if the corpus or the predictions have changed since the draw was made.
    """
    manifest, predictor = manifest_of(corpus_name), find_predictor(corpus_name, spelled)
    history, window = (_window(*parameters[name]) for name in ("history", "window"))
    design = recall_design(Fraction(parameters["share"]), parameters["least_posts"], history, window)
    predictions = check_complete(corpus_name, predictor, manifest)
    if frame_of(manifest, len(manifest.parts), predictions)["digest"] != digest:
        raise CorpusError(f"Corpus {corpus_name} or its predictions have changed since the draw was made.")
    ids_by_language: dict[str, set[str]] = {language: set() for language in sorted(set(languages))}
    with (
        explain_full_disk("the authors were not looked up"),
        open_predictions(corpus_name, predictor, manifest) as store,
    ):
        _set_design(store, design, seed="", size=0)
        _frame(store, design, list(ids_by_language))
        store.rows("asked", texts(id=sorted(set(ids))))
        for row in store.fetch("recall_reached"):
            ids_by_language[row["language"]].add(row["id"])
    return ids_by_language


# --- Designs, and checks of their values.


def _window(start: str, end: str) -> Window:
    return datetime.fromisoformat(start), datetime.fromisoformat(end)


def recall_design(share: Fraction, least_posts: int, history: Window, window: Window) -> Design:
    """Return the design of a recall-oriented draw.

    Raise CorpusError if a value is invalid.
    """
    share = Fraction(str(share))  # converts a float such as 0.1 to 1/10 instead of its exact binary value
    if not 0 < share <= 1:
        raise CorpusError(f"The share of an author's posts is {share}. It must be greater than 0 and at most 1.")
    if share.denominator > _MAX_TERM:
        raise CorpusError(f"The share of an author's posts is {share}. Round it to six decimal places.")
    if least_posts < 1:
        raise CorpusError(f"The minimum number of an author's posts is {least_posts}. It must be at least 1.")
    _check_window("history", history)
    _check_window("window", window)
    if window[0] < history[1]:
        raise CorpusError(
            f"The history ({format_window(history)}) must end before the window ({format_window(window)}) begins. "
            "Otherwise, authors would be selected by the same posts that are drawn.",
            "history",
        )
    return Design(
        name="recall",
        values={
            "least_posts": least_posts,
            **{"share_over": share.numerator, "share_under": share.denominator},
            **dict(zip(_MOMENTS, (*history, *window), strict=True)),
        },
        parameters={
            "share": str(share),
            "least_posts": least_posts,
            "history": [moment.isoformat() for moment in history],
            "window": [moment.isoformat() for moment in window],
        },
    )


def precision_design(window: Window | None) -> Design:
    """Return the design of a precision-oriented draw.

    window: period that limits the frame; None for all posts

    Raise CorpusError if the window is empty.
    """
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
        raise CorpusError(f"The times of the {name} must have an offset, for example 2014-07-01T00:00:00Z.", name)
    if end <= start:
        raise CorpusError(f"The {name} ({format_window(window)}) is empty. Its end must be after its start.", name)


def format_window(window: Window) -> str:
    """Format a window, such as `2014-03-01 to 2014-06-01`. The time of day is omitted if it is midnight."""
    moments = [moment.astimezone(UTC) for moment in window]
    return " to ".join(f"{moment:%Y-%m-%dT%H:%M:%SZ}".removesuffix("T00:00:00Z") for moment in moments)


# --- Queries.


_TIME = pa.timestamp("us", tz="UTC")
_NUMBERS = ("size", "least_posts", "share_over", "share_under")
_MOMENTS = ("history_start", "history_end", "window_start", "window_end")
_DESIGN = pa.schema({"seed": pa.string(), **dict.fromkeys(_NUMBERS, pa.int64()), **dict.fromkeys(_MOMENTS, _TIME)})
_AUTHORS = pa.schema({"language": pa.string(), "author": pa.string()})


def _set_design(store: Store, design: Design, *, seed: str, size: int) -> None:
    values = {**dict.fromkeys(_DESIGN.names), **design.values, "seed": seed, "size": size}
    store.rows("design", pa.Table.from_pylist([values], schema=_DESIGN))


def _frame(store: Store, design: Design, languages: list[str]) -> None:
    """Define the `frame` view, which contains the posts that can be drawn for each language."""
    store.rows("wanted", texts(language=languages))
    if design.name == "recall":
        store.keep("authors", "recall_authors")
    else:
        store.rows("authors", _AUTHORS.empty_table())
    store.define("frame", f"{design.name}_frame")


def _count_missing(store: Store, corpus_name: str, design: Design) -> dict[str, int]:
    """Count the posts without a time and, for recall-oriented draws, without an author.

    Raise CorpusError if all posts lack these values, or if no post with these values is in the history or the window.
    """
    (survey,) = store.fetch("design_survey")
    by_author = design.name == "recall"
    if by_author and not survey["authored"]:
        raise CorpusError(
            f"No post in corpus {corpus_name} has an author, which recall-oriented draws require. Import the files "
            "into another corpus with --column author=COLUMN."
        )
    if not survey["timed"]:
        raise CorpusError(
            f"No post in corpus {corpus_name} has a time, so no post is in the window. Import the files into another "
            "corpus with --column posted_at=COLUMN."
        )
    noun = "post with an author" if by_author else "post"
    windows = {"history": "in_history", "window": "authored_in_window"} if by_author else {"window": "in_window"}
    for window, count in windows.items():
        if not survey[count]:
            ends = format_window((design.values[f"{window}_start"], design.values[f"{window}_end"]))
            raise CorpusError(
                f"No {noun} in corpus {corpus_name} is in the {window} ({ends}). The posts of the corpus date from "
                f"{format_window((survey['first_time'], survey['last_time']))}."
            )
    missing = {"posts_without_time": survey["posts"] - survey["timed"]}
    return missing | ({"posts_without_author": survey["posts"] - survey["authored"]} if by_author else {})


def _labels_to_draw(languages: Iterable[str] | None, predictor: Predictor, counts: dict[str, int]) -> list[str]:
    """Return the sorted labels of the posts to draw.

    languages: the requested labels; None for all predicted labels
    counts: number of posts for each predicted label

    Raise CorpusError if there are no labels to draw, or if the predictor does not assign a requested label.
    """
    codes = sorted(label for label in counts if label in LANGUAGES) if languages is None else sorted(set(languages))
    if not codes:
        reason = f"{predictor} assigns no language to any post" if languages is None else "No language is selected"
        raise CorpusError(f"{reason}, so nothing can be drawn.")
    for code in codes:
        if code not in LANGUAGES:
            raise CorpusError(f"{code!r} {unknown_code(code)}")
        if code in counts or (predictor.voted and can_assign(predictor, code)):
            continue
        options = [label for label, targets in predictor.mapping.items() if code in targets]
        options += [label for label in LANGUAGES[code].labels if label in counts]
        if options:
            raise CorpusError(
                f"{predictor} does not assign {code}, but {', '.join(options)} instead. Draw for "
                f"{' and '.join(options)}."
            )
        if predictor.voted:
            raise CorpusError(f"{predictor} cannot assign {code}. Use a predictor that can.")
    return codes
