"""Draws of records: some of each language, singly or in groups. What they ask of a corpus, and what they take.

A hash of seed, language, and id or the group's common value decides which record or group comes first, so that
the same seed draws the same on any engine, and a larger draw contains the smaller. draw.py makes the samples.
"""

from collections.abc import Collection, Iterable
from typing import Any

import pyarrow as pa

from corpora.core.designs import Taken
from corpora.core.errors import CorpusError, listed
from corpora.drawn import Rows, by_language, in_memory, rows_in
from corpora.engines import Store
from corpora.manifest import Manifest

_DESIGN = pa.schema({"seed": pa.string(), "size": pa.int64()})


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
    wanted = _wanted(corpus_name, languages, counted)
    store.rows("wanted", pa.table({"language": pa.array(wanted, pa.string())}))
    design = {"seed": seed, "size": manifest.rows if size is None else size}
    store.rows("design", pa.Table.from_pylist([design], schema=_DESIGN))
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


def _wanted(corpus_name: str, languages: Iterable[str] | None, counted: dict[str, dict[str, int]]) -> list[str]:
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
