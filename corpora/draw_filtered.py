"""Draws from both sides of a filter: of the pairs that it kept and of those that it dropped, by lot and mixed.

What is kept and what is dropped, the scores decide (scores.py). Where fewer were kept or dropped than asked for, all of
them are drawn.
"""

from collections.abc import Collection

from corpora.core.designs import check_asked
from corpora.core.errors import CorpusError
from corpora.draw import Sample
from corpora.draw_parts import count_parts, draw_parts, samples_of_parts, totals
from corpora.manifest import manifest_of
from corpora.models import Corpus
from corpora.scores import filter_digest, filtering

KEPT, DROPPED = PARTS = ("kept", "dropped")
FILTER = "filter"  # the digest of the filter (scores.py) among a draw's parameters


def sample_filtered(
    corpus: Corpus,
    languages: Collection[str] | None,
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
        store.select("frame", "filtered", {"id": "id", "language": "language"})
        frame = count_parts(
            store, "filter_parts", PARTS, languages, leave_out, none=f"Corpus {corpus.name} has no pairs"
        )
        if empty := [part for part in PARTS if not totals(frame)[part]]:
            raise CorpusError(
                f"The scores of corpus {corpus.name} have {empty[0]} none of its pairs in these languages, so there is "
                "no filter to audit; look at the thresholds with which they were imported."
            )
        drawn = draw_parts(store, {KEPT: kept, DROPPED: dropped}, seed)
    parameters = {"kept": kept, "dropped": dropped, FILTER: filter_digest(manifest)}
    return samples_of_parts(corpus, "filtered", drawn, frame, seed=seed, parameters=parameters)
