"""Draws that look for one language (recall- and precision-oriented): what they ask of a corpus, and what they take.

One run of each query serves all the languages wanted. core/designs.py says what the designs are told; draw.py makes
the samples.
"""

from collections.abc import Iterable

import pyarrow as pa

from corpora.core.designs import Design, Taken, spoken
from corpora.core.errors import CorpusError
from corpora.core.languages import LANGUAGES, UND
from corpora.drawn import by_language, in_memory
from corpora.engines import Store
from corpora.predictors import Predictor, counts, knows

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
