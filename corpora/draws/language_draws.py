"""Draws that look for one language: recall- and precision-oriented, and of a predictor's unread triggers.

`recall` and `precision` look for one language, and `triggers` does so among the posts of a uniform task. Recall and
precision follow "Evaluating language identification performance" (Twitter, 2015), sections Recall and Precision. The
hash that orders a draw is of seed, language and id: the draws for two languages are independent, and a language's draw
is the same whichever others are drawn with it. One run of each query serves all the languages wanted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pyarrow as pa

from corpora.core import CorpusError
from corpora.core.languages import LANGUAGES, UND, finer
from corpora.draws.samples import Sample, Taken, by_language, check_asked, frame_digest, in_memory, sample_of
from corpora.engines import Store, full_disk_explained
from corpora.models import Corpus
from corpora.predictions.predictor_labels import (
    Predictor,
    check_complete,
    counts,
    find_predictor,
    knows,
    predicting,
)
from corpora.storage.layout import check_posts, check_votes, manifest_of

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
    """For each language take `size` posts of the window by authors who wrote in it before. It only reads files.

    Its authors have `least_posts` posts or more in the history, of which the predictor labels the share or more with
    the language; its frame is all that they wrote in the window, in whatever language. languages: None for all that
    the predictor finds in the corpus. One sample each, in order of the codes; all of the frame if that is smaller.
    CorpusError if the windows overlap or are empty, or the corpus lacks authors, times, votes or predictions.
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
    """For each language take `size` of the posts that the predictor labels with it. It only reads files.

    window: if given, only posts from it are in the frame. Everything else is as in sample_recall.
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
) -> list[Sample]:
    """For each language take `size` of the posts of a uniform task that the predictor labels with it although the
    detectors, which agree there, give them another label; None is all. It only reads files.

    of: the task's name; unread: id -> the detectors' label, of its posts that nobody has read. Everything else is as in
    sample_precision. CorpusError for a predictor that voted.
    """
    if predictor.voted:
        raise CorpusError(
            f"{predictor} voted in the task {of}: where the detectors agree it says what they say, so it has no "
            "triggers there that nobody has read. Name a predictor that did not vote."
        )
    return _samples(corpus, triggers_design(of), languages, size, seed, predictor, unread)


def _alike(predictor: Predictor, given: Iterable[str]) -> list[tuple[str, str]]:
    """(what the predictor says, the label given), wherever the one is the other or part of it."""
    classes = [(coarse, fine) for coarse, labels in predictor.mapping.items() for fine in labels]
    return [*classes, *((label, code) for code in set(given) for label in {code, *finer(code)})]


def _samples(
    corpus: Corpus,
    design: Design,
    languages: Iterable[str] | None,
    size: int | None,
    seed: str,
    predictor: Predictor,
    unread: Mapping[str, str] | None = None,
) -> list[Sample]:
    check_asked(size, seed)
    manifest = manifest_of(corpus.name)
    check_posts(corpus.name, manifest)
    if not manifest.rows:
        raise CorpusError(f"Corpus {corpus.name} holds no posts; add some with import_corpus.")
    # Items are made of posts and votes, so a draw by imported predictions needs votes too.
    check_votes(corpus.name, manifest)
    predictions = check_complete(corpus.name, predictor, manifest)
    with full_disk_explained("no draw was made"), predicting(corpus.name, predictor, manifest) as store:
        if unread is not None:
            said, given = zip(*_alike(predictor, unread.values()), strict=True) if unread else ((), ())
            store.rows("unread", _text(id=unread.keys(), label=unread.values()))
            store.rows("alike", _text(said=said, given=given))
        found = take_by_language(store, corpus.name, design, languages, size or manifest.rows, seed, predictor)
    return [sample_of(corpus, design.name, manifest, taken, seed, size, str(predictor), predictions) for taken in found]


def _text(**columns: Iterable[str]) -> pa.Table:
    return pa.table({name: pa.array(list(values), pa.string()) for name, values in columns.items()})


def within_reach(
    corpus_name: str,
    spelled: str,
    parameters: Mapping[str, Any],
    digest: str,
    languages: Iterable[str],
    ids: Iterable[str],
) -> dict[str, set[str]]:
    """Language -> which posts are in the frame of a recall-oriented draw: in its window, by its authors.

    spelled, parameters, digest: the draw's predictor, parameters and frame digest. CorpusError if it cannot be found
    out any more, since the corpus or the predictions are others now.
    """
    manifest, predictor = manifest_of(corpus_name), find_predictor(corpus_name, spelled)
    history, window = (tuple(map(datetime.fromisoformat, parameters[name])) for name in ("history", "window"))
    design = recall_design(Fraction(parameters["share"]), parameters["least_posts"], history, window)
    predictions = check_complete(corpus_name, predictor, manifest)
    if frame_digest(manifest, len(manifest.parts), predictions) != digest:
        raise CorpusError(f"Corpus {corpus_name} is no longer the one from which the draw was made.")
    with full_disk_explained("the authors were not looked up"), predicting(corpus_name, predictor, manifest) as store:
        return reached(store, design, languages, ids)


# --- The values that each design takes and refuses, before any corpus is read


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


# --- What a design asks of a corpus, and what it takes


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


def take_by_language(
    store: Store,
    corpus_name: str,
    design: Design,
    languages: Iterable[str] | None,
    size: int,
    seed: str,
    predictor: Predictor,
) -> list[Taken]:
    """Up to `size` posts for each language, in order of the codes, from a store that has the view `predicted`.

    languages: None for all that the predictor finds. CorpusError if the corpus lacks what the design needs, or the
    predictor lacks the languages.
    """
    _tell(store, design, seed=seed, size=size)
    parameters = design.parameters | (_surveyed(store, corpus_name, design) if design.values else {})
    wanted = _wanted(languages, predictor, counts(store, "label_counts"))
    _frame(store, design, wanted)
    drawn = by_language(store.query("draw_by_language").read_all(), wanted)
    return [
        Taken(
            language=frame["language"],
            frame_size=frame["posts"],
            parameters=parameters | ({"authors": frame["authors"]} if design.name == "recall" else {}),
            rows=in_memory(drawn[frame["language"]].drop_columns("language")),
        )
        for frame in store.found("frame_sizes")
    ]


def _tell(store: Store, design: Design, *, seed: str, size: int) -> None:
    values = {**dict.fromkeys(_DESIGN.names), **design.values, "seed": seed, "size": size}
    store.rows("design", pa.Table.from_pylist([values], schema=_DESIGN))


def _frame(store: Store, design: Design, wanted: list[str]) -> None:
    """The view `frame`, with the posts that may be drawn for each language."""
    store.rows("wanted", pa.table({"language": pa.array(wanted, pa.string())}))
    if design.name == "recall":
        store.keep("authors", "recall_authors")
    else:
        store.rows("authors", _AUTHORS.empty_table())
    store.define("frame", f"{design.name}_frame")


def reached(store: Store, design: Design, languages: Iterable[str], ids: Iterable[str]) -> dict[str, set[str]]:
    """Language -> which of the ids are in the frame of a recall-oriented draw for it."""
    found: dict[str, set[str]] = {language: set() for language in sorted(set(languages))}
    _tell(store, design, seed="", size=0)
    _frame(store, design, list(found))
    store.rows("asked", pa.table({"id": pa.array(sorted(set(ids)), pa.string())}))
    for batch in store.query("recall_reached"):
        for language, key in zip(batch.column("language").to_pylist(), batch.column("id").to_pylist(), strict=True):
            found[language].add(key)
    return found


def _surveyed(store: Store, corpus_name: str, design: Design) -> dict[str, int]:
    """How many posts the design cannot see. CorpusError if that is all of the posts that it needs."""
    (found,) = store.found("design_survey")
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
            ends = spoken((design.values[f"{window}_start"], design.values[f"{window}_end"]))
            raise CorpusError(
                f"No {what} of corpus {corpus_name} is from the {window} ({ends}); the posts that have a time are from "
                f"{spoken((found['first_time'], found['last_time']))}."
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
            why = "not a language" if code == UND else "not a language code known here, such as de, zh-CN or hi-Latn"
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
