"""Draws from both sides of a filter: of the pairs that it kept and of those that it dropped, by lot and mixed.

What is kept and what is dropped, the scores decide (scores.py). A hash of seed and id decides which pairs come first,
of all languages together, so that the same seed draws the same on any engine, and a larger draw contains the smaller.
Where fewer were kept or dropped than asked for, all of them are drawn.
"""

from collections.abc import Collection, Iterable
from typing import Any

import pyarrow as pa

from corpora.core.designs import check_asked
from corpora.core.errors import CorpusError
from corpora.draw import Sample, frame_digest
from corpora.manifest import manifest_of
from corpora.models import Corpus
from corpora.scores import filter_digest, filtering

_DESIGN = pa.schema({"seed": pa.string(), "kept": pa.int64(), "dropped": pa.int64()})
KEPT, DROPPED = PARTS = ("kept", "dropped")
# Of a draw's parameters: language -> part -> how many pairs there are, of the whole draw; part -> how many were drawn
# of the draw's language; the ids of the dropped among these; part -> the chance that a pair had; and the digest of the
# filter (scores.py).
FRAME, DRAWN, IDS, CHANCES, FILTER = "frame", "drawn", "dropped_ids", "chances", "filter"


def sample_filtered(
    corpus: Corpus,
    languages: Iterable[str] | None,
    *,
    kept: int,
    dropped: int,
    seed: str,
    leave_out: Collection[str] = frozenset(),
) -> list[Sample]:
    """Take `kept` of the pairs that the filter keeps and `dropped` of those that it drops. It only reads files.

    languages: None for all. leave_out: ids of pairs that are in no frame, such as those whose answer is known. One
    sample for each language in which something was drawn, in order of the codes, each with kept and dropped mixed.
    CorpusError if the corpus holds no pairs, has no scores, or nothing in these languages was kept, or dropped.
    """
    check_asked(min(kept, dropped), seed, "pair")
    manifest = manifest_of(corpus.name)
    with filtering(corpus.name, manifest) as store:
        if not manifest.scores:
            raise CorpusError(
                f"Corpus {corpus.name} has no scores by which pairs are dropped; import some with import_scores."
            )
        there = [row["language"] for row in store.found("languages_filtered")]
        wanted = sorted(there if languages is None else set(languages))
        if unknown := [code for code in wanted if code not in there]:
            raise CorpusError(f"Corpus {corpus.name} has no pairs in {unknown[0]}; it has them in {', '.join(there)}.")
        store.rows("wanted", pa.table({"language": pa.array(wanted, pa.string())}))
        store.rows("left_out", pa.table({"id": pa.array(sorted(leave_out), pa.string())}))
        design = {"seed": seed, "kept": kept, "dropped": dropped}
        store.rows("design", pa.Table.from_pylist([design], schema=_DESIGN))
        frame = {row["language"]: {part: row[part] for part in PARTS} for row in store.found("filtered_counts")}
        totals = {part: sum(counts[part] for counts in frame.values()) for part in PARTS}
        if empty := [part for part in PARTS if not totals[part]]:
            raise CorpusError(
                f"The scores of corpus {corpus.name} have {empty[0]} none of its pairs in these languages, so there is "
                "no filter to audit; look at the thresholds with which they were imported."
            )
        found = store.found("draw_filtered")
    chances = {part: min(1.0, number / totals[part]) for part, number in ((KEPT, kept), (DROPPED, dropped))}
    of_all = {"kept": kept, "dropped": dropped, FILTER: filter_digest(manifest), CHANCES: chances, FRAME: frame}
    rows: dict[str, list[dict[str, Any]]] = {code: [] for code in sorted({row["language"] for row in found})}
    ids: dict[str, list[str]] = {code: [] for code in rows}
    for row in found:
        if row.pop("is_dropped"):
            ids[row["language"]].append(row["id"])
        rows[row["language"]].append(row)
    return [
        Sample(
            corpus=corpus,
            design="filtered",
            seed=seed,
            asked=len(drawn),
            size=len(drawn),
            parts=len(manifest.parts),
            frame_size=sum(frame[code].values()),
            digest=frame_digest(manifest, len(manifest.parts)),
            detectors=[],
            rows=drawn,
            language=code,
            parameters={**of_all, DRAWN: {KEPT: len(drawn) - len(ids[code]), DROPPED: len(ids[code])}, IDS: ids[code]},
        )
        for code, drawn in rows.items()
    ]
