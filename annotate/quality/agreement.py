"""How far the annotators of a task agree, and what Dawid and Skene's model makes of their answers. Reads only.

The statistics are in core/; this module decides whose answers count: those that stand, on units that may be exported.
Answers to hidden gold answers do not count, nor do those of adjudicators, who see what others said. Of the posts that
detectors label, only the overlap counts: posts that two or more people have read.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from operator import attrgetter
from typing import Any

import numpy as np

from annotate.core import agreement, dawid_skene, pairs
from annotate.core.aggregation import at_first
from annotate.core.answers import Answers, Floats, Ints, winners
from annotate.core.lottery import lot
from annotate.models import Annotator, Judgment, Task
from annotate.quality.modelled import MODELS, Model, Said, Truth, accuracies, modelled, posterior_of, tabled


class UnorderedLabels(ValueError):
    """Labels that are taken for grades and have no order; the sentence names them."""


class UnknownLabel(ValueError):
    """A true label that is not one of the task's labels; the sentence names it."""


@dataclass(frozen=True)
class Fitted:
    """The answers of a task that count, the labels that may be given, and Dawid and Skene's model of the answers."""

    said: list[Said]
    labels: list[str]
    model: Model


@dataclass(frozen=True)
class _Options:
    labels: list[str]
    distances: Mapping[str, pairs.Distance]
    seed: int
    replicates: int
    asked_first: int | None
    pseudonyms: Mapping[int, str]


def report(
    task: Task,
    *,
    gold: Mapping[str, str] | None = None,
    repeats: bool = False,
    ordinal: bool = False,
    replicates: int = agreement.REPLICATES,
    found: Fitted | None = None,
) -> dict[str, Any]:
    """Everything about the agreement of a task that can be written as JSON.

    gold: item -> true label, for any of the items. repeats: also count one person's further answers on one unit, which
    were imported for analysis only. ordinal: treat the labels as ordered grades, even if the kind does not say so.
    found: the answers, if they have been read. UnknownLabel if a true label is not one of the task's, UnorderedLabels
    if nobody has said the order of grades.

        {"task", "kind", "repeats": bool, "replicates", "labels": [...], "ordered": bool,
         "all": SECTION, "languages": {code: SECTION}}         no languages where it is not known which the units are in

    SECTION, of all answers or of those in one language:

        {"units", "units_of_two": those with two answers or more, "annotators", "judgments": counts,
         "observed": MEASURE, "nominal": MEASURE, "ordinal": MEASURE or None if the labels are no grades,
         "ac1": MEASURE, "few_others": None, or {"label": the most frequent one, "others": units with any other}, if
                                                               these are so few that alpha says little,
         "by_label": [{"label", "units": with it, "alpha": MEASURE}, ...],      the label with least agreement first
         "against_rest": [{"annotator": pk, "pseudonym", "units": shared with others, "agreement": MEASURE,
                           "kappa": MEASURE}, ...],            the one who agrees least first
         "dawid_skene": {"rounds", "converged", "tied": units whose votes tie,
                         "differs": [{"unit": pk, "item", "language", "votes": {label: n}, "majority": [label, ...],
                                      "dawid_skene": [label, ...], "posterior"}, ...]},
         "gold": None, or {"units": with a true label, "unknown": true labels of no unit (in "all" alone),
                           "majority": ESTIMATE, and one for each of MODELS,
                           "sure": mean posterior of the labels that "dawid_skene" finds likeliest, or None}}

    MEASURE: {"value", "low", "high", "units"}, any but units None if it cannot be said (core/agreement.py).
    ESTIMATE: {"value", "low", "high", "hits", "count"}, Jeffreys' interval, ties counted by their shares.

    Agreement counts, for each unit, the answers that were asked for at first. If early answers may settle a unit,
    later ones are asked for because the first differ, and two people who agree would weigh too little. If no answers
    are asked for later, all of them count.
    """
    found = found or fitted(task, repeats=repeats)
    said, labels, model = found.said, found.labels, found.model
    options = _Options(
        labels=labels,
        distances=_distances(task, labels, ordinal),
        seed=int(lot(task.draw.seed, "agreement", task.name)[:12], 16),
        replicates=replicates,
        asked_first=at_first(task.redundancy, stop_early=task.stop_early)
        if task.stop_early or task.extra_answers
        else None,
        pseudonyms=dict(Annotator.objects.values_list("pk", "pseudonym")),
    )
    truth = None
    if gold is not None:
        others = {name: modelled(task, said, labels, fit) for name, fit in MODELS.items() if name != "dawid_skene"}
        truth = Truth(_truth(said, gold, labels, task.kind.compared_as), {"dawid_skene": model, **others})
    whole = _section(said, model, truth, options)
    if gold is not None:
        keys = {one.key for one in said}
        whole["gold"]["unknown"] = sum(key not in keys for key in gold)
    by_language = {code: list(group) for code, group in groupby(said, attrgetter("language"))}
    by_language.pop("", None)
    return {
        "task": task.name,
        "kind": task.kind_slug,
        "repeats": repeats,
        "replicates": replicates,
        "labels": labels,
        "ordered": "ordinal" in options.distances,
        "all": whole,
        "languages": {code: _section(group, model, truth, options) for code, group in by_language.items()},
    }


def fitted(task: Task, *, repeats: bool = False, without: Container[int] = ()) -> Fitted:
    """without: units whose answers do not count."""
    said = [one for one in answers(task, repeats=repeats) if one.unit not in without]
    labels = values_of(task, said)
    return Fitted(said, labels, modelled(task, said, labels, dawid_skene.fit))


def values_of(task: Task, said: Iterable[Said] = ()) -> list[str]:
    """The canonical texts that are told apart; for tasks that ask about one language at a time: yes, no and und."""
    return task.kind.form.values(task.kind.compared(task), (one.label for one in said))


def second_opinions(found: Fitted) -> dict[int, dict[str, float]]:
    """Unit -> label -> its posterior by Dawid and Skene's model, for every unit with an answer; labels with 0 are left
    out.

    Tasks of records have one model for each language, as people are qualified by language; others have one in all.
    """
    return {
        unit: {label: float(share) for label, share in zip(found.labels, shares, strict=True) if share}
        for unit, shares in found.model.posterior.items()
    }


def vote_shares(found: Fitted) -> dict[int, dict[str, float]]:
    """Unit -> label -> its share of the unit's answers, for every unit with an answer; labels with 0 are left out."""
    table = tabled(found.said, found.labels)
    counts = table.counts()
    return {
        unit: {label: float(share) for label, share in zip(found.labels, shares, strict=True) if share}
        for unit, shares in zip(table.units, counts / counts.sum(axis=1, keepdims=True), strict=True)
    }


def answers(task: Task, *, repeats: bool = False) -> list[Said]:
    """The answers that count, ordered by language, then by unit, then as they were given."""
    kinds = [Judgment.ANSWER, *([Judgment.REPEAT] if repeats else [])]
    live = Judgment.objects.live().of_work().filter(unit__task=task, unit__known_answer="", kind__in=kinds)
    # If records declare no language, the queue they wait in says nothing of it.
    paths = ("unit__item__language",) if task.languages else task.kind.spoken_paths
    rows = live.order_by("unit_id", "answered_at", "pk").values_list(
        "unit_id", "annotator_id", "label", "unit__asked", "unit__item__key", *paths
    )
    said = []
    for unit, annotator, label, asked, key, *languages in rows.iterator():
        language = next(filter(None, languages), "")
        said.append(Said(unit, annotator, task.kind.compared_as(asked, label), language, key, asked))
    if not task.kind.counts_single:
        many = {unit for unit, group in groupby(said, attrgetter("unit")) if len(list(group)) > 1}
        said = [one for one in said if one.unit in many]
    return sorted(said, key=attrgetter("language"))  # stable: units stay together


# --- what is made of the answers


def _distances(task: Task, labels: list[str], ordinal: bool) -> dict[str, pairs.Distance]:
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
    return {**found, "ordinal": agreement.ordinal}


def _truth(
    said: list[Said], gold: Mapping[str, str], labels: list[str], compared_as: Callable[[str, str], str]
) -> dict[int, int]:
    """Unit -> the place of its true label, for units that have one."""
    places = {label: place for place, label in enumerate(labels)}
    truth = {}
    for one in said:
        if one.key in gold:
            label = compared_as(one.asked, gold[one.key])
            if label not in places:
                raise UnknownLabel(
                    f"The true label of {one.key} is {label!r}, which is not one of the task's labels: "
                    f"{', '.join(labels)}."
                )
            truth[one.unit] = places[label]
    return truth


def _section(said: list[Said], model: Model, truth: Truth | None, options: _Options) -> dict[str, Any]:
    table = tabled(said, options.labels)
    first = tabled(_first(said, options.asked_first), options.labels)
    counts = first.counts()
    drawn = {"seed": options.seed, "replicates": options.replicates}
    ends = [model.ends[code] for code in dict.fromkeys(one.language for one in said)]
    return {
        "units": len(table.units),
        "units_of_two": int((counts.sum(axis=1) > 1).sum()),
        "annotators": len(table.annotators),
        "judgments": len(table.unit),
        "observed": agreement.observed_agreement(counts, **drawn).as_dict(),
        "nominal": agreement.alpha(counts, **drawn).as_dict(),
        "ordinal": agreement.alpha(counts, options.distances["ordinal"], **drawn).as_dict()
        if "ordinal" in options.distances
        else None,
        "ac1": agreement.ac1(counts, **drawn).as_dict(),
        "few_others": _few_others(counts, options.labels),
        "by_label": _by_label(counts, options),
        "against_rest": _against_rest(first, options),
        "dawid_skene": {
            "rounds": max((rounds for rounds, _ in ends), default=0),
            "converged": all(converged for _, converged in ends),
            **_differences(said, table, posterior_of(model, table)),
        },
        "gold": None if truth is None else accuracies(table, truth),
    }


def _first(said: list[Said], number: int | None) -> Iterable[Said]:
    """Each unit's first answers, at most that many."""
    for _, group in groupby(said, attrgetter("unit")):
        yield from islice(group, number)


def _few_others(counts: Ints, labels: list[str]) -> dict[str, Any] | None:
    found = agreement.few_others(counts)
    return {"label": labels[found[0]], "others": found[1]} if found else None


def _by_label(counts: Ints, options: _Options) -> list[dict[str, Any]]:
    each = agreement.by_label(counts, seed=options.seed, replicates=options.replicates)
    rows = [{"label": options.labels[one.label], "units": one.units, "alpha": one.alpha.as_dict()} for one in each]
    return sorted(rows, key=lambda row: np.inf if row["alpha"]["value"] is None else row["alpha"]["value"])


def _against_rest(table: Answers, options: _Options) -> list[dict[str, Any]]:
    *_, distance = options.distances.values()
    each = agreement.against_rest(table, distance, seed=options.seed, replicates=options.replicates)
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
