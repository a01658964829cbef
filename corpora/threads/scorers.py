"""Filter a corpus of pairs by imported scores from external systems, such as toxicity detectors.

A scorer's scores are from 0 to 1, and are imported with a threshold. A pair's score is the higher score of its message
and reply. A pair is dropped if the score from at least one scorer exceeds that scorer's threshold. A missing score
never drops a pair, and is not treated as 0. The corpus itself is not changed. Draws use the `filtered` view to select
kept and dropped pairs.

Scores can also belong to texts of replies. These only exclude replies from the response set.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from corpora.core import CorpusError
from corpora.core.arrow import pc, pq
from corpora.core.records import RecordError, read_number, read_string
from corpora.engines import Store, explain_full_disk, open_store
from corpora.models import Draw
from corpora.sources.compression import Progress, check_file, format_of
from corpora.sources.readers import Columns, read_rows
from corpora.sources.text import MAX_LINE
from corpora.storage import intake, layout
from corpora.storage.layout import Manifest
from corpora.storage.schemas import SCORES_SCHEMA
from corpora.threads.messages import cell, message_id


def filter_digest(manifest: Manifest) -> str:
    """Return a SHA-256 that identifies the filter.

    It is computed from the scorers' names, their thresholds and the digests of their scores. Pairs that are kept in one
    draw may be dropped in another if the draws' filter digests differ.
    """
    lines = sorted(f"{scores.name}\t{scores.threshold!r}\t{scores.sha256}\n" for scores in manifest.pair_scores)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


@contextmanager
def open_filter(corpus_name: str, manifest: Manifest | None = None) -> Iterator[Store]:
    """Open a store for a corpus of pairs with the `scores` (SCORES_SCHEMA) and `filtered` views.

    The `filtered` view has a row for each pair, with `id`, `language`, `dropped` and `lacking`. `dropped` is the
    number of scorers that drop the pair, and 0 if it is kept. `lacking` is the number of scorers with a missing score.

    Raise CorpusError if the corpus does not contain pairs.
    """
    manifest = manifest or layout.manifest_of(corpus_name)
    layout.check_pairs(corpus_name, manifest)
    files = [layout.corpus_dir(corpus_name) / "scores" / scores.file for scores in manifest.pair_scores]
    with explain_full_disk("the scores were not read"), open_store(corpus_name, manifest=manifest) as store:
        store.view("scores", files, SCORES_SCHEMA)
        store.define("filtered", "filtered")
        yield store


def filter_counts(corpus_name: str, manifest: Manifest | None = None) -> dict[str, int]:
    """Return the counts of pairs, of dropped pairs, and of pairs with a missing score."""
    with open_filter(corpus_name, manifest) as store:
        [counts] = store.fetch("filter_counts")
    return counts


def rejected_replies(corpus_name: str, manifest: Manifest) -> dict[str, str]:
    """Return the replies that scorers exclude from the response set, with the reasons."""
    reasons: dict[str, str] = {}
    for scores in manifest.scores:
        if scores.of == RESPONSE:
            table = pq.read_table(layout.corpus_dir(corpus_name) / "scores" / scores.file, columns=["id", "score"])
            for row in table.filter(pc.greater(table["score"], scores.threshold)).to_pylist():
                reasons.setdefault(row["id"], f"{scores.name} {row['score']:g} above {scores.threshold:g}")
    return reasons


# --- The import of scores. A file is imported completely or not at all.


MESSAGE, PAIR, RESPONSE = SIDES = ("message", "pair", layout.RESPONSE)
FIELDS = ("id", "score")
_STAGED = pa.schema(
    [intake.LINE, pa.field("id", pa.string(), nullable=False), pa.field("score", pa.float64(), nullable=False)]
)


@dataclass(frozen=True)
class Imported:
    """The result of an import.

    pairs: number of pairs in the corpus
    empty: number of rows without a score
    outside: number of ids in the file that are not in the corpus
    first_outside: the first of these ids
    dropped: total number of pairs dropped by all scorers
    draws: number of earlier draws that used the filter
    replaced: entry that was replaced by the new scores; None if there is none
    already: whether the same scores were already imported
    """

    scores: layout.Scores
    pairs: int
    empty: int
    outside: int
    first_outside: list[str]
    dropped: int
    draws: int
    replaced: layout.Scores | None = None
    already: bool = False


def import_scores(
    corpus_name: str,
    path: Path,
    *,
    name: str,
    threshold: float,
    of: str = MESSAGE,
    columns: dict[str, str] | None = None,
    format: str | None = None,
    progress: Progress = lambda count: None,
) -> Imported:
    """Import a scorer's scores for the pairs of a corpus. Importing the same file again has no effect.

    If the scorer already has scores and the corpus has no draws, new scores or a new threshold replace the old ones.

    threshold: pairs with a higher score are dropped
    of: whether the ids belong to messages or to pairs, or are texts of replies; a pair has the id of its reply
    columns: column names of the file, by our field names
    progress: called with the number of bytes read

    Raise CorpusError and import nothing if the file has a fault, or if the scorer's old scores must not be replaced.
    """
    check_file(path, format)
    layout.check_spelling("scorer", "name", name)
    check = partial(_check_pairs, corpus_name)
    with intake.begin_import(corpus_name, f"nothing was imported from {path}", check) as (directory, manifest):
        previous = next((entry for entry in manifest.scores if entry.name == name), None)
        staged = directory / "staging" / "scores.parquet"
        empty = _stage(staged, path, columns or {}, format or format_of(path) or "", of, progress)
        file = intake.new_file(directory / "scores", manifest.scores)
        scores = layout.Scores(name, of, threshold, file.name, 0, 0, 0, "", path.name)
        scores, outside, first = _write_scores(corpus_name, manifest, staged, file, path, scores)
        if already := previous is not None and (previous.threshold, previous.sha256) == (threshold, scores.sha256):
            scores = previous
        else:
            _check_unused(corpus_name, previous)
            manifest = replace(manifest, scores=(*(entry for entry in manifest.scores if entry != previous), scores))
            layout.write_manifest(corpus_name, manifest)
    dropped = filter_counts(corpus_name, manifest)["dropped"]
    replaced = None if already else previous
    draws = Draw.objects.filter(corpus__name=corpus_name, design="filtered").count()
    return Imported(scores, manifest.rows, empty, outside, first, dropped, draws, replaced, already)


def _check_unused(corpus_name: str, scores: layout.Scores | None) -> None:
    """Raise CorpusError if these scores must not be replaced, because draws from the corpus used them."""
    if scores and scores.of != RESPONSE and (draws := Draw.objects.filter(corpus__name=corpus_name).count()):
        raise CorpusError(
            f"The scores of {scores.name} from {scores.source} (threshold {scores.threshold:g}) cannot be replaced, "
            f"because draws from corpus {corpus_name} used them (draws: {draws:,}). Import the new scores with another "
            "--name."
        )


def _check_pairs(corpus_name: str) -> Manifest:
    manifest = layout.manifest_of(corpus_name)
    layout.check_pairs(corpus_name, manifest)
    return manifest


def _write_scores(
    corpus_name: str, manifest: Manifest, staged: Path, file: Path, path: Path, scores: layout.Scores
) -> tuple[layout.Scores, int, list[str]]:
    """Write the scores to a new file. Return their entry, the number of unknown ids, and the first of these ids."""
    with open_store(corpus_name, manifest=manifest) as store:
        store.view("staged", [staged], _STAGED)
        intake.check_repeats(store, path)
        outside, first_outside, query = 0, list[str](), "scores_of_responses"
        if scores.of != RESPONSE:  # replies can be translations that are not in the corpus
            store.define("sides", f"sides_of_{scores.of}s")
            (outside, first_outside), query = intake.first_ids(store, "scores_outside"), "scores_of_pairs"
        rows = store.size("staged") - outside
        if not rows:
            other = PAIR if scores.of == MESSAGE else MESSAGE
            raise CorpusError(
                f"{path} contains no scores for {scores.of}s of corpus {corpus_name}. Check the file, or add --of "
                f"{other} if its ids belong to {other}s."
            )
        intake.write_file(file, SCORES_SCHEMA, store.query(query, scores.name, scores.threshold))
        store.view("scored", [file], SCORES_SCHEMA)
        [row_counts] = store.fetch("scores_counted")
    row_counts = {"rows": rows, "lacking": row_counts["lacking"], "dropped": row_counts["dropped"]}
    return replace(scores, sha256=layout.digest_of(file), **row_counts), outside, first_outside


def _stage(staged: Path, path: Path, columns: dict[str, str], format: str, of: str, progress: Progress) -> int:
    """Write the scores to the staging file, and return the number of rows without a score."""
    file_columns = Columns({field: columns.get(field, field) for field in FIELDS}, FIELDS, bare=True)
    rows = intake.validate_rows(read_rows(path, format, file_columns, MAX_LINE, progress), partial(_read, of))
    empty = 0
    with intake.Stage(staged, _STAGED) as stage:
        for line, (key, score) in intake.require_valid(path, format, rows):
            if score is None:
                empty += 1
            else:
                stage.add((line, key, score))
    return empty


def _read(of: str, raw: Mapping[str, Any]) -> tuple[str, float | None]:
    """Return a row's id and score. The score is None if the cell is empty.

    Raise RecordError if the score is not a number from 0 to 1.
    """
    key = cell(read_string("reply", raw.get("id"))) if of == RESPONSE else message_id(raw.get("id"))
    score = read_number(raw.get("score"))
    if score is not None and not 0 <= score <= 1:
        raise RecordError(
            f"The score is {str(raw['score'])[:40]}. It must be a number from 0 to 1, or empty if there is no score."
        )
    return key, score
