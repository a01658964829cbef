"""Which pairs of a corpus are kept, and which are dropped, by the scores of machines that were run elsewhere.

A scorer, such as a detector of toxicity, gives a score from 0 to 1; import_scores.py takes its file in, with a
threshold. A pair's score is the greater of its sides'. A pair is dropped where any scorer's is above its threshold,
and kept
otherwise, also where scores are lacking: a score that is not there is never taken for 0, it says nothing. Nothing is
taken out of the corpus: a draw takes kept and dropped pairs by the view that is made here.
"""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from corpora.engines import Store, asking, full_disk_explained
from corpora.folders import corpus_dir
from corpora.manifest import Manifest, check_pairs, manifest_of
from corpora.schemas import SCORES_SCHEMA


@dataclass(frozen=True)
class Filtered:
    """Of one pair: scorer -> its score, None where it has none of either side; the scorers that drop it; and those of
    which a score is lacking."""

    scores: dict[str, float | None]
    dropped_by: tuple[str, ...]
    lacking: tuple[str, ...]

    @property
    def kept(self) -> bool:
        return not self.dropped_by


def filter_digest(manifest: Manifest) -> str:
    """SHA-256 of all that decides which pairs are kept: lines of scorer, threshold and the digest of its scores.
    Whatever was drawn under another digest was drawn from other sets of kept and dropped pairs."""
    lines = sorted(f"{each.name}\t{each.threshold!r}\t{each.sha256}\n" for each in manifest.scores)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@contextmanager
def filtering(corpus_name: str, manifest: Manifest | None = None) -> Iterator[Store]:
    """A store over a corpus of pairs with the views `scores` (SCORES_SCHEMA) and `filtered`: id, language, dropped (by
    how many scorers; 0 is kept) and lacking (of how many a score is missing), one row for every pair.

    CorpusError if the corpus holds no pairs.
    """
    manifest = manifest or manifest_of(corpus_name)
    check_pairs(corpus_name, manifest)
    with full_disk_explained("the scores were not read"), asking(corpus_name, manifest=manifest) as store:
        store.view("scores", scores_files(corpus_name, manifest), SCORES_SCHEMA)
        store.define("filtered", "filtered")
        yield store


def scores_files(corpus_name: str, manifest: Manifest) -> list[Path]:
    return [corpus_dir(corpus_name) / "scores" / each.file for each in manifest.scores]


def filter_counts(corpus_name: str, manifest: Manifest | None = None) -> dict[str, int]:
    """{"pairs", "dropped", "lacking"}: of the whole corpus, those that any scorer drops, those that lack a score."""
    with filtering(corpus_name, manifest) as store:
        [counts] = store.found("filter_counts")
    return counts


def filtered(corpus_name: str, ids: Iterable[str]) -> dict[str, Filtered]:
    """Id -> what the scorers say of that pair, and whether it is kept."""
    found: dict[str, list[dict]] = {key: [] for key in ids}
    with filtering(corpus_name) as store:
        store.rows("asked", pa.table({"id": pa.array(list(found), pa.string())}))
        for row in store.found("scores_asked"):
            found[row["id"]].append(row)
    return {
        key: Filtered(
            {row["scorer"]: row["score"] for row in rows},
            tuple(row["scorer"] for row in rows if row["dropped"]),
            tuple(row["scorer"] for row in rows if row["lacking"]),
        )
        for key, rows in found.items()
    }
