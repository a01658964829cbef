"""Certificate for a machine judge that labelled a whole corpus while people read a sample of it.

The certificate reports the judge's agreement with people and people's agreement with each other, whether the judge may
replace a person (the alternative annotator test), and each label's share of the corpus. The shares are estimated in
three ways: from people's labels alone, with the Rogan-Gladen correction, and by prediction-powered inference.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from annotate.core.aggregation import answer_table as people
from annotate.core.agreement.judge_agreement import (
    EPSILON,
    LEVEL,
    AlternativeAnnotatorTest,
    alternative_annotator_test,
    judge_agreement,
)
from annotate.core.estimation.corpus_share import CorpusShare, ReadSample, Reason
from annotate.core.estimation.differences import Difference
from annotate.core.estimation.share_estimators import AuditedDraw, LabelShares, corpus_shares, shares_of_draw
from annotate.core.measures.classification import places_of
from annotate.core.measures.figure_rows import Row, row
from annotate.evaluation.joined_sets import join, too_little_read
from annotate.evaluation.metrics import und_last
from annotate.evaluation.prediction_table import REFUSED, Predictions
from annotate.evaluation.subjects import EvaluationError, Subject
from annotate.evaluation.units import Units, answers_of
from annotate.goldsets.gold_set import GoldSet, objects_in
from annotate.kinds.designs import STREAM
from annotate.reports.evaluation_report import texts
from corpora.predictions.prediction_rows import EVERY_LABEL
from corpora.storage.layout import corpus_dir, read_manifest

HALF_WIDTH = 2.5  # target half-width of the interval for a label's share, in percentage points
SHARED = "judge with people, where two answered"
WAYS = ("people alone", "Rogan-Gladen", "prediction-powered")
TEXTS = texts("judge")


def ids_of_corpus(name: str, languages: Collection[str] = (), most: int | None = None) -> frozenset[str] | None:
    """Return the ids of a corpus's items, or None if the corpus is not in this installation.

    name: name of the corpus.
    languages: languages to include; all if empty.
    most: number of items that the corpus had when the set was drawn; parts that were added later are skipped. None for
        all parts.
    """
    manifest = read_manifest(name) if name else None
    if manifest is None:
        return None
    found: list[str] = []
    for part in manifest.parts:
        if most is not None and len(found) >= most:
            break
        columns = ["id", "language"] if languages else ["id"]  # posts declare no language
        for item in pq.read_table(corpus_dir(name) / "parts" / part.name, columns=columns).to_pylist():
            if not languages or item["language"] in languages:
                found.append(item["id"])
    return frozenset(found)


def frame_of(units: Units, corpus: str) -> frozenset[str] | None:
    """Return the ids of the items from which the set was drawn, or None if the corpus is not in this installation.

    Raises EvaluationError if `corpus` is not the corpus from which the set was drawn.
    """
    drawn_from = corpus_drawn_from(units.name, units.corpus, corpus)
    return ids_of_corpus(drawn_from, {draw["language"] for draw in units.manifest["draws"]} - {""})


def corpus_drawn_from(name: str, known: str, corpus: str) -> str:
    """Return the corpus that a gold set was drawn from.

    name: name of the gold set.
    known: corpus that the set's manifest names, "" if it names none.
    corpus: corpus that the user named, "" if the user named none.

    Raises EvaluationError if the user named a different corpus than the manifest.
    """
    if corpus and known and corpus != known:
        raise EvaluationError(
            f"The gold set {name} was drawn from corpus {known}, not {corpus}; leave --corpus out, or correct it."
        )
    return corpus or known


@dataclass(frozen=True)
class Judged:
    """The items of a corpus that people read, and the judge's labels of these items.

    labels: labels that people may give, (K,).
    ids: id of each item, (n,).
    judge: the judge's label of each item, REFUSED if the judge gave none, (n,).
    answers: individual answers as (id, person, label); empty if the set does not include them.
    sample: sample from which shares are estimated.
    refused: number of items in the corpus to which the judge gave no label.
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


def judged_units(units: Units, said: Predictions, frame: Collection[str] | None) -> Judged:
    """Return the units of a set, which people read, together with the judge's labels of them.

    said: the judge's labels of the units, and the number of items outside the set to which it gives each label.
    frame: ids of the corpus's items, as returned by `frame_of`.

    Raises EvaluationError if the judge did not label every item of the corpus, or if the units are not a sample of it.
    """
    size = sum(draw["frame_size"] for draw in units.manifest["draws"]) if frame is None else len(frame)
    counted, labels = Counter(said.labels) + said.others, [*units.labels, REFUSED]
    is_sample = not (units.chances == 1).all()
    check_complete(units.name, said.name, counted.total(), len(units.ids), size, is_sample=is_sample)
    sample = ReadSample(
        tuple(units.labels),
        np.array([counted[label] for label in labels], dtype=np.int64),
        places_of(said.labels, labels),
        places_of(units.gold, units.labels),
        units.chances,
    )
    rows = zip(units.ids, units.rows(range(len(units.ids))), strict=True)
    answers = [(key, person, label) for key, row in rows for person, label in answers_of(row).items()]
    seed = int(units.digest[:8], 16)
    return Judged(units.labels, units.ids, said.labels, answers, sample, counted[REFUSED], size, seed)


def check_complete(name: str, machine: str, labelled: int, units: int, size: int, *, is_sample: bool) -> None:
    """Check that a judge labelled every item of the corpus and that people read only a sample of it.

    name: name of the gold set.
    machine: name of the judge.
    labelled: number of items that the judge labelled.
    units: number of units of the set.
    size: number of items from which the units were drawn.
    is_sample: whether people read only some of these items.

    Raises EvaluationError if one of the two conditions fails.
    """
    if labelled == units < size:
        raise EvaluationError(
            f"{machine} has labels for the {labelled:,} units of the set alone; a judge's certificate needs its "
            "label of every item of the corpus. Name the file without --judge to measure these units alone."
        )
    if not is_sample:
        raise EvaluationError(
            f"All units of the gold set {name} have the chance 1, so they are no sample of the {labelled:,} "
            f"items that {machine} labels; draw a sample with open_task --size, and export that."
        )
    if labelled != size:
        raise EvaluationError(
            f"{machine} has labels for {labelled:,} of the {size:,} items from which the gold set {name} was drawn; a "
            "judge's certificate needs a row for each of them, with an empty label where the judge gave none."
        )


def with_certificate(
    report: dict[str, Any], read: Judged, half_width: float = HALF_WIDTH, epsilon: float = EPSILON
) -> dict[str, Any]:
    """Return the report with the judge's certificate added before the other figures.

    report: the evaluation report on the judge's labels.
    read: the items that people read.
    half_width: target half-width of a share's interval, in percentage points.
    epsilon: how much worse than a person the judge may be in the alternative annotator test, as a share of the units.
    """
    known = set(read.labels)
    listed = [answer for answer in read.answers if answer[2] in known]
    rows, words = list[Row](), dict[str, list[str]]()
    head, told = [], [TEXTS.words["nobody"]]
    if listed:
        answers = people.tabulate(listed, [*read.labels, REFUSED])
        by_id = dict(zip(read.ids, read.judge, strict=True))
        judge = places_of([by_id[str(key)] for key in answers.units], answers.labels)
        tested, verdict = _tested(answers, judge, epsilon)
        rows, words["by-person"] = [*_agreement(answers, judge, read.seed), *tested], [verdict]
        head, told = [{"measure": "winning_rate", "of": {}}], []
    of_corpus = f"Of the {read.size:,} items from which the units were drawn."
    if read.refused:
        number = "one of them" if read.refused == 1 else f"{read.refused:,} of them"
        of_corpus += TEXTS.words["refused"].format(number=number)
    fraction = half_width / 100
    words |= {"shares": [of_corpus], "needed": [TEXTS.words["needed"].format(points=100 * fraction)]}
    return report | {
        "rows": [*rows, *_shares(read, fraction), *report["rows"]],
        "sections": [*TEXTS.sections, *report["sections"]],
        "head": [*head, *report["head"]],
        "reading": [*report["reading"], *TEXTS.reading],
        "told": [*report["told"], *told],
        "words": report["words"] | words,
    }


# --- agreement with people


def _agreement(answers: people.Answers, judged: people.Ints, seed: int) -> Iterator[Row]:
    found = judge_agreement(answers, judged, seed=seed)
    for who, estimate, number in (
        ("judge with people", found.judge, found.units),
        (SHARED, found.judge_shared, found.units_shared),
        ("people with each other", found.people, found.units_shared),
    ):
        # The row has no effective size, because that would count pairs of answers instead of units.
        yield row("pairwise_agreement", {"answers": who}, estimate, number) | {"count": None}
    yield row("agreement_difference", {"answers": SHARED}, found.difference, None)
    for who, measure in (("judge and people", found.judge_alpha), ("people with each other", found.people_alpha)):
        ends = (-1.0, 1.0) if measure.low is None or measure.high is None else (measure.low, measure.high)
        told = None if measure.value is None else Difference(measure.value, *ends)
        yield row("alpha", {"answers": who}, told, measure.units, "" if told else "all answers are the same")


# --- the alternative annotator test


def _tested(answers: people.Answers, judged: people.Ints, epsilon: float) -> tuple[list[Row], str]:
    """Return the rows of the test and a sentence with its verdict."""
    test = alternative_annotator_test(answers, judged, epsilon=epsilon)
    rows = []
    for person in test.annotators:
        of = {"person": str(person.annotator)}
        note = "the judge wins" if person.judge_wins else "" if person.p is not None else "too few units"
        rows.append(_plain("judge_close", of, person.judge, person.units, note) | {"p": person.adjusted})
        rows.append(_plain("person_close", of, person.own, person.units, note))
    passed = "no verdict in" if test.passed is None else "the judge passes" if test.passed else "the judge fails"
    whole = _plain("winning_rate", {}, test.winning_rate, None, f"{passed} the alternative annotator test")
    return [whole, *rows], _verdict(test, epsilon)


def _plain(measure: str, of: Mapping[str, str], value: float | None, units: int | None, note: str) -> Row:
    """Return a row without an interval."""
    return row(measure, of, None, units, note) | {"value": value}


def _verdict(test: AlternativeAnnotatorTest, epsilon: float) -> str:
    if test.passed is None:
        return f"No verdict: {' '.join(reason.value for reason in test.reasons)}"
    tested = sum(person.p is not None for person in test.annotators)
    wins = sum(person.judge_wins for person in test.annotators)
    verdict = "may stand in for a person" if test.passed else "may not stand in for a person"
    return (
        f"By the alternative annotator test the judge {verdict}: it wins against {wins} of {tested} people (winning "
        f"rate {test.winning_rate:.2f}, epsilon {epsilon:g}, level {LEVEL:g}), and is at least as close to the others "
        f"in {test.advantage:.1%} of the units."
    )


# --- shares in the corpus


def _shares(read: Judged, half_width: float) -> Iterator[Row]:
    sample = read.sample
    shares = corpus_shares(sample, half_width) if isinstance(sample, ReadSample) else shares_of_draw(sample, half_width)
    number, found = len(read.ids), list[tuple[LabelShares, str, CorpusShare]]()
    for each in shares:
        found += zip([each] * 3, WAYS, (each.people, each.rogan_gladen, each.prediction_powered), strict=True)
    for each, way, share in found:
        value = None if share.value is None else Difference(share.value, share.low, share.high)
        # The reasons explain why an estimate uses people's labels alone, or what its interval does not cover.
        weak = f" ({each.correlation or 0.0:.2f}, and it takes {each.least_correlation:.2f} to help)"
        why = "; ".join(reason.value + weak * (reason is Reason.WEAK) for reason in share.reasons)
        yield row("corpus_share", {"label": each.label, "way": way}, value, number, why)
    for each, way, share in found:
        enough = "a draw of the whole corpus would not be enough; have a larger share audited"
        note = enough if share.more is None else ""
        yield _plain("answers_needed", {"label": each.label, "needed": way}, share.more, number, note)


# --- posts: certifying a judge on a uniform set
#
# People read the posts on which the detectors disagree, and audit a sample of the posts on which the detectors agree. A
# label that only the detectors gave does not count as an answer. Instead, the posts that people read represent the
# other posts of their stratum.


def frame_of_posts(sets: Sequence[GoldSet], corpus: str) -> Collection[str]:
    """Return the ids of the posts from which the set was drawn.

    Returns EVERY_LABEL if the corpus is not in this installation.

    Raises EvaluationError unless `sets` consists of one uniform set that was exported from a task.
    """
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
    """Return the posts that people read, together with the judge's labels of them.

    gold: a uniform set.
    subject: the judge, with its labels of the whole corpus.

    Raises EvaluationError if the judge did not label every post, or if people read too few posts of the set.
    """
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
