"""The certificate of a machine judge that labelled a whole corpus, of which people read a sample.

It says how far the judge agrees with people beside how far people agree with each other, whether it may replace a
person (the alternative annotator test), and the share of each label in the corpus in three ways: by people alone, by
Rogan and Gladen's correction, and by prediction-powered inference.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from annotate.core import answers as people
from annotate.core.alternative_annotator import LEVEL, AlternativeAnnotatorTest, alternative_annotator_test
from annotate.core.classification import places_of
from annotate.core.comparing import Difference
from annotate.core.corpus_share import ReadSample
from annotate.core.figure_rows import Row, row
from annotate.core.judge_agreement import judge_agreement
from annotate.core.prediction_powered import corpus_shares
from annotate.evaluation.given import EvaluationError
from annotate.evaluation.prediction_table import Predictions
from annotate.evaluation.units import Units, answers_of
from corpora.folders import corpus_dir
from corpora.manifest import read_manifest

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


def frame_of(units: Units, corpus: str) -> frozenset[str] | None:
    """The ids of the items from which the set was drawn; None where its corpus is not in this installation.
    EvaluationError where another corpus is named."""
    if corpus and units.corpus and corpus != units.corpus:
        raise EvaluationError(
            f"The gold set {units.name} was drawn from corpus {units.corpus}, not {corpus}; leave --corpus out, or "
            "correct it."
        )
    name = corpus or units.corpus
    manifest = read_manifest(name) if name else None
    if manifest is None:
        return None
    wanted = {draw["language"] for draw in units.manifest["draws"]} - {""}
    found: list[str] = []
    for part in manifest.parts:
        table = pq.read_table(corpus_dir(name) / "parts" / part.name, columns=["id", "language"])
        rows = zip(table["id"].to_pylist(), table["language"].to_pylist(), strict=True)
        found += [key for key, language in rows if not wanted or language in wanted]
    return frozenset(found)


def certificate(
    units: Units, said: Predictions, *, frame: frozenset[str] | None, half_width: float, epsilon: float
) -> dict[str, Any]:
    """What a report has of a judge besides the measures of any system: rows, words and headlines.

    said: what the judge says of the units, and how often it gives each label to other items of the frame. frame: see
    `frame_of`. half_width: the wished half-width of a share's interval, a fraction. EvaluationError if the judge did
    not label the whole frame.
    """
    labelled = len(units.ids) + said.others.total()
    if not said.others:
        raise EvaluationError(
            f"{said.name} has labels for the {labelled:,} units of the set alone; a judge's certificate needs its "
            "label of every item of the corpus. Name the file without --judge to measure these units alone."
        )
    if (units.chances == 1).all():
        raise EvaluationError(
            f"All units of the gold set {units.name} have the chance 1, so they are no sample of the {labelled:,} "
            f"items that {said.name} labels; draw a sample with open_task --size, and export that."
        )
    size = sum(draw["frame_size"] for draw in units.manifest["draws"]) if frame is None else len(frame)
    if labelled != size:
        raise EvaluationError(
            f"{said.name} has labels for {labelled:,} of the {size:,} items from which the gold set {units.name} was "
            "drawn; a judge's certificate needs its label of each of them, once."
        )
    answers = _answers(units)
    judged = None if answers is None else _judged(answers, units, said)
    agreement = [] if answers is None or judged is None else list(_agreement(answers, judged, units))
    tested, verdict = ([], NOBODY) if answers is None or judged is None else _tested(answers, judged, epsilon)
    return {
        "rows": [*agreement, *tested, *_shares(units, said, half_width)],
        "words": {
            "by-person" if tested else "agreement": [verdict],
            "by-label-way": [f"Of the {labelled:,} items from which the units were drawn."],
            "by-label-needed": [
                f"How many more units people have to label for an interval of ±{100 * half_width:g} points."
            ],
        },
        "reading": list(READING),
        "sections": [
            {
                "slug": "agreement",
                "title": "Agreement with people",
                "of": ["answers"],
                "measures": ["pairwise_agreement", "agreement_difference"],
                "plotted": ["pairwise_agreement"],
            },
            {
                "slug": "alpha",
                "title": "Krippendorff’s alpha",
                "of": ["answers"],
                "measures": ["alpha"],
                "plotted": [],
            },
        ],
        "head": [{"measure": "winning_rate", "of": {}}] if tested else [],
    }


NOBODY = "The set has one answer for each unit, so the alternative annotator test cannot be made."


# --- agreement with people


def _answers(units: Units) -> people.Answers | None:
    """Who said what, of units with an answer; None where the set does not tell."""
    known = set(units.labels)
    rows = [
        (key, person, label)
        for key, row in zip(units.ids, units.rows(range(len(units.ids))), strict=True)
        for person, label in answers_of(row).items()
        if label in known
    ]
    return people.tabulate(rows, units.labels) if rows else None


def _judged(answers: people.Answers, units: Units, said: Predictions) -> people.Ints:
    labels = dict(zip(units.ids, said.labels, strict=True))
    return places_of([labels[str(key)] for key in answers.units], units.labels)


def _agreement(answers: people.Answers, judged: people.Ints, units: Units) -> Iterator[Row]:
    found = judge_agreement(answers, judged, seed=int(units.digest[:8], 16))
    for who, estimate, number in (
        ("judge with people", found.judge, found.units),
        (SHARED, found.judge_shared, found.units_shared),
        ("people with each other", found.people, found.units_shared),
    ):
        yield row("pairwise_agreement", {"answers": who}, estimate, number)
    yield row("agreement_difference", {"answers": SHARED}, found.difference, found.units_shared)
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
    passed = "no verdict" if test.passed is None else "passes the test" if test.passed else "fails the test"
    whole = row("winning_rate", {}, None, None, f"alternative annotator test: {passed}") | {"value": test.winning_rate}
    return [whole, *rows], _verdict(test, epsilon)


def _plain(measure: str, of: Mapping[str, str], value: float | None, units: int, note: str) -> Row:
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


def _shares(units: Units, said: Predictions, half_width: float) -> Iterator[Row]:
    judge, gold = (places_of(values, units.labels) for values in (said.labels, units.gold))
    counted = Counter(said.labels) + said.others
    sample = ReadSample(
        tuple(units.labels),
        np.array([counted[label] for label in units.labels], dtype=np.int64),
        judge,
        gold,
        units.chances,
    )
    found = [
        (each.label, way, share)
        for each in corpus_shares(sample, half_width)
        for way, share in zip(WAYS, (each.people, each.rogan_gladen, each.prediction_powered), strict=True)
    ]
    number = len(units.ids)
    for label, way, share in found:
        value = None if share.value is None else Difference(share.value, share.low, share.high)
        note = " ".join(reason.value for reason in share.reasons)
        yield row("corpus_share", {"label": label, "way": way}, value, number, note)
    for label, way, share in found:
        yield _plain("answers_needed", {"label": label, "needed": way}, share.more, number, "")
