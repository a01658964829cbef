"""The splits and balanced sets of an exported set, with the splits that are far from their requested share.

`core/draws/splits.py` draws the splits. This module passes it the rows that are in the set.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from django.db.models import Count

from annotate.core import stages
from annotate.core.draws.balanced_sets import Document, Sizes, balanced, place_of
from annotate.core.draws.splits import DEV, FAR, SPLITS, TEST, TRAIN, TRAINED_IN, Miss, Row, SplitError, misses, split
from annotate.goldsets.unit_rows import Units
from annotate.kinds.balanced_draw import CHANCES, FRAME, IDS, NEEDED, SIZES
from annotate.kinds.interface_language import label_name
from annotate.models import Task
from annotate.reports.numbers import percent
from corpora.core.languages import UND

# Dataset cards call these splits by a different name.
KNOWN_AS = {"dev": "validation"}


@dataclass(frozen=True)
class Splitting:
    """The splits of a set.

    of: mapping from the id of each row in the set to its split.
    off: mapping from language to a sentence that names the splits far from their requested share, and the reason.
    """

    of: Mapping[str, str]
    off: Mapping[str, str]


def split_set(units: Iterable[Units], apart: Sequence[str], shares: Mapping[str, Fraction], seed: str) -> Splitting:
    """Draw the splits at random.

    units: units in the set.
    apart: fields whose equal values must be in the same split.

    Raise SplitError if some rows cannot be assigned to a split.
    """
    rows = [Row(key, language, [fields[field] for field in apart]) for key, language, fields in _records(units)]
    chosen = split(rows, shares, seed=seed)
    found = groupby(misses(rows, shares, chosen), attrgetter("language"))
    return Splitting(chosen, {language: _off(language, list(missed)) for language, missed in found})


def split_by_field(units: Iterable[Units], field: str) -> Splitting:
    """Read the splits from a field of the records. Raise SplitError if a row does not name a valid split."""
    found = {key: fields[field] for key, _, fields in _records(units)}
    for key, said in found.items():
        if said not in SPLITS:
            told = f"is {said!r}" if said else "is empty"
            raise SplitError(
                f"The field {field} of {key} {told}, and must be {', '.join(SPLITS[:-1])} or {SPLITS[-1]}; import the "
                f"corpus with its splits, or have them drawn by lot with --splits."
            )
    return Splitting(found, {})


def _records(some: Iterable[Units]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield the id, language and fields of each record."""
    for units in some:
        keys, languages, fields = (units.own[f"item__{name}"].to_pylist() for name in ("key", "language", "fields"))
        yield from zip(keys, languages, map(json.loads, fields), strict=True)


def _off(language: str, found: list[Miss]) -> str:
    """Return a sentence that names the splits far from their share in a language, and the reason.

    For example: "In English, train has 40% of the records and not 80%: ..."
    """
    told = ", ".join(
        f"{miss.split} has {percent(miss.got)} {'' if place else 'of the records '}and not {percent(miss.wanted)}"
        for place, miss in enumerate(found)
    )
    first, why = found[0], []
    if first.bound:
        untrained = f", and only {TRAINED_IN} is trained on" if language == TRAINED_IN else ""
        why.append(f"{first.bound:,} of {first.rows:,} belong together with records in other languages{untrained}")
    if first.largest > max(1, FAR * first.rows):
        why.append(f"{first.largest:,} of {first.rows:,} belong together, and are in one split")
    words = "; ".join(why) or f"the set has only {first.rows:,} there"
    where = "Without a language" if language == UND else f"In {label_name(language)}"
    return f"{where}, {told}: {words}."


# --- The balanced sets of a task, either as drawn or built from the documents that annotators have labelled


class Balancing(NamedTuple):
    """The balanced sets of a task.

    sets: ids in each set, by language and name of the set; empty if the design is not balanced.
    short: sets that are smaller than requested, by language.
    chances: probability of being drawn, by language and class (declared or predicted); empty if unknown.
    taken_out: by language, number of drawn documents that are in no set because annotators chose none of the classes
        for them, or could not agree.
    by_people: whether annotators decide the classes.
    """

    sets: dict[str, dict[str, list[str]]]
    short: dict[str, list[dict[str, Any]]]
    chances: dict[tuple[str, str], float]
    taken_out: dict[str, int]
    by_people: bool = False


def balancing_of(task: Task, without: Collection[int]) -> Balancing:
    """Return the balanced sets of a task.

    without: units to exclude, because somebody could have known their labels.
    """
    drawn = {draw.language: draw.parameters for draw in task.draws.order_by("language", "pk")}
    if any(NEEDED in parameters for parameters in drawn.values()):
        return _labelled(task, drawn, without)
    kept, waiting = _of_a_class(task, without)
    found = Balancing({}, {}, {}, {})
    for language, parameters in drawn.items():
        # Sort the names, because the order of keys in JSON depends on the database.
        names = sorted(parameters[IDS], key=place_of)
        ids = {name: [key for key in parameters[IDS][name] if key in kept] for name in names}
        chosen, left = ({key for each in sets.values() for key in each} for sets in (parameters[IDS], ids))
        found.sets[language], found.short[language] = ids, parameters["short"]
        found.taken_out[language] = len(chosen) - len(left) - waiting[language]
        found.chances.update({(language, label): chance for label, chance in parameters[CHANCES].items()})
    return found


def _of_a_class(task: Task, without: Collection[int]) -> tuple[set[str], Counter[str]]:
    """Return the ids of documents labelled with one of the classes, and each language's number of unfinished documents.

    A copy has the label and stage of its original.
    """
    units = task.units.exported().exclude(pk__in=without).order_by()
    classes, kept, waiting = set(task.labels) - task.kind.answers.keys(), set[str](), Counter[str]()
    of_unit, of_original = ("label", "stage"), ("copy_of__label", "copy_of__stage")
    for key, language, *told in units.values_list("item__key", "item__language", *of_unit, *of_original):
        label, stage = told[2:] if told[3] else told[:2]
        if label in classes:
            kept.add(key)
        waiting[language] += stage not in stages.FINISHED
    return kept, waiting


def _labelled(task: Task, drawn: Mapping[str, dict[str, Any]], without: Collection[int]) -> Balancing:
    """Build the sets from labelled documents, in the order in which they were drawn.

    While the task is in progress, any set may be smaller than requested.
    """
    parameters = next(iter(drawn.values()))
    classes, (test, dev, train) = parameters["classes"], parameters[SIZES]
    sizes = Sizes(test, dev, tuple(train))
    units = task.units.exported().exclude(pk__in=without)
    done = units.filter(stage=stages.LABELLED, label__in=classes).values_list("item__key", "item__language", "label")
    documents = [Document(key, language, label) for key, language, label in done.order_by("pk")]
    made = balanced(documents, classes, sizes, seed=task.seed, fill=(TEST, DEV, TRAIN))
    empty: dict[str, list[str]] = {name: [] for name, size in sizes.all().items() if size}
    drawn_of = units.order_by().values_list("item__language", "predicted").annotate(Count("pk"))
    taken = Counter({(language, label): number for language, label, number in drawn_of})
    return Balancing(
        {language: made.sets.get(language, empty) for language in drawn},
        {language: [each._asdict() for each in made.short if each.language == language] for language in drawn},
        {
            (language, label): taken[language, label] / of
            for language, told in drawn.items()
            for label, of in told[FRAME].items()
            if of
        },
        dict.fromkeys(drawn, 0),
        by_people=True,
    )
