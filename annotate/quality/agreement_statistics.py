"""How far the annotators of a task agree, by the answers that count (answer_models.py).

Agreement counts, for each unit, the answers that were asked for at first. If early answers may settle a unit, later
ones are asked for because the first differ, and two people who agree would weigh too little. If no answers are asked
for later, all of them count. Where people compare two of several systems, agreement is over the places of the two by
name (`places` of controls/pair_order.py), as nobody can prefer a system that they are not shown.

`report` returns, in JSON's terms:

    {"task", "kind", "repeats": bool, "replicates", "ordered": bool,
     "labels": [...], those that may be given; none where they are thousands,
     "placed": bool, whether places are told apart instead of labels,
     "by": the distance by which annotators are compared, such as "nominal", "ordinal" or "masi",
     "all": SECTION, "languages": {code: SECTION}}         no languages where it is not known which the units are in

SECTION, of all answers or of those in one language:

    {"units", "units_of_two": those with two answers or more, "annotators", "judgments": counts,
     "observed": MEASURE, "nominal": MEASURE, "ordinal": MEASURE or None if the labels are no grades,
     "masi", "jaccard": MEASURE, only where an answer is several labels; then there are no "ac1", "few_others" and
                        "dawid_skene", which are None, and "by_label" has the MOST_LABELS on the most units
     "ac1": MEASURE, "few_others": None, or {"label": the most frequent one, "others": units with any other}, if
                                                           these are so few that alpha says little,
     "by_label": [{"label", "name", "units": with it, "alpha": MEASURE}, ...],   the one with least agreement first
     "against_rest": [{"annotator": pk, "pseudonym", "units": shared with others, "agreement": MEASURE,
                       "kappa": MEASURE}, ...],            the one who agrees least first
     "dawid_skene": {"rounds", "converged", "tied": units whose votes tie,
                     "differs": [{"unit": pk, "item", "language", "votes": {label: n}, "majority": [label, ...],
                                  "dawid_skene": [label, ...], "posterior"}, ...]},
     "gold": None, or {"units": with a true label, "unknown": true labels of no unit (in "all" alone),
                       "majority": ESTIMATE, how often it is right, or its mean F1 where an answer is several
                                   labels, 0 where no label has a majority; and one for each of MODELS,
                       "worse": those of MODELS that are right less often than the majority beyond chance,
                       "sure": mean posterior of the labels that "dawid_skene" finds likeliest, or None}}

MEASURE: {"value", "low", "high", "units"}, any but units None if it cannot be said (coefficients.py).
ESTIMATE: {"value", "low", "high", "hits", "count"}, Jeffreys' interval, ties counted by their shares.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby, islice
from operator import attrgetter
from typing import Any

import numpy as np

from annotate.core.aggregation.answer_table import Answers, Ints, at_first, winners
from annotate.core.agreement import coefficients, pair_intervals
from annotate.core.draws.hash_order import by_seed, drawn, lot
from annotate.kinds.kind import ENGLISH
from annotate.models import Annotator, Task
from annotate.quality.answer_models import (
    Fitted,
    Measuring,
    Model,
    Said,
    against,
    answers,
    fitted,
    posterior_of,
    tabled,
    values_of,
)

# Where answers are several labels, nearly each is another set, and each two of them have a distance. So many units are
# measured, by lot, if there are more: with three answers each there are 1,500 sets, and all that is made of their
# distances took 0.4 GB and, with 200 replicates, about 10 seconds; of 1,000 units it was 1.3 GB and a minute.
MOST_UNITS = 500
# Of single labels out of thousands so many are told, those that are on the most units.
MOST_LABELS = 20


class UnorderedLabels(ValueError):
    """Labels that are taken for grades and have no order; the sentence names them."""


@dataclass(frozen=True)
class _Options:
    """labels: the canonical texts of the answers on the units that are measured, or places; places: unit and system ->
    which of them, empty where they are texts. how: seed and replicates of the bootstrap.
    """

    task: Task
    labels: list[str]
    places: Mapping[tuple[int, str], str]
    measured: Container[int]
    distances: Mapping[str, pair_intervals.Distance]
    how: Mapping[str, int]
    of_people: bool
    asked_first: int | None
    pseudonyms: Mapping[int, str]


def report(
    task: Task,
    *,
    gold: Mapping[str, str] | None = None,
    repeats: bool = False,
    ordinal: bool = False,
    replicates: int = coefficients.REPLICATES,
    found: Fitted | None = None,
    of_people: bool = True,
) -> dict[str, Any]:
    """gold: item -> true label, or several separated by spaces, for any of the items. repeats: also count one person's
    further answers on one unit, which were imported for analysis only. ordinal: treat the labels as ordered grades,
    even if the kind does not say so. found: the answers, if they have been read. of_people: whether each annotator is
    compared with the rest; if not, against_rest is empty. UnknownLabel if a true label is not one of the task's,
    UnorderedLabels if nobody has said the order of grades.
    """
    found = found or fitted(task, repeats=repeats)
    said = found.said
    options = _options(task, said, found.labels, ordinal=ordinal, replicates=replicates, of_people=of_people)
    truth = None if gold is None else against(task, said, found.labels, found.model, gold)
    whole = _section(said, found, truth, options)
    languages = {}
    for code, group in groupby(said, attrgetter("language")):
        if code:
            part = list(group)
            languages[code] = whole if len(part) == len(said) else _section(part, found, truth, options)
    if gold is not None:
        whole = whole | {"gold": whole["gold"] | {"unknown": len(gold.keys() - {one.key for one in said})}}
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


def nominal(task: Task, *, without: Container[int] = ()) -> dict[str, Any]:
    """The nominal alpha of all answers, a MEASURE, as `report` has it; without: units whose answers do not count."""
    said = [one for one in answers(task) if one.unit not in without]
    options = _options(task, said, values_of(task, said), ordinal=False, replicates=coefficients.REPLICATES)
    return _alphas(_table(said, options).counts(), options)["nominal"]


# --- what is made of the answers


def _options(
    task: Task, said: list[Said], labels: list[str], *, ordinal: bool, replicates: int, of_people: bool = False
) -> _Options:
    """labels: the texts that are told apart in all answers."""
    form, by_key = task.kind.form, {one.key: one.unit for one in said}
    measured = {one.unit for one in said}
    if form.several and len(by_key) > MOST_UNITS:
        keys = drawn(by_key, MOST_UNITS, lots=by_seed(task.draw.seed), purpose="agreement")
        measured = {by_key[key] for key in keys}
    names, places = next(filter(None, (each.places(task) for each in task.kind.quality_controls)), ((), {}))
    if form.several:
        labels = values_of(task, (one for one in said if one.unit in measured))
    elif places:
        labels = list(names)
    return _Options(
        task=task,
        labels=labels,
        places=places,
        measured=measured,
        distances=_distances(task, labels, ordinal),
        how={"seed": int(lot(task.draw.seed, "agreement", task.name)[:12], 16), "replicates": replicates},
        of_people=of_people,
        asked_first=at_first(task.redundancy, stop_early=True) if task.stop_early else None,
        pseudonyms=dict(Annotator.objects.values_list("pk", "pseudonym")),
    )


def _distances(task: Task, labels: list[str], ordinal: bool) -> dict[str, pair_intervals.Distance]:
    """ordinal: the labels are grades although the kind's form does not say so."""
    found = task.kind.form.distances(labels)
    if not ordinal:
        return found
    # Words of a file whose order nobody has said stand by the alphabet.
    drawn = task.draw.parameters
    in_order = drawn.get("labels_in_order", "imported" not in drawn) or all(map(str.isdecimal, labels))
    if not ("ordinal" in found or in_order):
        raise UnorderedLabels(
            f"The labels of {task.name} are words, and nobody has said which order they have: {', '.join(labels)}. "
            'Import them under another name with --labels, grades best first, such as --labels "good fair bad".'
        )
    return {**found, "ordinal": coefficients.ordinal}


def _section(said: list[Said], found: Fitted, truth: Measuring | None, options: _Options) -> dict[str, Any]:
    table, model = _table(said, options), found.model
    counts, sizes = table.counts(), Counter(one.unit for one in _first(said, options.asked_first))
    few = coefficients.few_others(counts) if model else None
    return {
        "units": len({one.unit for one in said}),
        "units_of_two": sum(number > 1 for number in sizes.values()),
        "annotators": len({one.annotator for one in said}),
        "judgments": len(said),
        "observed": coefficients.observed_agreement(counts, **options.how).as_dict(),
        "ordinal": None,
        **_alphas(counts, options),
        "ac1": coefficients.ac1(counts, **options.how).as_dict() if model else None,
        "few_others": {"label": options.labels[few[0]], "others": few[1]} if few else None,
        "by_label": _by_label(counts, options),
        "against_rest": _against_rest(table, options) if options.of_people else [],
        "dawid_skene": _opinions(said, model, found.labels) if model else None,
        "gold": truth(said) if truth else None,
    }


def _table(said: list[Said], options: _Options) -> Answers:
    """The answers that are measured."""
    counted = (one for one in _first(said, options.asked_first) if one.unit in options.measured)
    placed = (replace(one, label=options.places.get((one.unit, one.label), one.label)) for one in counted)
    return tabled(placed if options.places else counted, options.labels)


def _alphas(counts: Ints, options: _Options) -> dict[str, dict[str, Any]]:
    return {
        name: coefficients.alpha(counts, distance, **options.how).as_dict()
        for name, distance in options.distances.items()
    }


def _first(said: list[Said], number: int | None) -> Iterable[Said]:
    """Each unit's first answers, at most that many."""
    for _, group in groupby(said, attrgetter("unit")):
        yield from islice(group, number)


def _by_label(counts: Ints, options: _Options) -> list[dict[str, Any]]:
    kind = options.task.kind
    several, sets = kind.form.several, [set(kind.form.facets(text)) for text in options.labels]
    labels = _frequent(counts, sets) if several else options.labels
    rows = [
        {
            "label": labels[one.label],
            "name": kind.called_in(ENGLISH, labels[one.label]) if several else labels[one.label],
            "units": one.units,
            "alpha": one.alpha.as_dict(),
        }
        for one in coefficients.by_label(counts, coefficients.having(sets, labels), **options.how)
    ]
    return sorted(rows, key=lambda row: np.inf if row["alpha"]["value"] is None else row["alpha"]["value"])


def _frequent(counts: Ints, sets: list[set[str]]) -> list[str]:
    """MOST_LABELS of the labels of the sets: those on the most units of two answers or more, then by id."""
    units: Counter[str] = Counter()
    for row in counts[counts.sum(axis=1) > 1]:
        units.update(set().union(*(sets[place] for place in np.flatnonzero(row))))
    return sorted(units, key=lambda label: (-units[label], label))[:MOST_LABELS]


def _against_rest(table: Answers, options: _Options) -> list[dict[str, Any]]:
    *_, distance = options.distances.values()
    unlike = options.task.kind.form.unlike(options.labels)
    each = coefficients.against_rest(table, distance, unlike, **options.how)
    rows = [
        {
            "annotator": one.annotator,
            "pseudonym": options.pseudonyms[one.annotator],
            "units": one.units,
            "agreement": one.agreement.as_dict(),
            "kappa": one.kappa.as_dict(),
        }
        for one in each
        if one.units
    ]
    return sorted(rows, key=lambda row: (row["agreement"]["value"], row["pseudonym"]))


def _opinions(said: list[Said], model: Model, labels: list[str]) -> dict[str, Any]:
    """What the model says: of the units for which it names a label that does not have the most votes, the surest first;
    and how many tie.
    """
    table = tabled(said, labels)
    ends = [model.ends[code] for code in dict.fromkeys(one.language for one in said)]
    counts, posterior, by_unit = table.counts(), posterior_of(model, table), {one.unit: one for one in said}
    voted, modelled = winners(counts), winners(posterior)

    def named(row: Iterable[bool]) -> list[str]:
        return [label for label, wins in zip(table.labels, row, strict=True) if wins]

    differs = [
        {
            "unit": table.units[place],
            "item": by_unit[table.units[place]].key,
            "language": by_unit[table.units[place]].language,
            "votes": {label: int(n) for label, n in zip(table.labels, counts[place], strict=True) if n},
            "majority": named(voted[place]),
            "dawid_skene": named(modelled[place]),
            "posterior": float(posterior[place].max()),
        }
        for place in np.flatnonzero((modelled & ~voted).any(axis=1))
    ]
    return {
        "rounds": max((rounds for rounds, _ in ends), default=0),
        "converged": all(converged for _, converged in ends),
        "tied": int((voted.sum(axis=1) > 1).sum()),
        "differs": sorted(differs, key=lambda unit: -unit["posterior"]),
    }
