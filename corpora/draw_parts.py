"""Draws of parts: so many rows of each part of a corpus, such as what a filter kept and dropped, with known chances.

A hash of seed and id decides which rows of a part come first, of all languages together, so that the same seed draws
the same on any engine, and a larger draw contains the smaller. draw_filtered.py and draw_contrasted.py say what the
parts are.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from corpora.core.errors import CorpusError
from corpora.draw import Sample, sample_chosen
from corpora.engines import Store
from corpora.models import Corpus

# Of a draw's parameters: language -> part -> rows there are, of the whole draw; part -> rows drawn in the draw's
# language; part -> their ids; and part -> the chance that a row had.
FRAME, DRAWN, IDS, CHANCES = "frame", "drawn", "part_ids", "chances"
Frame = Mapping[str, Mapping[str, int]]


def count_parts(
    store: Store,
    query: str,
    parts: Collection[str],
    languages: Collection[str] | None,
    leave_out: Collection[str],
    *,
    none: str,
) -> dict[str, dict[str, int]]:
    """Language -> part -> rows, from a store that has the view `frame` (id, language).

    query: it has the columns id, language and part. languages: the wanted ones, None for all. leave_out: ids that are
    in no part. none: begins the refusal of a language in which there is nothing, as in "Corpus talk has no pairs".
    """
    there = [row["language"] for row in store.found("frame_languages")]
    wanted = there if languages is None else sorted(set(languages))
    if unknown := [code for code in wanted if code not in there]:
        raise CorpusError(f"{none} in {unknown[0]}; it has them in {', '.join(there)}.")
    store.rows("wanted", pa.table({"language": pa.array(wanted, pa.string())}))
    store.rows("left_out", pa.table({"id": pa.array(sorted(leave_out), pa.string())}))
    store.define("parts", query)
    frame = {code: dict.fromkeys(parts, 0) for code in wanted}
    for row in store.found("part_counts"):
        frame[row["language"]][row["part"]] = row["number"]
    return frame


def totals(frame: Frame) -> Counter[str]:
    """Part -> rows in all languages."""
    return sum(map(Counter, frame.values()), Counter[str]())


def draw_parts(store: Store, sizes: Mapping[str, int], seed: str) -> list[dict[str, Any]]:
    """The rows that are drawn, mixed: id, language and part. sizes: how many of each part, or all if it has fewer."""
    sized = {"part": pa.array(sizes.keys(), pa.string()), "size": pa.array(sizes.values(), pa.int64())}
    store.rows("sizes", pa.table(sized))
    return store.found("draw_parts", seed, seed)


def samples_of_parts(
    corpus: Corpus, design: str, drawn: list[dict[str, Any]], frame: Frame, *, seed: str, parameters: Mapping[str, Any]
) -> list[Sample]:
    """One sample for each language in which something was drawn. drawn: as draw_parts has it."""
    whole, chosen = totals(frame), dict[str, list[str]]()
    ids: dict[str, dict[str, list[str]]] = {}
    for row in drawn:
        code = row["language"]
        chosen.setdefault(code, []).append(row["id"])
        ids.setdefault(code, {part: [] for part in frame[code]})[row["part"]].append(row["id"])
    chances = {part: sum(len(of[part]) for of in ids.values()) / number for part, number in whole.items()}
    of_all = {**parameters, FRAME: frame, CHANCES: chances}
    of_each = {
        code: of_all | {DRAWN: {part: len(keys) for part, keys in parts.items()}, IDS: parts}
        for code, parts in ids.items()
    }
    frames = {code: sum(frame[code].values()) for code in chosen}
    return sample_chosen(corpus, design, chosen, seed=seed, frames=frames, parameters=of_each)


def chances(parameters: Mapping[str, Any]) -> dict[str, float]:
    """Id -> the chance of being drawn, by the parameters of a draw of parts; empty for other draws."""
    return {key: parameters[CHANCES][part] for part, keys in parameters.get(IDS, {}).items() for key in keys}
