"""Any system measured on any set whose units have one label each: one join, the measures of the form, the slices.

The report is one dict that JSON can hold. reports/evaluation_report.py writes it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from annotate.core.aggregation.answer_table import Bools
from annotate.core.agreement.judge_agreement import EPSILON
from annotate.core.estimation.proportions import LEAST_COUNT
from annotate.core.measures.classification import Paired, places_of
from annotate.core.measures.figure_rows import holm_corrected, of_compared
from annotate.evaluation.judge import HALF_WIDTH, certificate, frame_of, judged_units, with_certificate
from annotate.evaluation.prediction_files import described, system_names, unfinished_ones
from annotate.evaluation.prediction_table import REFUSED, Predictions, of_predictor, read_table
from annotate.evaluation.score_measures import losses, scored, scores_apart
from annotate.evaluation.subjects import EvaluationError, is_file
from annotate.evaluation.units import Units, is_text, read_units
from annotate.kinds.forms import FORMS
from annotate.kinds.language_labels import label_name
from corpora.core.languages import LANGUAGES
from corpora.predictions.prediction_rows import EVERY_LABEL, FIELDS, folding, is_label
from corpora.sources.headers import named_columns

POST = "post"
REFUSAL = "(refused)"  # what a report shows where a system gave no label
WHOLE = "Every unit of the corpus is in the set; intervals are for other units like these."
READING = (
    "A number with two in brackets is an estimate with its 95% interval, for the population from which the units were "
    "drawn. Units with unequal chances of being drawn count by the inverse of their chance; units that were drawn "
    "together count together."
)
COUNTS_AS = "“Counts as” is the size of a plain random sample whose interval is as wide, at most the number of units."


def evaluate_units(
    predictions: str,
    folder: Path,
    *,
    against: str = "",
    unfinished: bool = False,
    split: str = "",
    judge: bool = False,
    half_width: float = HALF_WIDTH,
    epsilon: float = EPSILON,
    sequential: bool = False,
    **reading: Any,
) -> dict[str, Any]:
    """The report.

    predictions, against: files, or the names of predictors of the corpus. split: measure its units alone. judge:
    whether the predictions are those of a machine judge for the whole corpus, whose certificate is wanted; half_width
    (in points), epsilon: see judge.py. sequential: see read_units. reading: how the predictions are read, see `_read`.

    GoldSetError, EvaluationError or CorpusError, a sentence, if they do not fit the set.
    """
    units = read_units(folder, unfinished=unfinished, split=split, sequential=sequential)
    form = FORMS.get(units.form)
    if form is None or form.several:
        measured_forms = ", ".join(name for name, each in FORMS.items() if not each.several)
        raise EvaluationError(
            f"The set {units.name} in {units.folder} has answers of the form {units.form}, which cannot be measured "
            f"unit by unit; there are measures for {measured_forms}."
        )
    frame = frame_of(units, reading.get("corpus", "")) if judge else frozenset()
    systems = [_read(units, predictions, others=EVERY_LABEL if frame is None else frame, **reading)]
    systems += [_read(units, against, **reading)] if against else []
    if units.noun == POST:
        units, systems = _in_classes(units, systems)
    names = system_names([predictions, against][: len(systems)], [each.name for each in systems])
    report = _report(units, form, systems, names)
    if not judge:
        return report
    read = judged_units(units, systems[0], frame)
    return with_certificate(report, certificate(read, half_width=half_width / 100, epsilon=epsilon))


def _in_classes(units: Units, systems: Sequence[Predictions]) -> tuple[Units, list[Predictions]]:
    """Posts and predictions with the classes that the systems tell apart, in place of the labels: those that occur,
    since a post may be in any language."""
    fold = folding([each.mapping for each in systems])

    def folded(labels: Iterable[str]) -> list[str]:
        return [fold.get(label, label) for label in labels]

    systems = [
        replace(each, labels=folded(each.labels), others=_summed(folded(each.others), each.others.values()))
        for each in systems
    ]
    gold = folded(units.gold)
    there = {*gold, *(label for each in systems for label in (*each.labels, *each.others))} - {REFUSED}
    return replace(units, gold=gold, labels=sorted(there)), systems


def _summed(labels: Iterable[str], numbers: Iterable[int]) -> Counter[str]:
    found = Counter[str]()
    for label, number in zip(labels, numbers, strict=True):
        found[label] += number
    return found


def _read(
    units: Units,
    spelled: str,
    *,
    corpus: str = "",
    column: Sequence[str] = (),
    file_format: str | None = None,
    others: Collection[str] = (),
) -> Predictions:
    """The predictions in a file, or of a predictor of the corpus, for the units. others: see read_table."""
    labels = list(units.labels)
    if units.noun == POST:  # a system may name languages that no post of the set is in
        labels += [code for code in LANGUAGES if is_label(code) and code not in labels]
    if not is_file(spelled):
        return of_predictor(corpus or units.corpus, spelled, units.ids, labels, others)
    columns = named_columns(column, FIELDS)
    return read_table(Path(spelled), units.ids, labels, columns=columns, format=file_format, others=others)


def _report(units: Units, form: Any, systems: Sequence[Predictions], names: Sequence[str]) -> dict[str, Any]:
    answers = [*units.labels, REFUSED]
    gold, size = places_of(units.gold, answers), len(answers)
    pairs = [Paired(gold, places_of(each.labels, answers), size, units.weights, units.groups) for each in systems]
    measured = [form.Measures(each, units.labels) for each in pairs]
    first = measured[0]
    by_scores = dict[str, Any](rows=[], sections=[], reading=[])
    if systems[0].scores is not None:
        by_scores = scored(pairs[0], systems[0].scores, units.votes, units.labels, units.digest)
    sliced = [each for of, kept in _slices(units) for each in first.sliced(of, kept)]
    errors = _errors(units, systems[0])
    return {
        "unit": "unit",
        "form": units.form,
        "head": [{"measure": measure, "of": {}} for measure in first.head],
        "words": {},
        "sections": by_scores["sections"],
        "reading": [READING, *([] if pairs[0].is_plain else [COUNTS_AS]), *by_scores["reading"]],
        "predictor": described(names[0]),
        "gold": [units.described()],
        "rows": [*first.rows(), *by_scores["rows"], *sliced],
        "reliability": by_scores.get("reliability"),
        "coverage": by_scores.get("coverage"),
        "confusion": _confusion(pairs[0], [*units.labels, REFUSAL]),
        "comparison": _comparison(units, measured, systems, names[1]) if len(measured) > 1 else None,
        "errors": errors,
        **({"names": _named(units.labels)} if units.noun == POST else {}),
        "error_count": len(errors),
        "error_base": units.size,
        "told": [*(note for each in systems for note in each.notes), *[WHOLE] * bool((units.chances == 1).all())],
        "warnings": _warnings(units),
    }


def _named(labels: Iterable[str]) -> dict[str, str]:
    """Code -> the name of its language."""
    return {label: name for label in labels if (name := label_name(label)) not in ("", label)}


def _warnings(units: Units) -> list[str]:
    found = unfinished_ones([units])
    if not units.finished:
        found.append(
            "In each language, and each part of a draw with parts, the units that have a label stand for all that were "
            "drawn. Units on which people disagree have a label later; they are harder, and no figure here covers "
            "those that still wait."
        )
    if units.scarce:
        found.append(
            f"Fewer than {LEAST_COUNT} of the units in {', '.join(units.scarce)} have a label, so these figures say "
            "hardly anything of them."
        )
    counts = units.manifest.get("counts") or {}
    left_out = {why.replace("_", " "): number for why, number in (counts.get("left_out") or {}).items() if number}
    left_out.pop("unfinished", None)  # of these the warnings on unfinished sets speak
    if left_out:
        whys = ", ".join(f"{why} {number:,}" for why, number in left_out.items())
        drawn = counts.get(f"{units.noun}s", 0)
        found.append(
            f"{sum(left_out.values()):,} of {drawn:,} units of {units.name} have no label ({whys}). "
            "They are harder than the others, and no figure here covers them."
        )
    return found


# --- slices


def _slices(units: Units) -> list[tuple[dict[str, str], Bools]]:
    """What each slice is called, and which units are in it."""
    found = []
    for name, values in units.slices.items():
        listed = np.array(values)
        found += [({name: str(value)}, listed == value) for value in np.unique(listed) if value]
    return found


# --- two systems


def _comparison(units: Units, measured: Sequence[Any], systems: Sequence[Predictions], name: str) -> dict[str, Any]:
    first, second = measured
    rows = [*first.compared(second, _slices(units))]
    if all(each.scores is not None for each in systems):
        rows[1:1] = scores_apart(first.pairs, *(each.scores for each in systems))
    theirs = [*second.rows(), *(each for of, kept in _slices(units) for each in second.sliced(of, kept))]
    if systems[1].scores is not None:
        theirs += losses(second.pairs, systems[1].scores)
    test = {} if first.pairs.is_plain else {"test": "a two-sided paired test by the normal distribution"}
    return {"other": described(name), "rows": holm_corrected(rows), "other_rows": of_compared(theirs, rows), **test}


# --- confusions and errors


def _confusion(pairs: Paired, labels: Sequence[str]) -> dict[str, Any]:
    cells = pairs.confusion
    there = [place for place in range(len(labels)) if cells[place].any() or cells[:, place].any()]
    return {
        "labels": [labels[place] for place in there],
        "cells": [
            [labels[gold], labels[said], round(float(cells[gold, said]), 6)]
            for gold in there
            for said in there
            if cells[gold, said]
        ],
    }


def _errors(units: Units, said: Predictions) -> list[dict[str, Any]]:
    """The units where gold and prediction differ, with their language and the shares of people's answers; with their
    texts where the licence lets these leave."""
    wrong = [place for place, gold in enumerate(units.gold) if gold != said.labels[place]]
    found = []
    for place, read in zip(wrong, units.rows(wrong), strict=True):
        predicted = said.labels[place] or REFUSAL
        each: dict[str, Any] = {"id": units.ids[place], "gold": units.gold[place], "predicted": predicted}
        more = {
            "language": read.get("language"),
            "people": dict(units.votes[place]),
            "fields": {name: value for name, value in read.items() if is_text(name, value)},
        }
        found.append(each | {name: value for name, value in more.items() if value})
    return found
