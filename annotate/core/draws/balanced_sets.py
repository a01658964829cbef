"""Balanced sets for document classification, with the same number of documents per class in each set and language.

The sets are test, dev, and train in several sizes, each contained in the next (Schwenk and Li 2018, A Corpus for
Multilingual Document Classification in Eight Languages, section 2.2). In the published lists, classes are balanced on
average. Here they are balanced exactly, and neither a document nor documents that belong together appear in more than
one of test, dev and train, across all languages. `one_of_each` defines which texts are the same document.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from annotate.core.draws.hash_order import lot
from annotate.core.draws.splits import DEV, TEST, TRAIN, Row, components, equal_key


class BalanceError(ValueError):
    """The sets cannot be built. The message gives the reason with numbers, and what to do."""


class Document(NamedTuple):
    """A document of one class.

    apart: values that test, dev and train must not share, in the order of their fields.
    """

    id: str
    language: str
    label: str
    text: str = ""
    apart: Sequence[str] = ()


def part_of(name: str) -> str:
    """Return which of test, dev and train a set belongs to: train for train.1000."""
    return name.partition(".")[0]


def place_of(name: str) -> tuple[int, int]:
    """Return the sort key for the order in which sets are filled: test, dev, then train by size."""
    return (TEST, DEV, TRAIN).index(part_of(name)), int(name.partition(".")[2] or 0)


class Sizes(NamedTuple):
    """Number of documents per set in each language; 0 for no set.

    train: ascending sizes, each set contained in the next.
    """

    test: int
    dev: int
    train: tuple[int, ...]

    def all(self) -> dict[str, int]:
        """Return the size of each set, in the order in which they are filled."""
        return {TEST: self.test, DEV: self.dev} | {f"{TRAIN}.{size}": size for size in self.train}

    def apart(self) -> dict[str, int]:
        """Return the sizes of the non-empty sets that must be disjoint: test, dev, and the largest train set."""
        largest = self.train[-1] if self.train else 0
        return {name: size for name, size in ((TEST, self.test), (DEV, self.dev), (TRAIN, largest)) if size}


class Short(NamedTuple):
    """A class with fewer documents in a set than requested."""

    language: str
    set: str
    label: str
    wanted: int
    there: int


class Balanced(NamedTuple):
    """Balanced sets.

    sets: ids in random order, by language and set.
    short: classes that were filled only in part.
    """

    sets: dict[str, dict[str, list[str]]]
    short: list[Short]


class Merged(NamedTuple):
    """Documents without duplicates.

    documents: one document per text.
    equal: number of duplicates removed, by language.
    differing: number of documents removed because their text has several classes, by language.
    """

    documents: list[Document]
    equal: Counter[str]
    differing: Counter[str]


def one_of_each(documents: Iterable[Document], *, seed: str) -> Merged:
    """Keep one random document per text and language; drop texts that have several classes.

    Texts that differ only in case, width or white space are the same.
    """
    by_text: dict[tuple[str, str], list[Document]] = defaultdict(list)
    for document in documents:
        by_text[document.language, equal_key(document.text)].append(document)
    found = Merged([], Counter(), Counter())
    for (language, _), alike in by_text.items():
        if len({document.label for document in alike}) > 1:
            found.differing[language] += len(alike)
        else:
            found.equal[language] += len(alike) - 1
            found.documents.append(min(alike, key=lambda document: _turn(seed, "text", document.id)))
    return found


def check_sizes(sizes: Sizes, classes: Collection[str]) -> None:
    """Raise BalanceError if a set cannot be divided equally among the classes, or the train sizes are not ascending."""
    if len(classes) < 2:
        raise BalanceError(f"Sets are balanced over two classes or more, and {len(classes)} is given.")
    if not any(sizes.all().values()):
        raise BalanceError("No set is asked for; give a size for test, dev or train.")
    for name, size in sizes.all().items():
        _check_shared(name, size, classes)
    if any(first >= second for first, second in pairwise(sizes.train)):
        raise BalanceError("The sizes of train must rise, as in 1000 2000 5000, since each set is within the next.")


def _check_shared(name: str, size: int, classes: Collection[str]) -> None:
    if size % len(classes):
        below = size - size % len(classes)
        offered = " or ".join(f"{number:,}" for number in (below, below + len(classes)) if number)
        raise BalanceError(
            f"{size:,} documents in {name} cannot be shared equally by {len(classes)} classes; take {offered}."
        )


def balanced(
    documents: Sequence[Document], classes: Sequence[str], sizes: Sizes, *, seed: str, fill: Collection[str] = ()
) -> Balanced:
    """Build the balanced sets of each language. The result does not depend on the order of the documents.

    Documents that share a value of `apart` go to the same one of test, dev and train, over all languages. Groups are
    assigned in random order to the part that still needs most of their documents. Documents of a group that the part
    does not need are in no set.

    documents: documents with distinct texts, each of one of the classes.
    classes: the classes.
    sizes: the size of each set.
    seed: seed of the draw.
    fill: those of test, dev and train that may be smaller than requested; the others are exact.

    Raises BalanceError if a set cannot be filled, or if only train may be smaller and lacks a class completely.
    """
    check_sizes(sizes, classes)
    languages = sorted({document.language for document in documents})
    there = Counter((document.language, document.label) for document in documents)
    each = {name: size // len(classes) for name, size in sizes.apart().items()}
    check_enough(there, languages, classes, sizes, fill)
    taken = _shared_out(documents, {(language, label) for language in languages for label in classes}, each, seed)
    sets: dict[str, dict[str, list[str]]] = {}
    short: list[Short] = []
    for language in languages:
        sets[language] = {}
        for name, size in sizes.all().items():
            if not size:
                continue
            part, wanted = part_of(name), size // len(classes)
            chosen: list[str] = []
            for label in classes:
                ids = taken[part][language, label][:wanted]
                if len(ids) < wanted:
                    short.append(Short(language, name, label, wanted, len(ids)))
                chosen += ids
            sets[language][name] = sorted(chosen, key=lambda key: _turn(seed, f"order {name}", key))
    lacking = [each for each in short if part_of(each.set) not in fill]
    if lacking:
        raise BalanceError(
            f"{_listed(lacking)} Documents that belong together stay in one of test, dev and train, so fewer fit than "
            "there are; take smaller sets."
        )
    if none := [each for each in short if not each.there and TEST not in fill]:
        raise BalanceError(
            f"{_listed(none)} A train set would have none of the class at all; take smaller dev and test sets, or "
            "leave the class out."
        )
    return Balanced(sets, short)


def check_enough(
    there: Counter[tuple[str, str]],
    languages: Iterable[str],
    classes: Sequence[str],
    sizes: Sizes,
    fill: Collection[str] = (),
) -> None:
    """Raise BalanceError if a class has fewer documents in some language than all sets need.

    there: number of documents by language and class.
    fill: see `balanced`.
    """
    needed = sum(size // len(classes) for name, size in sizes.apart().items() if name not in fill)
    lacking = [
        Short(language, "all sets", label, needed, there[language, label])
        for language in languages
        for label in classes
        if there[language, label] < needed
    ]
    if not lacking:
        return
    exact = sum(size // len(classes) for name, size in sizes.apart().items() if name != TRAIN)
    may_fill = not fill and all(there[each.language, each.label] > exact for each in lacking)
    instead = "take smaller sets" + (', or leave train short where need be (--sets "… fill")' if may_fill else "")
    raise BalanceError(f"{_listed(lacking)} So {instead}, or leave the class out.")


SHOWN = 5  # classes listed in an error message


def _listed(lacking: Sequence[Short]) -> str:
    named = "; ".join(
        f"{each.language}, {each.label}: {each.there:,} there, {each.wanted:,} needed" for each in lacking[:SHOWN]
    )
    more = f"; and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
    return f"Too few documents of a class: {named}{more}."


Cell = tuple[str, str]  # (language, class)


def _shared_out(
    documents: Sequence[Document], cells: Collection[Cell], each: Mapping[str, int], seed: str
) -> dict[str, dict[Cell, list[str]]]:
    """Return the ids for each part and cell, in the order of their draws."""
    by_id = {document.id: document for document in documents}
    groups = [
        sorted((by_id[row.id] for row in rows), key=lambda document: _turn(seed, "draw", document.id))
        for rows in components(Row(document.id, document.language, document.apart) for document in documents)
    ]
    lacks = {part: dict.fromkeys(cells, number) for part, number in each.items()}
    taken: dict[str, dict[Cell, list[str]]] = {part: {cell: [] for cell in cells} for part in each}
    for group in sorted(groups, key=lambda group: _turn(seed, "draw", group[0].id)):
        counts = Counter((document.language, document.label) for document in group)
        useful = {part: sum(min(number, lack[cell]) for cell, number in counts.items()) for part, lack in lacks.items()}
        # The first of equal parts, so that test is filled before dev, and dev before train.
        part = max(useful, key=lambda name: useful[name])
        for document in group:
            cell = document.language, document.label
            if lacks[part][cell]:
                lacks[part][cell] -= 1
                taken[part][cell].append(document.id)
    return taken


def _turn(seed: str, purpose: str, key: str) -> tuple[str, str]:
    return lot(seed, purpose, key), key


def joint(
    found: Balanced, labels: Mapping[str, str], classes: Sequence[str], number: int
) -> dict[str, dict[str, list[str]]]:
    """Select the documents of the joint sets over all languages.

    They come from dev, and from the smallest train set with enough documents of each class.

    labels: class of each id.
    number: number of documents per language and set.

    Returns ids by language and part (train, dev). Raises BalanceError if there are too few documents.
    """
    _check_shared("the joint sets from each language", number, classes)
    chosen: dict[str, dict[str, list[str]]] = {}
    for language, sets in found.sets.items():
        chosen[language] = {}
        for part in (TRAIN, DEV):
            from_each = {
                name: _first(ids, labels, number // len(classes)) for name, ids in sets.items() if part_of(name) == part
            }
            enough = [ids for ids in from_each.values() if len(ids) == number]
            if not enough:
                raise BalanceError(
                    f"No {part} set in {language} has {number:,} documents in equal parts for the joint one; ask for "
                    f"fewer, or for a larger {part} set."
                )
            chosen[language][part] = enough[0]
    return chosen


def _first(ids: Sequence[str], labels: Mapping[str, str], each: int) -> list[str]:
    """Return the first `each` ids of each class."""
    seen = Counter[str]()
    kept = []
    for key in ids:
        seen[labels[key]] += 1
        if seen[labels[key]] <= each:
            kept.append(key)
    return kept


# --- Checks of published and exported lists.


class Fault(NamedTuple):
    """A fault in the lists of a language.

    first, second: the two sets that share ids, a train set and the next larger one, or the same set twice for repeated
        ids.
    ids: the affected ids; a repeated id appears once per extra occurrence.
    """

    first: str
    second: str
    ids: list[str]


def faults(sets: Mapping[str, Sequence[str]]) -> Iterator[Fault]:
    """Yield the faults in the lists of one language.

    These are ids in more than one of test, dev and train, repeated ids, and ids of a train set that the next larger one
    lacks.
    """
    trains = sorted((name for name in sets if part_of(name) == TRAIN), key=place_of)
    parts = [name for name in (trains[-1] if trains else "", DEV, TEST) if name in sets]
    for place, first in enumerate(parts):
        for second in parts[place + 1 :]:
            if shared := sorted(set(sets[first]) & set(sets[second])):
                yield Fault(first, second, shared)
    for name in parts:
        if repeated := sorted((Counter(sets[name]) - Counter(set(sets[name]))).elements()):
            yield Fault(name, name, repeated)
    for smaller, larger in pairwise(trains):
        if lacking := sorted(set(sets[smaller]) - set(sets[larger])):
            yield Fault(smaller, larger, lacking)
