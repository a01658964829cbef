"""Inter-annotator agreement in a task, computed from its valid answers (answer_models.py).

If a task stops early, it requests additional answers only for units whose first answers differ. These answers would
bias agreement downwards, so only the initially requested answers are used. In other tasks, all answers are used.

In a task with three or more systems, each unit compares two of them, and annotators cannot prefer a system that they do
not see. Agreement is therefore computed from the systems' positions instead of their names (`places` in
controls/pair_order.py).

`report` returns JSON data:

    {"task", "kind", "repeats": bool, "replicates", "ordered": bool,
     "labels": [...], the possible labels; empty if there are thousands,
     "placed": bool, whether positions are compared instead of labels,
     "by": the distance used to compare annotators, such as "nominal", "ordinal" or "masi",
     "all": SECTION, "languages": {code: SECTION}}         empty if the languages of the units are unknown

A SECTION has the figures for all answers or for one language:

    {"units", "units_of_two": units with two or more answers, "annotators", "judgments": counts,
     "observed": MEASURE, "nominal": MEASURE, "ordinal": MEASURE, or None if labels are not grades,
     "masi", "jaccard": MEASURE; exist only if answers are label sets. "unitizing": MEASURE; exists only for sets
                        of spans. For all label sets, "ac1", "few_others" and
                        "dawid_skene" are None, and "by_label" has only the MOST_LABELS most frequent labels,
     "ac1": MEASURE, "few_others": None, or {"label": the most frequent label, "others": number of units with any other
                                   label} if this number is too small for alpha to be informative,
     "by_label": [{"label", "name", "units": units with the label, "alpha": MEASURE}, ...],    lowest agreement first
     "against_rest": [{"annotator": pk, "pseudonym", "units": units shared with other annotators, "agreement":
                       MEASURE, "kappa": MEASURE}, ...],            lowest agreement first
     "dawid_skene": {"rounds", "converged", "tied": units with tied votes,
                     "differs": [{"unit": pk, "item", "language", "votes": {label: n}, "majority": [label, ...],
                                  "dawid_skene": [label, ...], "posterior"}, ...]},
     "gold": None, or {"units": units with a true label, "unknown": true labels whose item has no unit (only in "all"),
                       "majority": ESTIMATE of the majority's accuracy or, if answers are label sets, of its mean F1,
                                   which is 0 for a unit without a majority,
                       and an ESTIMATE of the accuracy of each of MODELS,
                       "worse": models that are significantly less accurate than the majority,
                       "sure": mean posterior of the labels that "dawid_skene" considers most likely, or None}}

MEASURE: {"value", "low", "high", "units"}; if the measure is undefined, only "units" is not None (coefficients.py).
ESTIMATE: {"value", "low", "high", "hits", "count"}, with Jeffreys' interval. If several labels tie and one is right,
    it counts as a fraction of a hit.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from annotate.core.aggregation.answer_table import Answers, Ints, at_first, winners
from annotate.core.agreement import coefficients
from annotate.core.draws.hash_order import by_seed, draw_sample, lot
from annotate.kinds.kind import ENGLISH
from annotate.models import Annotator, Task
from annotate.quality.answer_models import (
    FittedAnswers,
    MeasureFunction,
    Model,
    Responses,
    answers,
    encode_answers,
    fit_answers,
    gold_measure,
    posterior_of,
    values_of,
)
from corpora.core.arrow import pc

# If answers are label sets, agreement is measured on a random sample of at most this many units. Nearly every answer is
# a different set, and a distance is computed for each pair of sets. With 200 replicates, 500 units with three answers
# each took 0.4 GB and about 10 seconds, whereas 1,000 units took 1.3 GB and a minute.
MOST_UNITS = 500
# If answers are label sets, agreement is reported for this many labels: those with the most units.
MOST_LABELS = 20


class UnorderedLabels(ValueError):
    """Raised if labels cannot be used as grades, because their order is unknown. The message names the labels."""


@dataclass(frozen=True)
class _Options:
    """Settings for computing the agreement in a task.

    labels: canonical texts of answers, or names of positions if answers are compared by position.
    places: position by unit key and system; empty if answers are compared by label.
    not_measured: keys of units left out of the random sample, if there are too many units to measure all.
    distances: distances between labels, by name.
    bootstrap: seed and number of replicates of the bootstrap.
    per_annotator: whether to compare each annotator with all others.
    first_answers: number of initially requested answers per unit; None if all answers count.
    pseudonyms: pseudonyms by annotator key.
    """

    task: Task
    labels: list[str]
    places: Mapping[tuple[int, str], str]
    not_measured: Collection[int]
    distances: Mapping[str, coefficients.Distance]
    bootstrap: Mapping[str, int]
    per_annotator: bool
    first_answers: int | None
    pseudonyms: Mapping[int, str]


def report(
    task: Task,
    *,
    gold: Mapping[str, str] | None = None,
    repeats: bool = False,
    ordinal: bool = False,
    replicates: int = coefficients.REPLICATES,
    fit: FittedAnswers | None = None,
    per_annotator: bool = True,
) -> dict[str, Any]:
    """Measure the agreement in a task. The module docstring describes the result.

    gold: true label by item id, for any number of items. If answers are label sets, spaces separate the true labels.
    repeats: whether to include an annotator's repeated answers to the same unit, which imported files may contain.
    ordinal: whether to treat labels as grades, even if the kind does not.
    replicates: number of replicates of the bootstrap.
    fit: the answers and the fitted model; None to read the answers and fit the model.
    per_annotator: whether to compare each annotator with all others. If not, `against_rest` is empty.

    Raise UnknownLabel if the task lacks a true label, and UnorderedLabels if the order of grades is unknown.
    """
    fit = fit or fit_answers(task, repeats=repeats)
    responses = fit.responses
    options = _options(task, responses, fit.labels, ordinal=ordinal, replicates=replicates, per_annotator=per_annotator)
    truth = None if gold is None else gold_measure(task, responses, fit.labels, fit.model, gold)
    whole = _section(responses, fit, truth, options)
    languages = {}
    for code, part in responses.by_language():
        if code:
            languages[code] = whole if len(part) == len(responses) else _section(part, fit, truth, options)
    if gold is not None:
        unknown = gold.keys() - set(responses.rows["key"].to_pylist())
        whole = whole | {"gold": whole["gold"] | {"unknown": len(unknown)}}
    return {
        "task": task.name,
        "kind": task.kind_slug,
        "repeats": repeats,
        "replicates": replicates,
        "ordered": "ordinal" in options.distances,
        "labels": task.kind.statistics.compared(task),
        "placed": bool(options.places),
        "by": list(options.distances)[-1],
        "all": whole,
        "languages": languages,
    }


def nominal(task: Task, *, without: Collection[int] = ()) -> dict[str, Any]:
    """Return the nominal alpha of all answers, as a MEASURE.

    without: keys of units to leave out.
    """
    responses = answers(task).without(without)
    options = _options(task, responses, values_of(task, responses), ordinal=False, replicates=coefficients.REPLICATES)
    return _alphas(_table(responses, options).counts(), options)["nominal"]


# --- Computation


def _options(
    task: Task, responses: Responses, labels: list[str], *, ordinal: bool, replicates: int, per_annotator: bool = False
) -> _Options:
    """Return the settings for computing the agreement in a task.

    responses: valid answers.
    labels: distinct canonical texts of these answers.
    """
    form, not_measured = task.kind.form, set[int]()
    if form.several and len(by_key := {response.key: response.unit for response in responses}) > MOST_UNITS:
        keys = draw_sample(by_key, MOST_UNITS, lots=by_seed(task.draw.seed), purpose="agreement")
        not_measured = set(responses.unit.tolist()) - {by_key[key] for key in keys}
    names, places = next(filter(None, (control.places(task) for control in task.kind.hooks["places"])), ((), {}))
    if form.several:
        labels = values_of(task, responses.without(not_measured))
    elif places:
        labels = list(names)
    return _Options(
        task=task,
        labels=labels,
        places=places,
        not_measured=not_measured,
        distances=_distances(task, labels, ordinal),
        bootstrap={"seed": int(lot(task.draw.seed, "agreement", task.name)[:12], 16), "replicates": replicates},
        per_annotator=per_annotator,
        first_answers=at_first(task.redundancy, stop_early=True) if task.stop_early else None,
        pseudonyms=dict(Annotator.objects.values_list("pk", "pseudonym")),
    )


def _distances(task: Task, labels: list[str], ordinal: bool) -> dict[str, coefficients.Distance]:
    """Return the distances between labels, by name.

    ordinal: whether to treat labels as grades, even if the kind's answer form does not.
    """
    distances = task.kind.form.distances(labels)
    if not ordinal:
        return distances
    # The order of labels from an imported file is known only if it was declared, or if the labels are numbers. Other
    # labels were sorted alphabetically.
    parameters = task.draw.parameters
    in_order = parameters.get("labels_in_order", "imported" not in parameters) or all(map(str.isdecimal, labels))
    if not ("ordinal" in distances or in_order):
        raise UnorderedLabels(
            f"The labels of {task.name} are words whose order is not known: {', '.join(labels)}. Import them under "
            'another name with --labels, best grade first, such as --labels "good fair bad".'
        )
    return {**distances, "ordinal": coefficients.ordinal}


def _section(
    responses: Responses, fit: FittedAnswers, truth: MeasureFunction | None, options: _Options
) -> dict[str, Any]:
    table, model = _table(responses, options), fit.model
    counts, (_, sizes) = (
        table.counts(),
        np.unique(_first_answers(responses, options.first_answers).unit, return_counts=True),
    )
    few = coefficients.few_others(counts) if model else None
    return {
        "units": len(sizes),
        "units_of_two": int((sizes > 1).sum()),
        "annotators": len(pc.unique(responses.rows["annotator"])),
        "judgments": len(responses),
        "observed": coefficients.observed_agreement(counts, **options.bootstrap).as_dict(),
        "ordinal": None,
        **_alphas(counts, options),
        "ac1": coefficients.ac1(counts, **options.bootstrap).as_dict() if model else None,
        "few_others": {"label": options.labels[few[0]], "others": few[1]} if few else None,
        "by_label": _by_label(counts, options),
        "against_rest": _against_rest(table, options) if options.per_annotator else [],
        "dawid_skene": _model_results(responses, model, fit.labels) if model else None,
        "gold": truth(responses) if truth else None,
    }


def _table(responses: Responses, options: _Options) -> Answers:
    """Encode the answers that agreement is measured on."""
    rows = _first_answers(responses, options.first_answers).without(options.not_measured).rows
    if options.places:
        pairs = zip(rows["unit"].to_pylist(), rows["label"].to_pylist(), strict=True)
        labels = pa.array([options.places.get(pair, pair[1]) for pair in pairs], pa.string())
        rows = rows.set_column(rows.schema.get_field_index("label"), "label", labels)
    return encode_answers(Responses(rows), options.labels)


def _alphas(counts: Ints, options: _Options) -> dict[str, dict[str, Any]]:
    return {
        name: coefficients.alpha(counts, distance, **options.bootstrap).as_dict()
        for name, distance in options.distances.items()
    }


def _first_answers(responses: Responses, number: int | None) -> Responses:
    """Return the first answers to each unit.

    number: maximum number of answers per unit; None for all.
    """
    if number is None:
        return responses
    # A unit's answers are adjacent. An answer is surplus if the answer `number` rows above belongs to the same unit.
    unit, later = responses.unit, np.zeros(len(responses), dtype=np.bool_)
    later[number:] = unit[number:] == unit[:-number]
    return responses.where(~later)


def _by_label(counts: Ints, options: _Options) -> list[dict[str, Any]]:
    kind = options.task.kind
    several, sets = kind.form.several, [set(kind.form.counted(text)) for text in options.labels]
    labels = _frequent(counts, sets) if several else options.labels
    rows = [
        {
            "label": labels[result.label],
            "name": kind.name_in(ENGLISH, labels[result.label]) if several else labels[result.label],
            "units": result.units,
            "alpha": result.alpha.as_dict(),
        }
        for result in coefficients.by_label(counts, coefficients.having(sets, labels), **options.bootstrap)
    ]
    return sorted(rows, key=lambda row: np.inf if row["alpha"]["value"] is None else row["alpha"]["value"])


def _frequent(counts: Ints, sets: list[set[str]]) -> list[str]:
    """Return the MOST_LABELS most frequent labels, by the number of units with two or more answers.

    Labels with the same number of units are sorted by id.
    """
    units: Counter[str] = Counter()
    for row in counts[counts.sum(axis=1) > 1]:
        units.update(set().union(*(sets[index] for index in np.flatnonzero(row))))
    return sorted(units, key=lambda label: (-units[label], label))[:MOST_LABELS]


def _against_rest(table: Answers, options: _Options) -> list[dict[str, Any]]:
    *_, distance = options.distances.values()
    unlike = options.task.kind.form.unlike(options.labels)
    results = coefficients.against_rest(table, distance, unlike, **options.bootstrap)
    rows = [
        {
            "annotator": result.annotator,
            "pseudonym": options.pseudonyms[result.annotator],
            "units": result.units,
            "agreement": result.agreement.as_dict(),
            "kappa": result.kappa.as_dict(),
        }
        for result in results
        if result.units
    ]
    return sorted(rows, key=lambda row: (row["agreement"]["value"], row["pseudonym"]))


def _model_results(responses: Responses, model: Model, labels: list[str]) -> dict[str, Any]:
    """Return the results of Dawid and Skene's model, for `dawid_skene` in a SECTION.

    `differs` lists the units where the model chooses a label that does not have the most votes, by descending
    certainty of the model.
    """
    table = encode_answers(responses, labels)
    ends = [model.ends[code] for code, _ in responses.by_language()]
    counts, posterior = table.counts(), posterior_of(model, table)
    voted, predicted = winners(counts), winners(posterior)
    unlike = np.asarray((predicted & ~voted).any(axis=1))
    by_unit = {response.unit: response for response in responses.where(unlike[table.unit])}

    def winning_labels(row: Iterable[bool]) -> list[str]:
        return [label for label, wins in zip(table.labels, row, strict=True) if wins]

    differs = [
        {
            "unit": table.units[index],
            "item": by_unit[table.units[index]].key,
            "language": by_unit[table.units[index]].language,
            "votes": {label: int(n) for label, n in zip(table.labels, counts[index], strict=True) if n},
            "majority": winning_labels(voted[index]),
            "dawid_skene": winning_labels(predicted[index]),
            "posterior": float(posterior[index].max()),
        }
        for index in np.flatnonzero(unlike)
    ]
    return {
        "rounds": max((rounds for rounds, _ in ends), default=0),
        "converged": all(converged for _, converged in ends),
        "tied": int((voted.sum(axis=1) > 1).sum()),
        "differs": sorted(differs, key=lambda unit: -unit["posterior"]),
    }
