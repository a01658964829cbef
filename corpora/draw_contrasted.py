"""The draw that tells two systems apart: most of what it takes are posts, or records, of which the two say different
labels.

Where both say the same, both are right or both are wrong, so the row adds nothing to the difference of their
accuracies. The best chance of a row is in proportion to the size that its part of the difference is expected to have
(Zrnic and Candès 2024, Active Statistical Inference, ICML, section 4). Here that is the same for all rows on which the
two differ, and 0 for the others. Some of the others are drawn all the same, for each system's own accuracy.
"""

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches

import pyarrow as pa

from corpora.core.designs import check_asked
from corpora.core.errors import CorpusError
from corpora.core.languages import UND
from corpora.core.predictions import folding
from corpora.core.values import matching
from corpora.core.voting import DETECTOR_NAMES
from corpora.draw import Sample
from corpora.draw_parts import count_parts, draw_parts, samples_of_parts, totals
from corpora.engines import full_disk_explained
from corpora.manifest import check_posts, check_records, manifest_of
from corpora.models import Corpus
from corpora.predictors import Predictor, check_complete, find_predictor, predicting, triggers

DIFFER, AGREE = PARTS = ("differ", "agree")
AGREEING = 0.2  # share of the drawn rows of which both systems say the same
SYSTEMS = "systems"  # the two predictors among a draw's parameters


def sample_contrasted(
    corpus: Corpus,
    languages: Collection[str] | None,
    *,
    systems: Sequence[str],
    size: int,
    seed: str,
    labels: Collection[str],
    of_records: bool,
    leave_out: Collection[str] = frozenset(),
) -> list[Sample]:
    """One sample for each language in which records were drawn, or one of posts. It only reads files.

    systems: two predictors of the corpus, such as mine@1. languages: of records; None for all. size: rows of all
    languages together. labels: those that people can give. CorpusError unless there are two predictors that have labels
    for all rows and differ on some, and of records say these labels alone.
    """
    what, check = ("record", check_records) if of_records else ("post", check_posts)
    check_asked(size, seed, what)
    manifest = manifest_of(corpus.name)
    check(corpus.name, manifest)
    first, second = _predictors(corpus.name, systems)
    folded = folding([first.mapping, second.mapping])
    if of_records:
        for each in (first, second):
            folded |= _spellings(str(each), triggers(corpus.name, each), labels)
    else:
        # Items are made of posts and votes.
        check_complete(corpus.name, Predictor(DETECTOR_NAMES[0]), manifest)
    with full_disk_explained("no draw was made"), predicting(corpus.name, first, manifest, other=second) as store:
        columns = {"label": pa.array(folded.keys(), pa.string()), "coarse": pa.array(folded.values(), pa.string())}
        store.rows("folded", pa.table(columns))
        if of_records:
            store.select("frame", "posts", {"id": "id", "language": "language"})
        else:
            store.define("frame", "posts_without_language")
        frame = count_parts(
            store, "contrasted_parts", PARTS, languages, leave_out, none=f"Corpus {corpus.name} has no {what}s"
        )
        there = totals(frame)
        if not there[DIFFER]:
            raise CorpusError(
                f"{first} and {second} say the same of all {there[AGREE]:,} {what}s, so nothing tells them apart; name "
                "two that differ."
            )
        drawn = draw_parts(store, part_sizes(size, there), seed)
    parameters = {SYSTEMS: [str(first), str(second)]}
    return samples_of_parts(corpus, "compare", drawn, frame, seed=seed, parameters=parameters)


def _predictors(corpus_name: str, systems: Sequence[str]) -> tuple[Predictor, Predictor]:
    """The two predictors of these names. CorpusError if there are not two."""
    if len(systems) != 2:
        raise CorpusError(f"--systems names {len(systems)} predictors; name the two that are to be compared.")
    first, second = (find_predictor(corpus_name, each) for each in systems)
    if first == second:
        raise CorpusError(f"--systems names {first} twice; name the two predictors that are to be compared.")
    return first, second


def _spellings(predictor: str, said: Collection[str], labels: Collection[str]) -> dict[str, str]:
    """Label as a predictor says it -> the label of the task. CorpusError where people cannot give it."""
    spelled = {label: matching(label, labels) for label in said}
    if strange := {*spelled.values()} - {*labels, UND}:
        folded = {label.casefold(): label for label in labels}
        near = {label: folded[each] for label in strange for each in get_close_matches(label.casefold(), folded, 1)}
        label = min(strange, key=lambda label: (label not in near, label))
        meant = f" (near {near[label]!r})" if label in near else ""
        more = f" and {len(strange) - 1:,} more" if len(strange) > 1 else ""
        raise CorpusError(
            f"{predictor} has labels that the task does not have: {label[:40]!r}{meant}{more}. Its labels are "
            f"{', '.join([*labels][:20])}; import the predictions with these under another version."
        )
    return spelled


def part_sizes(size: int, there: Mapping[str, int]) -> dict[str, int]:
    """How many to draw of each part. What one part lacks the other makes up for."""
    agreeing = min(there[AGREE], max(round(AGREEING * size), size - there[DIFFER]))
    return {AGREE: agreeing, DIFFER: min(there[DIFFER], size - agreeing)}
