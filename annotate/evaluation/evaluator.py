"""Evaluation of a system on any gold set with one label per unit: overall measures, slices, comparison and errors.

The report is a JSON-serializable dict; reports/evaluation_report.py renders it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from annotate.core.aggregation.answer_table import Bools, Floats
from annotate.core.estimation.proportions import LEAST_COUNT
from annotate.core.measures import scores as measures
from annotate.core.measures.classification import Paired, places_of
from annotate.core.measures.figure_rows import Row, add_holm_p_values, difference_row, of_compared, row, why_withheld
from annotate.core.measures.scored_units import ScoredUnits, scored_units
from annotate.core.measures.scores import precision_threshold, risk_coverage
from annotate.evaluation import blind_arm
from annotate.evaluation.judge import add_certificate, judged_units, unit_frame
from annotate.evaluation.prediction_files import (
    REFUSED,
    Predictions,
    describe_system,
    read_predictor,
    read_table,
    system_names,
)
from annotate.evaluation.record_sets import Units, is_text, read_units, unfinished_warnings
from annotate.evaluation.subjects import EvaluationError, is_file
from annotate.kinds.forms import FORMS
from annotate.kinds.interface_language import label_name
from annotate.reports.evaluation_report import texts
from corpora.core.languages import LANGUAGES
from corpora.predictions.prediction_rows import EVERY_LABEL, FIELDS, coarse_by_label, is_label
from corpora.sources.readers import named_columns

POST = "post"
REFUSAL = "(refused)"  # shown in a report where a system returned no label
TEXTS = texts("units")


def evaluate_units(
    predictions: str,
    folder: Path,
    *,
    against: str = "",
    unfinished: bool = False,
    split: str = "",
    judge: Mapping[str, float] | None = None,
    sequential: bool = False,
    **reading: Any,
) -> dict[str, Any]:
    """Evaluate predictions unit by unit and return the report.

    predictions: path of a prediction file, or name of a predictor in the corpus.
    folder: folder of the gold set.
    against: path or name of a second system's predictions; "" for no comparison.
    unfinished: whether to accept an unfinished set.
    split: name of the split to measure; "" for all units.
    judge: options of the judge's certificate if the predictions are a machine judge's labels of the whole corpus,
        otherwise None.
    sequential: see `read_units`.
    reading: options for reading the predictions, see `_read_system`.

    Raise GoldSetError, EvaluationError or CorpusError if the predictions do not fit the set.
    """
    units = read_units(folder, unfinished=unfinished, split=split, sequential=sequential)
    form = _form_of(units)
    frame = frozenset() if judge is None else unit_frame(units, reading.get("corpus", ""))
    systems = [_read_system(units, predictions, others=EVERY_LABEL if frame is None else frame, **reading)]
    systems += [_read_system(units, against, **reading)] if against else []
    warnings = [blind_arm.warning(names)] if (names := blind_arm.suggesters(units.manifest)) else []
    sources = [predictions, against][: len(systems)]
    if names and any(map(partial(_has_suggested, units, reading.get("corpus", "")), sources, systems)):
        if judge is not None:
            raise EvaluationError(
                f"{names[0]} suggested labels in this set, so it cannot be certified as a judge on it."
            )
        set_options = {"unfinished": unfinished, "split": split, "sequential": sequential}
        units, systems = _read_blind_arm(folder, sources, set_options, reading)
        warnings = [blind_arm.statement(names, units.size, units.noun)]
    if units.noun == POST:
        units, systems = _merge_classes(units, systems)
    report = _report(units, form, systems, system_names(sources, [system.name for system in systems]))
    report["warnings"] = [*warnings, *report["warnings"]]
    return report if judge is None else add_certificate(report, judged_units(units, systems[0], frame), **judge)


def _form_of(units: Units) -> Any:
    """Return the form of the set's answers. Raise EvaluationError if an answer can have several labels."""
    form = FORMS.get(units.form)
    if form is None or form.several:
        measured_forms = ", ".join(name for name, answer_form in FORMS.items() if not answer_form.several)
        raise EvaluationError(
            f"The set {units.name} in {units.folder} has answers of the form {units.form}, which cannot be measured "
            f"item by item. Only sets with these forms can: {measured_forms}."
        )
    return form


def _has_suggested(units: Units, corpus: str, source: str, system: Predictions) -> bool:
    """Return whether a system's labels were shown to the annotators as suggestions."""

    def is_same() -> bool:
        rows = zip(units.rows(range(units.size)), system.labels, strict=True)
        pairs = [(row["suggested"], label) for row, label in rows if row.get("suggested")]
        return bool(pairs) and all(suggested == label for suggested, label in pairs)

    return blind_arm.has_suggested(units.manifest, corpus or units.corpus, source, is_same)


def _read_blind_arm(
    folder: Path, sources: Sequence[str], set_options: Mapping[str, Any], reading: Mapping[str, Any]
) -> tuple[Units, list[Predictions]]:
    """Return the units with blind answers, and the systems' predictions for them.

    Units on which annotators disagreed are left out if a file has no predictions for them.
    """
    units = read_units(folder, blind=True, **set_options)
    try:
        return units, [_read_system(units, source, **reading) for source in sources]
    except EvaluationError:
        units = read_units(folder, blind=True, in_set_only=True, **set_options)
        return units, [_read_system(units, source, **reading) for source in sources]


def _merge_classes(units: Units, systems: Sequence[Predictions]) -> tuple[Units, list[Predictions]]:
    """Replace labels with classes that all systems distinguish, and keep only the classes that occur.

    The task's list of labels is not used, because a post may be in a language outside this list.
    """
    fold = coarse_by_label([system.mapping for system in systems])

    def folded(labels: Iterable[str]) -> list[str]:
        return [fold.get(label, label) for label in labels]

    systems = [
        replace(system, labels=folded(system.labels), others=Counter(folded(system.others.elements())))
        for system in systems
    ]
    gold = folded(units.gold)
    occurring = {*gold, *(label for system in systems for label in (*system.labels, *system.others))} - {REFUSED}
    return replace(units, gold=gold, labels=sorted(occurring)), systems


def _read_system(
    units: Units,
    source: str,
    *,
    corpus: str = "",
    column: Sequence[str] = (),
    file_format: str | None = None,
    others: Collection[str] = (),
) -> Predictions:
    """Read predictions for the units from a file or from a predictor of the corpus.

    others: ids of items outside the set, see `read_table`.
    """
    # A system may return languages that don't occur in the set.
    codes = filter(is_label, LANGUAGES) if units.noun == POST else ()
    labels = list(dict.fromkeys((*units.labels, *codes)))
    if not is_file(source):
        return read_predictor(corpus or units.corpus, source, units.ids, labels, others)
    columns = named_columns(column, FIELDS)
    return read_table(Path(source), units.ids, labels, columns=columns, format=file_format, others=others)


def _report(units: Units, form: Any, systems: Sequence[Predictions], names: Sequence[str]) -> dict[str, Any]:
    answers = [*units.labels, REFUSED]
    gold, size = places_of(units.gold, answers), len(answers)
    pairs = [Paired(gold, places_of(system.labels, answers), size, units.weights, units.groups) for system in systems]
    measured = [form.Measures(paired, units.labels) for paired in pairs]
    slices = list(_slices(units))
    by_scores = _score_figures(units, pairs[0], systems[0].scores) if systems[0].scores is not None else {}
    reading = [*TEXTS.reading, *[TEXTS.words["counts_as"]] * (not pairs[0].is_plain)]
    names_of_labels = {label: name for label in units.labels if (name := label_name(label)) not in ("", label)}
    errors, whole = _errors(units, systems[0]), [TEXTS.words["whole"]] * bool((units.chances == 1).all())
    return {
        "unit": "unit",
        "form": units.form,
        "head": [{"measure": measure, "of": {}} for measure in form.Measures.head],
        "words": {},
        "sections": OF_SCORES.sections if by_scores else [],
        "reading": [*reading, *OF_SCORES.reading] if by_scores else reading,
        "predictor": describe_system(names[0]),
        "gold": [units.describe()],
        "rows": [*measured[0].rows(), *by_scores.get("rows", ()), *_slice_rows(measured[0], slices)],
        "reliability": by_scores.get("reliability"),
        "coverage": by_scores.get("coverage"),
        "confusion": _confusion(units, pairs[0]),
        "comparison": _comparison(units, measured, systems, slices, names[1]) if len(measured) > 1 else None,
        "errors": errors,
        **({"names": names_of_labels} if units.noun == POST else {}),
        "error_count": len(errors),
        "error_base": units.size,
        "told": [*(note for system in systems for note in system.notes), *whole],
        "warnings": _warnings(units),
    }


def _confusion(units: Units, pairs: Paired) -> dict[str, Any]:
    counts, labels = pairs.confusion, [*units.labels, REFUSAL]
    occurring = np.flatnonzero(counts.any(axis=0) | counts.any(axis=1))
    cells = [[labels[row], labels[column], round(float(counts[row, column]), 6)] for row, column in np.argwhere(counts)]
    is_weighted = bool((units.weights != 1).any())
    return {"labels": [labels[index] for index in occurring], "cells": cells, "weighted": is_weighted}


def _warnings(units: Units) -> list[str]:
    warnings = unfinished_warnings([units])
    if not units.finished:
        warnings.append(TEXTS.words["unfinished"])
    if units.scarce:
        warnings.append(
            f"Fewer than {LEAST_COUNT} items in {', '.join(units.scarce)} have a label, so the figures are not "
            "reliable there."
        )
    warnings += _audit_warnings(units)
    counts = units.manifest.get("counts") or {}
    measured_reasons = blind_arm.MEASURED_REASONS if units.in_set < units.size else ()
    left_out = {
        why.replace("_", " "): number - units.audits.missing[why]
        for why, number in (counts.get("left_out") or {}).items()
        if number > units.audits.missing[why] and why not in measured_reasons
    }
    left_out.pop("unfinished", None)  # a separate warning covers unfinished sets
    if left_out:
        whys = ", ".join(f"{why} {number:,}" for why, number in left_out.items())
        drawn = counts.get(f"{units.noun}s", 0)
        warnings.append(
            f"{sum(left_out.values()):,} of {drawn:,} items of {units.name} have no label ({whys}). These items are "
            "harder than the others, and no figure in this report covers them."
        )
    return warnings


def _audit_warnings(units: Units) -> Iterator[str]:
    """Yield warnings about unfinished audits."""
    audits = units.audits
    if not audits.missing:
        return
    missing = audits.missing.total()
    were = "audit of an agreed item was" if missing == 1 else "audits of agreed items were"
    yield (
        f"{missing:,} {were} not finished. The {audits.read:,} with a label represent all agreed items, assuming that "
        "the unfinished ones have the same error rate."
    )
    if audits.unread:
        labels = ", ".join(" ".join(filter(None, stratum)) for stratum in audits.unread)
        yield f"No audit of these labels was finished, so audits of other labels represent them: {labels}."


# --- slices


Slices = Sequence[tuple[dict[str, str], Bools]]


def _slices(units: Units) -> Iterator[tuple[dict[str, str], Bools]]:
    """Yield each slice as a {name: value} dict and a mask of its units."""
    for name, values in units.slices.items():
        column = np.array(values)
        yield from (({name: str(value)}, column == value) for value in np.unique(column) if value)


def _slice_rows(measures: Any, slices: Slices) -> Iterator[Row]:
    for slice_keys, mask in slices:
        yield from measures.sliced(slice_keys, mask)


# --- two systems


def _comparison(
    units: Units, measured: Sequence[Any], systems: Sequence[Predictions], slices: Slices, other: str
) -> dict[str, Any]:
    (first, second), pairs, number = measured, measured[0].pairs, units.size
    rows, second_rows = [*first.compared(second, slices)], [*second.rows(), *_slice_rows(second, slices)]
    sides = [
        scored_units(pairs.gold, system.scores, pairs.weights, pairs.groups)
        for system in systems
        if system.scores is not None
    ]
    if len(sides) == 2:
        rows[1:1] = [
            difference_row(name, {}, difference, number, why_withheld(difference, number, pairs), p)
            for name, (difference, p) in measures.compare_losses(*sides).items()
        ]
        second_rows += [row(name, {}, measure(sides[1]), number) for name, measure in LOSSES.items()]
    test = {} if pairs.is_plain else {"test": "a two-sided paired test based on the normal distribution"}
    other_rows = of_compared(second_rows, rows)
    return {"other": describe_system(other), "rows": add_holm_p_values(rows), "other_rows": other_rows, **test}


# --- errors


def _errors(units: Units, predictions: Predictions) -> list[dict[str, Any]]:
    """Return the units whose predicted label differs from the gold label.

    Each comes with its language, the shares of the annotators' answers, and its texts if the set includes them.
    """
    wrong = [index for index, gold in enumerate(units.gold) if gold != predictions.labels[index]]
    errors = []
    for index, read in zip(wrong, units.rows(wrong), strict=True):
        error = {"id": units.ids[index], "gold": units.gold[index], "predicted": predictions.labels[index] or REFUSAL}
        fields = {name: value for name, value in read.items() if is_text(name, value)}
        details = {"language": read.get("language"), "people": dict(units.votes[index]), "fields": fields}
        errors.append(error | {name: value for name, value in details.items() if value})
    return errors


# --- probability scores: calibration, ranking and thresholds
#
# core/measures/scores.py computes the measures; this section builds rows and curves.


TARGET_PRECISIONS = (0.9, 0.95, 0.99)  # a threshold is reported for each of these
COVERAGES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)  # shares of answered units; accuracy is reported for each of these
MOST_LABELS = 10  # thresholds per label are reported only for tasks with at most this many labels
LOSSES = {"log_loss": measures.log_loss, "brier": measures.brier_score}
OF_SCORES = texts("scores")


def _score_figures(units: Units, pairs: Paired, table: Floats) -> dict[str, Any]:
    """Return the rows and curves that measure a system's probability scores.

    pairs: gold and predicted labels.
    table: probability of each label for each unit, (n, K).
    """
    sample, number = scored_units(pairs.gold, table, pairs.weights, pairs.groups), units.size
    calibration, selective = measures.expected_calibration_error(sample, seed=units.digest), risk_coverage(sample)
    rows = [row(name, {}, measure(sample), number) for name, measure in LOSSES.items()]
    rows += [row("ece", {}, calibration.error, number), row("aurc", {}, selective.area, number)]
    for name, rank in (("roc_auc", measures.roc_auc), ("average_precision", measures.average_precision)):
        ranked = rank(sample)
        rows.append(row(f"macro_{name}", {}, ranked.macro, number))
        by_label = zip(units.labels, ranked.labels, strict=True)
        rows += [row(name, {"label": label}, figure, number) for label, figure in by_label]
    rows += [*_answer_distances(units, pairs, table), *_thresholds(sample, units.labels)]
    # For each coverage, report the threshold and the accuracy at the first point that reaches it.
    for coverage in COVERAGES:
        if point := next((candidate for candidate in selective.points if candidate.coverage >= coverage - 1e-9), None):
            slice_keys, answered = {"coverage": f"{coverage:.0%}"}, round(point.coverage * number)
            rows.append(row("least_score", slice_keys, point.threshold, answered))
            rows.append(row("accuracy_there", slice_keys, point.accuracy, answered))
    bins = [
        {
            **{"confidence": part.confidence, "accuracy": part.accuracy.value, "low": part.accuracy.low},
            **{"high": part.accuracy.high, "units": part.units, "note": part.accuracy.reason},
        }
        for part in calibration.bins
        if part.units
    ]
    curve = [{"coverage": point.coverage, "accuracy": point.accuracy} for point in selective.points]
    return {"rows": rows, "reliability": bins, "coverage": curve}


def _answer_distances(units: Units, pairs: Paired, table: Floats) -> Iterator[Row]:
    """Yield the distances between scores and answer shares, for units that several annotators answered."""
    shares = np.array([[votes.get(label, 0.0) for label in units.labels] for votes in units.votes])
    # Units with unanimous answers count too. But if all units are unanimous, each may have only one answer, and a
    # single answer isn't a distribution.
    several = np.flatnonzero(np.abs(shares.sum(axis=1) - 1) <= 1e-3)
    if not len(several) or max(map(len, units.votes)) < 2:
        return
    groups = None if pairs.groups is None else pairs.groups[several]
    part = scored_units(pairs.gold[several], table[several], pairs.weights[several], groups)
    for name, measure in (("cross_entropy", measures.cross_entropy), ("manhattan", measures.manhattan_distance)):
        yield row(name, {}, measure(shares[several], part), len(several))


def _thresholds(units: ScoredUnits, labels: Sequence[str]) -> Iterator[Row]:
    answers: dict[str, int | None] = {"all": None}
    if len(labels) <= MOST_LABELS:
        answers |= {label: index for index, label in enumerate(labels)}
    for name, index in answers.items():
        for target in TARGET_PRECISIONS:
            threshold = precision_threshold(units, target, index)
            slice_keys = {"answers": name, "wished": f"{target:.0%}"}
            note = threshold.reason and f"at {target:.0%}: {threshold.reason}"
            yield row("threshold", slice_keys, threshold.value, len(units.rows), note)
            if threshold.value is not None:
                yield row("reached_precision", slice_keys, threshold.precision, len(units.rows))
                yield row("recall_there", slice_keys, threshold.recall, len(units.rows))
                yield row("coverage_there", slice_keys, threshold.coverage, len(units.rows))
