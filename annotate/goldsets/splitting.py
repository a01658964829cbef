"""Which split each row of an exported set is in, and which splits are far from their share.

core/splits.py draws the splits; this module decides over which rows: those that are in the set.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from operator import attrgetter

from annotate.core.splits import FAR, SPLITS, TRAINED_IN, Miss, Row, SplitError, misses, split
from annotate.goldsets.left_out import LeftOut
from annotate.goldsets.records import Units
from annotate.kinds.labels import label_name
from annotate.reports.numbers import percent
from corpora.core.languages import UND

# The names that readers of cards know.
KNOWN_AS = {"dev": "validation"}


@dataclass(frozen=True)
class Splitting:
    """of: id -> split, for the rows in the set. off: language -> a sentence that says which of its splits are far from
    their share, and why.
    """

    of: Mapping[str, str]
    off: Mapping[str, str]


def split_set(units: Iterable[Units], left_out: LeftOut, shares: Mapping[str, Fraction], seed: str) -> Splitting:
    """units: the exported ones. SplitError if rows have no split to go to."""
    apart = left_out.kind.records.apart
    rows = [Row(key, language, [fields[field] for field in apart]) for key, language, fields in _read(left_out, units)]
    chosen = split(rows, shares, seed=seed)
    found = groupby(misses(rows, shares, chosen), attrgetter("language"))
    return Splitting(chosen, {language: _off(language, list(missed)) for language, missed in found})


def split_by_field(units: Iterable[Units], left_out: LeftOut, field: str) -> Splitting:
    """As the records themselves say. SplitError for the first row in the set that names no split."""
    found = {key: fields[field] for key, _, fields in _read(left_out, units)}
    for key, said in found.items():
        if said not in SPLITS:
            told = f"is {said!r}" if said else "is empty"
            raise SplitError(
                f"The field {field} of {key} {told}, and must be {', '.join(SPLITS[:-1])} or {SPLITS[-1]}; import the "
                f"corpus with its splits, or have them drawn by lot with --splits."
            )
    return Splitting(found, {})


def _read(left_out: LeftOut, some: Iterable[Units]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Id, language and fields of each record in the set."""
    for units in left_out.others(some):
        keys, languages, fields = (units.own[f"item__{name}"].to_pylist() for name in ("key", "language", "fields"))
        yield from zip(keys, languages, map(json.loads, fields), strict=True)


def _off(language: str, found: list[Miss]) -> str:
    """In English, train has 40% of the records and not 80%, …: 600 of 1,000 …"""
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
