"""How far the annotators of a task agree, and what Dawid and Skene's model makes of their answers. Reads only.

The statistics are in core/; this module decides whose answers count: those that stand, on units that may be exported.
Answers to hidden gold answers do not count, nor do those of adjudicators, who see what others said. Of the posts that
detectors label, only the overlap counts: posts that two or more people have read. Where an answer is several labels
(`several` of kinds/forms/), there are no models. Where people compare two of several systems, agreement is over the
places of the two by name (controls/pair_order.py), as nobody can prefer a system that they are not shown.
"""

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby, islice
from operator import attrgetter
from sys import intern
from typing import Any

import numpy as np

from annotate.core.aggregation import annotator_models
from annotate.core.aggregation.answer_table import Answers, Floats, Ints, winners
from annotate.core.aggregation.majority import at_first
from annotate.core.agreement import coefficients, label_sets, pair_intervals
from annotate.core.draws.hash_order import by_seed, drawn, lot
from annotate.kinds.kind import ENGLISH
from annotate.models import Annotator, Judgment, Task, Transition
from annotate.quality.modelled import Model, Said, modelled, posterior_of, tabled
from annotate.quality.true_labels import Measuring, against

# Where answers are several labels, nearly each is another set, and each two of them have a distance. So many units are
# measured, by lot, if there are more: with three answers each there are 1,500 sets, and all that is made of their
# distances took 0.4 GB and, with 200 replicates, about 10 seconds; of 1,000 units it was 1.3 GB and a minute.
MOST_UNITS = 500
# Of single labels out of thousands so many are told, those that are on the most units.
MOST_LABELS = 20


class UnorderedLabels(ValueError):
    """Labels that are taken for grades and have no order; the sentence names them."""


@dataclass(frozen=True)
class Fitted:
    """The answers of a task that count, the canonical texts that are told apart, and Dawid and Skene's model of the
    answers; None where an answer is several labels.
    """

    said: list[Said]
    labels: list[str]
    model: Model | None


@dataclass(frozen=True)
class _Options:
    """labels: the canonical texts of the answers on the units that are measured, or places; places: unit and system ->
    which of them, empty where they are texts. unlike: as in kinds/forms/.
    """

    task: Task
    labels: list[str]
    places: Mapping[tuple[int, str], str]
    measured: Container[int]
    distances: Mapping[str, pair_intervals.Distance]
    unlike: Floats
    seed: int
    replicates: int
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
    """Everything about the agreement of a task that can be written as JSON.

    gold: item -> true label, or several separated by spaces, for any of the items. repeats: also count one person's
    further answers on one unit, which were imported for analysis only. ordinal: treat the labels as ordered grades,
    even if the kind does not say so. found: the answers, if they have been read. of_people: whether each annotator is
    held against the rest; if not, against_rest is empty. UnknownLabel if a true label is not one of the task's,
    UnorderedLabels if nobody has said the order of grades.

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

    Agreement counts, for each unit, the answers that were asked for at first. If early answers may settle a unit,
    later ones are asked for because the first differ, and two people who agree would weigh too little. If no answers
    are asked for later, all of them count. MEASUREs are of MOST_UNITS by lot where an answer is several labels.
    """
    found = found or fitted(task, repeats=repeats)
    said = found.said
    options = _options(task, said, found.labels, ordinal=ordinal, replicates=replicates, of_people=of_people)
    truth = None if gold is None else against(task, said, found.labels, found.model, gold)
    whole = _section(said, found, truth, options)
    by_language = {code: list(group) for code, group in groupby(said, attrgetter("language"))}
    by_language.pop("", None)
    languages = {
        code: whole if len(group) == len(said) else _section(group, found, truth, options)
        for code, group in by_language.items()
    }
    if gold is not None:
        keys = {one.key for one in said}
        whole = whole | {"gold": whole["gold"] | {"unknown": sum(key not in keys for key in gold)}}
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


def fitted(task: Task, *, repeats: bool = False, without: Container[int] = ()) -> Fitted:
    """without: units whose answers do not count."""
    said = [one for one in answers(task, repeats=repeats) if one.unit not in without]
    labels = values_of(task, said)
    several = task.kind.form.several
    return Fitted(said, labels, None if several else modelled(task, said, labels, annotator_models.fit_dawid_skene))


def values_of(task: Task, said: Iterable[Said] = ()) -> list[str]:
    """The canonical texts that are told apart; for tasks that ask about one language at a time: yes, no and und."""
    return task.kind.form.values(task.kind.statistics.compared(task), (one.label for one in said))


def second_opinions(found: Fitted) -> dict[int, dict[str, float]]:
    """Unit -> label -> its posterior by Dawid and Skene's model, for every unit with an answer; labels with 0 are left
    out. None at all where there is no model.

    Tasks of records have one model for each language, as people are qualified by language; others have one in all.
    """
    if found.model is None:
        return {}
    return {
        unit: {label: float(share) for label, share in zip(found.labels, shares, strict=True) if share}
        for unit, shares in zip(found.model.rows, found.model.posterior, strict=True)
    }


def vote_shares(found: Fitted) -> dict[int, dict[str, float]]:
    """Unit -> label -> its share of the unit's answers, for every unit with an answer; labels with 0 are left out."""
    table = tabled(found.said, found.labels)
    counts = table.counts()
    return {
        unit: {label: float(share) for label, share in zip(found.labels, shares, strict=True) if share}
        for unit, shares in zip(table.units, counts / counts.sum(axis=1, keepdims=True), strict=True)
    }


def pairs_that_agree(found: Fitted) -> dict[int, float]:
    """Unit -> the share of the pairs of its answers that are the same, for units with two answers or more."""
    table = tabled(found.said, found.labels)
    counts = table.counts()
    number = counts.sum(axis=1)
    same = (counts * (counts - 1)).sum(axis=1) / np.maximum(1, number * (number - 1))
    return {unit: float(share) for unit, share, n in zip(table.units, same, number, strict=True) if n > 1}


def answers(task: Task, *, repeats: bool = False) -> list[Said]:
    """The answers that count, ordered by language, then by unit, then as they were given."""
    kinds = [Judgment.ANSWER, *([Judgment.REPEAT] if repeats else [])]
    live = Judgment.objects.live().of_work().filter(unit__task=task, unit__known_answer="", kind__in=kinds)
    # A second person is asked there because of what the first said, so these tell nothing of how far people agree.
    live = live.exclude(unit__in=Transition.objects.filter(unit__task=task, event="named").order_by().values("unit"))
    # If records declare no language, the queue they wait in says nothing of it.
    paths = ("unit__item__language",) if task.languages else task.kind.statistics.spoken_paths
    rows = live.order_by("unit_id", "answered_at", "pk").values_list(
        "unit_id", "annotator_id", "label", "unit__asked", "unit__item__key", *paths
    )
    said, compared = [], dict[tuple[str, str], str]()
    for unit, annotator, label, asked, key, *languages in rows.iterator():
        if (asked, label) not in compared:
            compared[asked, label] = task.kind.statistics.compared_as(asked, label)
        # Of a million answers each text would else be kept as often as it was said.
        language, text = intern(next(filter(None, languages), "")), compared[asked, label]
        if said and said[-1].unit == unit:
            unit, key = said[-1].unit, said[-1].key
        said.append(Said(unit, annotator, text, language, key, intern(asked)))
    if not task.kind.statistics.counts_single:
        many = {unit for unit, group in groupby(said, attrgetter("unit")) if len(list(group)) > 1}
        said = [one for one in said if one.unit in many]
    return sorted(said, key=attrgetter("language"))  # stable: units stay together


# --- what is made of the answers


def _options(
    task: Task, said: list[Said], labels: list[str], *, ordinal: bool, replicates: int, of_people: bool = False
) -> _Options:
    """labels: the texts that are told apart in all answers."""
    form, measured = task.kind.form, _measured(task, said)
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
        unlike=form.unlike(labels),
        seed=int(lot(task.draw.seed, "agreement", task.name)[:12], 16),
        replicates=replicates,
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


def _measured(task: Task, said: list[Said]) -> Collection[int]:
    """The units by which agreement is measured: all, but for MOST_UNITS."""
    by_key = {one.key: one.unit for one in said}
    if not task.kind.form.several or len(by_key) <= MOST_UNITS:
        return {one.unit for one in said}
    return {by_key[key] for key in drawn(by_key, MOST_UNITS, lots=by_seed(task.draw.seed), purpose="agreement")}


def _section(said: list[Said], found: Fitted, truth: Measuring | None, options: _Options) -> dict[str, Any]:
    table, model = _table(said, options), found.model
    counts = table.counts()
    how = {"seed": options.seed, "replicates": options.replicates}
    return {
        "units": len({one.unit for one in said}),
        "units_of_two": sum(
            number > 1 for number in Counter(one.unit for one in _first(said, options.asked_first)).values()
        ),
        "annotators": len({one.annotator for one in said}),
        "judgments": len(said),
        "observed": coefficients.observed_agreement(counts, **how).as_dict(),
        "ordinal": None,
        **_alphas(counts, options),
        "ac1": coefficients.ac1(counts, **how).as_dict() if model else None,
        "few_others": _few_others(counts, options.labels) if model else None,
        "by_label": _by_label(counts, options),
        "against_rest": _against_rest(table, options) if options.of_people else [],
        "dawid_skene": _modelled(said, model, found.labels) if model else None,
        "gold": truth(said) if truth else None,
    }


def _table(said: list[Said], options: _Options) -> Answers:
    """The answers that are measured."""
    counted = (one for one in _first(said, options.asked_first) if one.unit in options.measured)
    placed = (replace(one, label=options.places.get((one.unit, one.label), one.label)) for one in counted)
    return tabled(placed if options.places else counted, options.labels)


def _alphas(counts: Ints, options: _Options) -> dict[str, dict[str, Any]]:
    return {
        name: coefficients.alpha(counts, each, seed=options.seed, replicates=options.replicates).as_dict()
        for name, each in options.distances.items()
    }


def _first(said: list[Said], number: int | None) -> Iterable[Said]:
    """Each unit's first answers, at most that many."""
    for _, group in groupby(said, attrgetter("unit")):
        yield from islice(group, number)


def _few_others(counts: Ints, labels: list[str]) -> dict[str, Any] | None:
    found = coefficients.few_others(counts)
    return {"label": labels[found[0]], "others": found[1]} if found else None


def _by_label(counts: Ints, options: _Options) -> list[dict[str, Any]]:
    kind = options.task.kind
    sets = [set(kind.form.facets(text)) for text in options.labels]
    labels = _frequent(counts, sets) if kind.form.several else options.labels
    each = coefficients.by_label(
        counts, label_sets.having(sets, labels), seed=options.seed, replicates=options.replicates
    )
    rows = [
        {
            "label": labels[one.label],
            "name": kind.called_in(ENGLISH, labels[one.label]) if kind.form.several else labels[one.label],
            "units": one.units,
            "alpha": one.alpha.as_dict(),
        }
        for one in each
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
    each = coefficients.against_rest(table, distance, options.unlike, seed=options.seed, replicates=options.replicates)
    shared = [one for one in each if one.units]
    return [
        {
            "annotator": one.annotator,
            "pseudonym": options.pseudonyms[one.annotator],
            "units": one.units,
            "agreement": one.agreement.as_dict(),
            "kappa": one.kappa.as_dict(),
        }
        for one in sorted(shared, key=lambda one: (one.agreement.value, options.pseudonyms[one.annotator]))
    ]


def _modelled(said: list[Said], model: Model, labels: list[str]) -> dict[str, Any]:
    table = tabled(said, labels)
    ends = [model.ends[code] for code in dict.fromkeys(one.language for one in said)]
    return {
        "rounds": max((rounds for rounds, _ in ends), default=0),
        "converged": all(converged for _, converged in ends),
        **_differences(said, table, posterior_of(model, table)),
    }


def _differences(said: list[Said], table: Answers, posterior: Floats) -> dict[str, Any]:
    """The units for which the model names a label that does not have the most votes, the surest first; and how
    many tie.
    """
    counts = table.counts()
    voted, modelled = winners(counts), winners(posterior)
    by_unit = {one.unit: one for one in said}

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
    differs.sort(key=lambda unit: -unit["posterior"])
    return {"tied": int((voted.sum(axis=1) > 1).sum()), "differs": differs}
