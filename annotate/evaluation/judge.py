"""The certificate of a machine judge that labelled a whole corpus, of which people read a sample.

It says how far the judge agrees with people beside how far people agree with each other, whether it may replace a
person (the alternative annotator test), and the share of each label in the corpus in three ways: by people alone, by
Rogan and Gladen's correction, and by prediction-powered inference.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from annotate.core.aggregation import answer_table as people
from annotate.core.agreement.judge_agreement import (
    LEVEL,
    AlternativeAnnotatorTest,
    alternative_annotator_test,
    judge_agreement,
)
from annotate.core.estimation.audited_draw import AuditedDraw, shares_of_draw
from annotate.core.estimation.comparisons import Difference
from annotate.core.estimation.corpus_share import CorpusShare, ReadSample, Reason
from annotate.core.estimation.share_estimators import LabelShares, corpus_shares
from annotate.core.measures.classification import places_of
from annotate.core.measures.figure_rows import Row, row
from annotate.evaluation.prediction_table import REFUSED, Predictions
from annotate.evaluation.subjects import EvaluationError
from annotate.evaluation.units import Units, answers_of
from annotate.reports.evaluation_report import section
from corpora.storage.layout import corpus_dir, read_manifest

HALF_WIDTH = 2.5  # points of the interval of a label's share in the corpus, for which further answers are counted
SHARED = "judge with people, where two answered"
WAYS = ("people alone", "Rogan-Gladen", "prediction-powered")
READING = (
    "Pairwise agreement is the mean over units of how often two of their answers are the same. It and the alternative "
    "annotator test give each unit the same weight, however it was drawn.",
    "The alternative annotator test leaves out one person at a time: how often is the judge, and how often is that "
    "person, at least as close to the other people? The judge wins against a person if it is worse in fewer than "
    "epsilon of the units, tested with the Benjamini-Yekutieli correction. It passes if it wins against half of them "
    "(Calderon, Reichart and Dror 2025).",
    "The share of a label in the corpus is estimated from the units that people read, with the judge's labels of all "
    "other items (prediction-powered, PPI++: Angelopoulos, Duchi and Zrnic 2023), with its rates of error (Rogan and "
    "Gladen 1978), or without it (people alone). All three estimate what people would answer if they "
    "read every item.",
)


def ids_of_corpus(name: str, languages: Collection[str] = (), most: int | None = None) -> frozenset[str] | None:
    """The ids of a corpus' items; None where it is not in this installation. languages: of items in these alone, if any
    are named. most: of its first parts alone, which had so many items when the draw was made."""
    manifest = read_manifest(name) if name else None
    if manifest is None:
        return None
    found: list[str] = []
    for part in manifest.parts:
        if most is not None and len(found) >= most:
            break
        columns = ["id", "language"] if languages else ["id"]  # posts declare none
        for item in pq.read_table(corpus_dir(name) / "parts" / part.name, columns=columns).to_pylist():
            if not languages or item["language"] in languages:
                found.append(item["id"])
    return frozenset(found)


def frame_of(units: Units, corpus: str) -> frozenset[str] | None:
    """The ids of the items from which the set was drawn; None where its corpus is not in this installation.
    EvaluationError where another corpus is named."""
    drawn_from = corpus_drawn_from(units.name, units.corpus, corpus)
    return ids_of_corpus(drawn_from, {draw["language"] for draw in units.manifest["draws"]} - {""})


def corpus_drawn_from(name: str, known: str, corpus: str) -> str:
    """name: of the gold set; known: its corpus by the manifest; corpus: the one that was named, "" for none."""
    if corpus and known and corpus != known:
        raise EvaluationError(
            f"The gold set {name} was drawn from corpus {known}, not {corpus}; leave --corpus out, or correct it."
        )
    return corpus or known


@dataclass(frozen=True)
class Judged:
    """The items of a corpus that people read, with the judge's labels, (n,).

    labels: those that people may give, (K,). ids, judge: of each item its id and the judge's label, REFUSED where it
    gave none. answers: people's single answers (id, person, label), none where the set does not tell. sample: by which
    shares are estimated. refused, size: number of items of the corpus that the judge refused, and of all. seed: of
    resampling.
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
    """said: the judge's labels of the units, and how often it gives each label to other items. frame: as `frame_of`
    returns it. EvaluationError if the judge did not label every item of the corpus."""
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
    """EvaluationError where a judge labelled the units of a set alone, or less or more than the corpus.

    name, machine: of the set and of the judge. labelled: number of items that the judge labelled. units: of the set.
    size: number of items from which they were drawn; is_sample: whether people read only some of these.
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


def certificate(read: Judged, *, half_width: float, epsilon: float) -> dict[str, Any]:
    """The parts of a report that certify a judge: rows, words, sections and headlines.

    half_width: the wished half-width of a share's interval, a fraction.
    """
    known = set(read.labels)
    listed = [answer for answer in read.answers if answer[2] in known]
    agreement, tested, words = [], [], {}
    if listed:
        answers = people.tabulate(listed, [*read.labels, REFUSED])
        by_id = dict(zip(read.ids, read.judge, strict=True))
        judge = places_of([by_id[str(key)] for key in answers.units], answers.labels)
        agreement = list(_agreement(answers, judge, read.seed))
        tested, verdict = _tested(answers, judge, epsilon)
        words = {"by-person": [verdict]}
    return {
        "rows": [*agreement, *tested, *_shares(read, half_width)],
        "words": words
        | {
            "shares": [_of_corpus(read)],
            "needed": [
                "How many more items people have to read, drawn like those that they read, until a share is known to "
                f"±{100 * half_width:g} points; 0 where it is already."
            ],
        },
        "reading": list(READING),
        "sections": SECTIONS,
        "head": [{"measure": "winning_rate", "of": {}}] if tested else [],
        "told": [] if tested else [NOBODY],
    }


def _of_corpus(read: Judged) -> str:
    words = f"Of the {read.size:,} items from which the units were drawn."
    if not read.refused:
        return words
    number = "one of them" if read.refused == 1 else f"{read.refused:,} of them"
    return f"{words} The judge refused {number}. Each counts as an item to which it did not give the label."


def with_certificate(report: dict[str, Any], certified: Mapping[str, Any]) -> dict[str, Any]:
    """The report on a judge's labels as on those of any system, with its certificate before the figures."""
    before = {part: [*certified[part], *report[part]] for part in ("rows", "sections", "head")}
    after = {part: [*report[part], *certified[part]] for part in ("reading", "told")}
    return report | before | after | {"words": report["words"] | certified["words"]}


SECTIONS = [
    section("agreement", "Agreement with people", "answers", "pairwise_agreement agreement_difference", drawn=1),
    section("alpha", "Krippendorff’s alpha", "answers", "alpha", drawn=0),
    section("shares", "Share of each label in the corpus", "label way", "corpus_share", drawn=1, across=WAYS),
    section("needed", "Further answers needed", "label needed", "answers_needed", across=WAYS),
]
NOBODY = "The set has no answers of single people, so the judge is not compared with them."


# --- agreement with people


def _agreement(answers: people.Answers, judged: people.Ints, seed: int) -> Iterator[Row]:
    found = judge_agreement(answers, judged, seed=seed)
    for who, estimate, number in (
        ("judge with people", found.judge, found.units),
        (SHARED, found.judge_shared, found.units_shared),
        ("people with each other", found.people, found.units_shared),
    ):
        # Its effective count would be of pairs of answers, not of units.
        yield row("pairwise_agreement", {"answers": who}, estimate, number) | {"count": None}
    yield row("agreement_difference", {"answers": SHARED}, found.difference, None)
    for who, measure in (("judge and people", found.judge_alpha), ("people with each other", found.people_alpha)):
        told = None if measure.value is None else Difference(measure.value, *_ends(measure.low, measure.high))
        yield row("alpha", {"answers": who}, told, measure.units, "" if told else "all answers are the same")


def _ends(low: float | None, high: float | None) -> tuple[float, float]:
    return (-1.0, 1.0) if low is None or high is None else (low, high)


# --- the alternative annotator test


def _tested(answers: people.Answers, judged: people.Ints, epsilon: float) -> tuple[list[Row], str]:
    """The rows of the test, and its verdict in a sentence."""
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
    """A figure without an interval."""
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
    found = [
        (each, way, share)
        for each in shares
        for way, share in zip(WAYS, (each.people, each.rogan_gladen, each.prediction_powered), strict=True)
    ]
    number = len(read.ids)
    for each, way, share in found:
        value = None if share.value is None else Difference(share.value, share.low, share.high)
        yield row("corpus_share", {"label": each.label, "way": way}, value, number, _why(each, share))
    for each, way, share in found:
        note = (
            ""
            if share.more is not None
            else "a draw of the whole corpus would not be enough; have a larger share audited"
        )
        yield _plain("answers_needed", {"label": each.label, "needed": way}, share.more, number, note)


def _why(label: LabelShares, share: CorpusShare) -> str:
    """Why a way gives the figures of people alone, or what to know about its interval."""
    weak = f" ({label.correlation or 0.0:.2f}, and it takes {label.least_correlation:.2f} to help)"
    return "; ".join(reason.value + weak * (reason is Reason.WEAK) for reason in share.reasons)
