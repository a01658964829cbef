"""Draws that look for one language (recall- and precision-oriented): what they ask of a corpus, and what they take.

One run of each query serves all the languages wanted. design.py holds the designs; samples.py makes the samples.
Draws of records by their declared language are here too.
"""

from collections.abc import Collection, Iterable
from typing import Any

import pyarrow as pa

from corpora.core import CorpusError, listed
from corpora.core.languages import LANGUAGES, UND
from corpora.draws.design import Design, Rows, Taken, by_language, in_memory, rows_in, spoken
from corpora.engines import Store
from corpora.predictions.predictor_labels import Predictor, counts, knows
from corpora.storage.layout import Manifest

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


# --- Draws of records: some of each language, singly or in groups. What they ask of a corpus, and what they take.
#
# A hash of seed, language, and id or the group's common value decides which record or group comes first, so that the
# same seed draws the same on any engine, and a larger draw contains the smaller. samples.py makes the samples.


_SEED_AND_SIZE = pa.schema({"seed": pa.string(), "size": pa.int64()})


def take_records(
    store: Store,
    corpus_name: str,
    manifest: Manifest,
    languages: Iterable[str] | None,
    *,
    size: int | None,
    seed: str,
    together: str = "",
    leave_out: Collection[str] = frozenset(),
) -> list[Taken]:
    """Up to `size` records of each language, or all if it is None, in order of the codes; see draw.sample_records."""
    if together and together not in manifest.fields:
        raise CorpusError(
            f"Corpus {corpus_name} has no field {together!r} to keep records together by; "
            f"its fields are {', '.join(manifest.fields)}."
        )
    store.select("grouped", "posts", {"id": "id", "language": "language", "value": together or "id"})
    store.rows("left_out", pa.table({"id": pa.array(sorted(leave_out), pa.string())}))
    counted = {row.pop("language"): row for row in store.found("record_counts")}
    wanted = _wanted_of_records(corpus_name, languages, counted)
    store.rows("wanted", pa.table({"language": pa.array(wanted, pa.string())}))
    design = {"seed": seed, "size": manifest.rows if size is None else size}
    store.rows("design", pa.Table.from_pylist([design], schema=_SEED_AND_SIZE))
    drawn = by_language(store.query("draw_records").read_all(), wanted)
    rows = {language: in_memory(table) for language, table in drawn.items()}
    return [
        Taken(
            language=language,
            frame_size=counted[language]["records"] - counted[language]["left_out"],
            parameters=_parameters(together, counted[language], rows[language]),
            rows=rows[language],
        )
        for language in wanted
    ]


def _parameters(together: str, counted: dict[str, int], rows: Rows) -> dict[str, Any]:
    parameters = {"together": together, "left_out": counted["left_out"]}
    if together:
        groups = len({row["fields"][together] for row in rows})
        parameters |= {"groups": groups, "frame_groups": counted["groups"]}
    return parameters


def _wanted_of_records(
    corpus_name: str, languages: Iterable[str] | None, counted: dict[str, dict[str, int]]
) -> list[str]:
    """The languages to draw for, in order. counted: the rows of engines/sql/record_counts.sql by language."""
    wanted = sorted(counted if languages is None else set(languages))
    if not wanted:
        raise CorpusError("No language is named, so there is nothing to draw for.")
    for language in wanted:
        if language not in counted:
            raise CorpusError(
                f"Corpus {corpus_name} has no records in {language}; it has them in {', '.join(counted)}."
            )
        if counted[language]["left_out"] == counted[language]["records"]:
            raise CorpusError(
                f"All records of corpus {corpus_name} in {language} are left out of the draw (for example as gold "
                "answers), so "
                "none are left to draw; import more, or draw for the other languages."
            )
    return wanted


def rows_of(store: Store, corpus_name: str, ids: Iterable[str], *, voted: bool = False) -> dict[str, dict[str, Any]]:
    """The records of these ids, or the posts with their votes. CorpusError if the corpus lacks some of them."""
    wanted = sorted(set(ids))
    store.rows("wanted", pa.table({"id": pa.array(wanted, pa.string())}))
    found = store.query("posts_of" if voted else "records_of")
    rows = {row["id"]: row for batch in found for row in rows_in(batch)}
    if unknown := [key for key in wanted if key not in rows]:
        raise CorpusError(f"Corpus {corpus_name} has no record of {listed(unknown, len(unknown), 'id')}.")
    return rows
