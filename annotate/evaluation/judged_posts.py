"""The uniform set of posts by which a machine judge of a whole corpus is certified.

People read what the detectors dispute and audit what they agree on. An agreed label that nobody read is nobody's
answer, so it does not count; the posts that were read stand for the others of their stratum.
"""

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from annotate.core.estimation.audited_draw import AuditedDraw
from annotate.core.measures.classification import places_of
from annotate.evaluation.joined_sets import join, too_little_read
from annotate.evaluation.judge import Judged, check_complete, corpus_drawn_from, ids_of_corpus
from annotate.evaluation.metrics import und_last
from annotate.evaluation.subjects import EvaluationError, Subject
from annotate.evaluation.units import answers_of
from annotate.goldsets.gold_set import GoldSet, objects_in
from annotate.kinds.designs import STREAM
from corpora.predictions.prediction_rows import EVERY_LABEL


def frame_of_posts(sets: Sequence[GoldSet], corpus: str) -> Collection[str]:
    """The ids of the posts from which the set was drawn, EVERY_LABEL where its corpus is not in this installation.
    EvaluationError where no judge can be certified on these sets."""
    gold = sets[0]
    if len(sets) > 1 or gold.population != STREAM:
        raise EvaluationError(
            "A judge's certificate takes one uniform set of posts, as only that is a sample of the whole corpus; name "
            "one with --gold, and measure the judge on other sets without --judge."
        )
    if gold.frame_size is None:
        raise EvaluationError(
            f"The gold set {gold.name} was imported, and does not state from how many posts it was drawn; a judge's "
            "certificate needs a uniform set that export_gold wrote."
        )
    found = ids_of_corpus(corpus_drawn_from(gold.name, gold.corpus, corpus), most=gold.frame_size)
    return EVERY_LABEL if found is None else found


def judged_posts(gold: GoldSet, subject: Subject) -> Judged:
    """subject: the judge, with its labels of the whole corpus. EvaluationError if it did not label every post, or if
    people read too little of the set."""
    joined = join(subject, [(gold, gold.rows)], [subject.mapping])
    labelled = joined.labelled
    assert labelled is not None
    assert gold.frame_size is not None
    short = too_little_read(labelled)
    if short or not joined.tells_read:
        raise EvaluationError(
            f"Too few posts of the gold set {gold.name} on which the detectors agree were read by people"
            f"{f' ({short})' if short else ''}, and agreed labels that nobody read cannot certify a judge. Have more "
            "of them read with assay audit TASK --add N, and export the set again."
        )
    fold = joined.fold
    counted = Counter(joined.said[row.id] for row in gold.rows)
    for label, number in subject.others.items():
        counted[fold.get(label, label)] += number
    read = {key: cell for key, cell in labelled.posts.items() if cell.read}
    is_sample = len(read) < gold.frame_size
    check_complete(gold.name, subject.spelled, counted.total(), len(gold.rows), gold.frame_size, is_sample=is_sample)
    labels = und_last({*counted, *(cell.truth for cell in read.values())})
    place = {label: number for number, label in enumerate(labels)}
    strata = {name: number for number, name in enumerate(labelled.drawn)}
    draw = AuditedDraw(
        tuple(labels),
        np.array([counted[label] for label in labels], dtype=np.int64),
        places_of([joined.said[key] for key in labelled.posts], labels),
        np.array([place[cell.truth] if cell.read else -1 for cell in labelled.posts.values()], dtype=np.int64),
        np.array([strata[cell.stratum] for cell in labelled.posts.values()], dtype=np.int64),
    )
    answers = [
        (row["id"], person, fold.get(label, label))
        for _, row in objects_in(gold.jsonl)
        if row["id"] in read
        for person, label in answers_of(row).items()
    ]
    said = [joined.said[key] for key in read]
    return Judged(labels, list(read), said, answers, draw, 0, gold.frame_size, int(gold.digest[:8], 16))
