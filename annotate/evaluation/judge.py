"""Certificate for a machine judge. The judge labelled a whole corpus, and annotators labelled a sample of it.

The certificate reports the judge's agreement with the annotators, the annotators' agreement with each other, whether
the judge can replace an annotator (the alternative annotator test), and each label's share of the corpus. The shares
are estimated in three ways: from the annotators' labels alone, with the Rogan-Gladen correction, and by
prediction-powered inference.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from annotate.core.aggregation import answer_table as people
from annotate.core.agreement.judge_agreement import (
    EPSILON,
    LEVEL,
    AlternativeAnnotatorTest,
    alternative_annotator_test,
    judge_agreement,
)
from annotate.core.estimation.share_estimators import AuditedDraw, ReadSample, Reason, corpus_shares, shares_of_draw
from annotate.core.measures.classification import places_of
from annotate.core.measures.figure_rows import Row, row
from annotate.evaluation.joined_sets import join, list_short_labels
from annotate.evaluation.metrics import und_last
from annotate.evaluation.prediction_files import REFUSED, Predictions
from annotate.evaluation.record_sets import Units, answers_of
from annotate.evaluation.subjects import EvaluationError, Subject
from annotate.goldsets.gold_set import GoldSet, objects_in
from annotate.kinds.designs import STREAM
from annotate.reports.evaluation_report import texts
from corpora.core.arrow import pq
from corpora.predictions.prediction_rows import EVERY_LABEL
from corpora.storage.layout import corpus_dir, fetch_manifest

HALF_WIDTH = 2.5  # target half-width of the interval for a label's share, in percentage points
SHARED = "judge with people, where two answered"
ESTIMATORS = ("people alone", "Rogan-Gladen", "prediction-powered")
TEXTS = texts("judge")


def ids_of_corpus(name: str, languages: Collection[str] = (), limit: int | None = None) -> frozenset[str] | None:
    """Return the ids of a corpus's items, or None if this installation does not have the corpus.

    name: corpus name.
    languages: languages to include; all if empty.
    limit: number of items in the corpus when the set was drawn, to skip parts added later. None to include all parts.
    """
    manifest = fetch_manifest(name) if name else None
    if manifest is None:
        return None
    ids: list[str] = []
    filters = [("language", "in", languages)] if languages else None  # posts declare no language
    for part in manifest.parts:
        if limit is None or len(ids) < limit:
            path = corpus_dir(name) / "parts" / part.name
            ids += pq.read_table(path, columns=["id"], filters=filters)["id"].to_pylist()
    return frozenset(ids)


def unit_frame(units: Units, corpus: str) -> frozenset[str] | None:
    """Return the ids of the items the set was drawn from, or None if this installation does not have the corpus.

    Raise EvaluationError if the set was not drawn from `corpus`.
    """
    drawn_from = corpus_drawn_from(units.name, units.corpus, corpus)
    return ids_of_corpus(drawn_from, {draw["language"] for draw in units.manifest["draws"]} - {""})


def corpus_drawn_from(name: str, manifest_corpus: str, corpus: str) -> str:
    """Return the corpus that a gold set was drawn from.

    name: gold set name.
    manifest_corpus: corpus named in the set's manifest; "" for none.
    corpus: corpus specified by the user; "" for none.

    Raise EvaluationError if the user and the manifest name different corpora.
    """
    if corpus and manifest_corpus and corpus != manifest_corpus:
        raise EvaluationError(
            f"The gold set {name} was drawn from corpus {manifest_corpus}, not {corpus}. Remove or correct --corpus."
        )
    return corpus or manifest_corpus


@dataclass(frozen=True)
class JudgedItems:
    """The annotated items of a corpus, with the judge's labels.

    labels: labels that annotators can choose from, (K,).
    ids: id of each item, (n,).
    judge: the judge's label of each item, REFUSED if it gave none, (n,).
    answers: individual answers as (id, annotator, label); empty if the set does not include them.
    sample: sample that shares are estimated from.
    refused: number of items in the corpus that the judge gave no label.
    size: number of items in the corpus.
    seed: seed for resampling.
    """

    labels: Sequence[str]
    ids: Sequence[str]
    judge: Sequence[str]
    answers: Sequence[tuple[str, str, str]]
    sample: ReadSample | AuditedDraw
    refused: int
    size: int
    seed: int


def judged_units(units: Units, predictions: Predictions, frame: Collection[str] | None) -> JudgedItems:
    """Return the annotated units of a set with the judge's labels.

    predictions: the judge's labels of the units, and the number of items outside the set that it gave each label.
    frame: ids of the corpus's items, as returned by `unit_frame`.

    Raise EvaluationError if the judge did not label every item of the corpus, or if the units are not a sample of it.
    """
    size = sum(draw["frame_size"] for draw in units.manifest["draws"]) if frame is None else len(frame)
    counted, labels = Counter(predictions.labels) + predictions.others, [*units.labels, REFUSED]
    is_sample = not (units.chances == 1).all()
    check_complete(units.name, predictions.name, counted.total(), len(units.ids), size, is_sample=is_sample)
    sample = ReadSample(
        tuple(units.labels),
        np.array([counted[label] for label in labels], dtype=np.int64),
        places_of(predictions.labels, labels),
        places_of(units.gold, units.labels),
        units.chances,
    )
    rows = zip(units.ids, units.rows(range(len(units.ids))), strict=True)
    answers = [(key, person, label) for key, row in rows for person, label in answers_of(row).items()]
    seed = int(units.digest[:8], 16)
    return JudgedItems(units.labels, units.ids, predictions.labels, answers, sample, counted[REFUSED], size, seed)


def check_complete(name: str, machine: str, labelled: int, units: int, size: int, *, is_sample: bool) -> None:
    """Check that the judge labelled every item of the corpus, and that annotators labelled only a sample.

    name: gold set name.
    machine: name of the judge.
    labelled: number of items that the judge labelled.
    units: number of units of the set.
    size: number of items that the units were drawn from.
    is_sample: whether annotators labelled only some of these items.

    Raise EvaluationError if either condition fails.
    """
    if labelled == units < size:
        raise EvaluationError(
            f"{machine} has labels for only the {labelled:,} items of the set, but a judge's certificate requires a "
            "label for every item of the corpus. To measure only these items, specify the file without --judge."
        )
    if not is_sample:
        raise EvaluationError(
            f"All items of the gold set {name} have probability 1, so they are not a sample of the {labelled:,} items "
            f"that {machine} labelled. Draw a sample with open_task --size and export it."
        )
    if labelled != size:
        raise EvaluationError(
            f"{machine} has labels for {labelled:,} of the {size:,} items from which the gold set {name} was drawn. "
            "A judge's certificate requires a row for every item, with an empty label if the judge gave none."
        )


def add_certificate(
    report: dict[str, Any], judged: JudgedItems, half_width: float = HALF_WIDTH, epsilon: float = EPSILON
) -> dict[str, Any]:
    """Return the report with the judge's certificate added before the other figures.

    report: the evaluation report on the judge's labels.
    judged: the annotated items with the judge's labels.
    half_width: target half-width of a share's interval, in percentage points.
    epsilon: how much worse than an annotator the judge is allowed to be in the alternative annotator test, as a share
        of the units.
    """
    valid_labels = set(judged.labels)
    valid_answers = [answer for answer in judged.answers if answer[2] in valid_labels]
    rows, sentences = list[Row](), dict[str, list[str]]()
    head, notes = [], [TEXTS.words["nobody"]]
    if valid_answers:
        answers = people.tabulate(valid_answers, [*judged.labels, REFUSED])
        by_id = dict(zip(judged.ids, judged.judge, strict=True))
        judge = places_of([by_id[str(key)] for key in answers.units], answers.labels)
        tested, verdict = _annotator_test(answers, judge, epsilon)
        rows, sentences["by-person"] = [*_agreement(answers, judge, judged.seed), *tested], [verdict]
        head, notes = [{"measure": "winning_rate", "of": {}}], []
    base, fraction = f"Of the {judged.size:,} items that the judge labelled.", half_width / 100
    if judged.refused:
        number = "one of them" if judged.refused == 1 else f"{judged.refused:,} of them"
        base += TEXTS.words["refused"].format(number=number)
    sentences |= {"shares": [base], "needed": [TEXTS.words["needed"].format(points=100 * fraction)]}
    return report | {
        "rows": [*rows, *_shares(judged, fraction), *report["rows"]],
        "sections": [*TEXTS.sections, *report["sections"]],
        "head": [*head, *report["head"]],
        "reading": [*report["reading"], *TEXTS.reading],
        "told": [*report["told"], *notes],
        "words": report["words"] | sentences,
    }


# --- agreement with annotators


def _agreement(answers: people.Answers, judge_labels: people.Ints, seed: int) -> Iterator[Row]:
    agreement = judge_agreement(answers, judge_labels, seed=seed)
    pairs = {
        "judge with people": (agreement.judge, agreement.units),
        SHARED: (agreement.judge_shared, agreement.units_shared),
        "people with each other": (agreement.people, agreement.units_shared),
    }
    for who, (estimate, number) in pairs.items():
        # The row has no effective size, because it would count pairs of answers instead of units.
        yield row("pairwise_agreement", {"answers": who}, estimate, number) | {"count": None}
    yield row("agreement_difference", {"answers": SHARED}, agreement.difference, None)
    alphas = {"judge and people": agreement.judge_alpha, "people with each other": agreement.people_alpha}
    for who, alpha in alphas.items():
        note = "all answers are the same" if alpha.value is None else ""
        yield row("alpha", {"answers": who}, alpha, alpha.units, note)


# --- the alternative annotator test


def _annotator_test(answers: people.Answers, judge_labels: people.Ints, epsilon: float) -> tuple[list[Row], str]:
    """Return the test's rows and a sentence with its verdict."""
    test = alternative_annotator_test(answers, judge_labels, epsilon=epsilon)
    rows = []
    for person in test.annotators:
        slice_keys = {"person": str(person.annotator)}
        note = "the judge wins" if person.judge_wins else "" if person.p is not None else "too few items"
        rows.append(row("judge_close", slice_keys, person.judge, person.units, note) | {"p": person.adjusted})
        rows.append(row("person_close", slice_keys, person.person, person.units, note))
    passed = "no verdict in" if test.passed is None else "the judge passes" if test.passed else "the judge fails"
    whole = row("winning_rate", {}, test.winning_rate, None, f"{passed} the alternative annotator test")
    return [whole, *rows], _verdict(test, epsilon)


def _verdict(test: AlternativeAnnotatorTest, epsilon: float) -> str:
    if test.passed is None:
        return f"No verdict: {' '.join(reason.value for reason in test.reasons)}"
    tested = sum(person.p is not None for person in test.annotators)
    wins = sum(person.judge_wins for person in test.annotators)
    verdict = "can replace a person" if test.passed else "cannot replace a person"
    return (
        f"According to the alternative annotator test, the judge {verdict}: it wins against {wins} of {tested} "
        f"people (winning rate {test.winning_rate:.2f}, epsilon {epsilon:g}, level {LEVEL:g}), and is at least as "
        f"close to the other people in {test.advantage:.1%} of the items."
    )


# --- shares in the corpus


def _shares(judged: JudgedItems, half_width: float) -> Iterator[Row]:
    sample = judged.sample
    shares = corpus_shares(sample, half_width) if isinstance(sample, ReadSample) else shares_of_draw(sample, half_width)
    number = len(judged.ids)
    estimates = [
        (estimate, way, share)
        for estimate in shares
        for way, share in zip(
            ESTIMATORS, (estimate.people, estimate.rogan_gladen, estimate.prediction_powered), strict=True
        )
    ]
    for label_shares, way, share in estimates:
        # The reasons explain why an estimate uses the annotators' labels alone, or what its interval doesn't cover.
        weak = f" ({label_shares.correlation or 0.0:.2f}; at least {label_shares.least_correlation:.2f} is needed)"
        why = "; ".join(reason.value + weak * (reason is Reason.WEAK) for reason in share.reasons)
        figure = None if share.value is None else share
        yield row("corpus_share", {"label": label_shares.label, "way": way}, figure, number, why)
    for label_shares, way, share in estimates:
        enough = "not even a draw of the whole corpus is enough; increase the audit share"
        note = enough if share.more is None else ""
        yield row("answers_needed", {"label": label_shares.label, "needed": way}, share.more, number, note)


# --- posts: certifying a judge on a uniform set
#
# Annotators label the posts on which the detectors disagree, and audit a sample of the posts on which they agree. A
# label given only by the detectors doesn't count as an answer. Instead, annotated posts represent the other posts of
# their stratum.


def post_frame(sets: Sequence[GoldSet], corpus: str) -> Collection[str]:
    """Return the ids of the posts the set was drawn from, or EVERY_LABEL if this installation lacks the corpus.

    Raise EvaluationError unless `sets` consists of one uniform set that was exported from a task.
    """
    gold = sets[0]
    if len(sets) > 1 or gold.population != STREAM:
        raise EvaluationError(
            "A judge's certificate requires exactly one uniform set of posts, because only a uniform set is a "
            "sample of the whole corpus. Specify it with --gold, and measure the judge on other sets without "
            "--judge."
        )
    if gold.frame_size is None:
        raise EvaluationError(
            f"The gold set {gold.name} was imported and does not state how many posts it was drawn from. A judge's "
            "certificate requires a uniform set that was written by export_gold."
        )
    ids = ids_of_corpus(corpus_drawn_from(gold.name, gold.corpus, corpus), limit=gold.frame_size)
    return EVERY_LABEL if ids is None else ids


def judged_posts(gold: GoldSet, subject: Subject) -> JudgedItems:
    """Return the annotated posts of a uniform set with the judge's labels.

    gold: the uniform set.
    subject: the judge, with its labels of the whole corpus.

    Raise EvaluationError if the judge did not label every post, or if too few posts of the set are annotated.
    """
    joined = join(subject, [(gold, gold.rows)], [subject.mapping])
    labelled = joined.labelled
    assert labelled is not None
    assert gold.frame_size is not None
    short = list_short_labels(labelled)
    if short or not joined.marks_annotated:
        raise EvaluationError(
            f"People read too few posts of the gold set {gold.name} on which the detectors "
            f"agree{f' ({short})' if short else ''}, and agreed labels that nobody read cannot certify a judge. Audit "
            "more posts with assay audit TASK --add N, and export the set again."
        )
    fold = joined.fold
    counted = Counter(joined.predictions[row.id] for row in gold.rows)
    for label, number in subject.others.items():
        counted[fold.get(label, label)] += number
    annotated = {key: cell for key, cell in labelled.posts.items() if cell.annotated}
    is_sample = len(annotated) < gold.frame_size
    check_complete(gold.name, subject.full_name, counted.total(), len(gold.rows), gold.frame_size, is_sample=is_sample)
    labels, cells = und_last({*counted, *(cell.truth for cell in annotated.values())}), labelled.posts.values()
    truths = places_of([cell.truth if cell.annotated else labels[0] for cell in cells], labels)
    draw = AuditedDraw(
        tuple(labels),
        np.array([counted[label] for label in labels], dtype=np.int64),
        places_of([joined.predictions[key] for key in labelled.posts], labels),
        np.where([cell.annotated for cell in cells], truths, -1),
        places_of([cell.stratum for cell in cells], list(labelled.drawn)),
    )
    answers = [
        (row["id"], person, fold.get(label, label))
        for _, row in objects_in(gold.jsonl)
        if row["id"] in annotated
        for person, label in answers_of(row).items()
    ]
    predicted = [joined.predictions[key] for key in annotated]
    return JudgedItems(labels, list(annotated), predicted, answers, draw, 0, gold.frame_size, int(gold.digest[:8], 16))
