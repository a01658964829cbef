"""Balanced sets for document classification. All classes have the same number of documents in each language.

There is a test set, a dev set, and train sets of several sizes, each contained in the next larger one (Schwenk and Li
2018, A Corpus for Multilingual Document Classification in Eight Languages, section 2.2). In the lists that the authors
published, classes are balanced only on average. Here, they are balanced exactly. In addition, no document, and no group
of related documents, is in more than one of test, dev and train, even across languages. `distinct_documents` defines
which texts are duplicates.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from annotate.core.draws.hash_order import lot
from annotate.core.draws.splits import DEV, TEST, TRAIN, Row, components, equal_key


class BalanceError(ValueError):
    """The sets cannot be built. The message explains why, and what to do."""


class Document(NamedTuple):
    """A document of one class.

    apart: field values that test, dev and train must not share, one value per field.
    """

    id: str
    language: str
    label: str
    text: str = ""
    apart: Sequence[str] = ()


def part_of(name: str) -> str:
    """Return the part (test, dev or train) of a set. For example, the set train.1000 is in train."""
    return name.partition(".")[0]


def place_of(name: str) -> tuple[int, int]:
    """Return a sort key for filling the sets in order: test, dev, then the train sets by size."""
    return (TEST, DEV, TRAIN).index(part_of(name)), int(name.partition(".")[2] or 0)


class Sizes(NamedTuple):
    """The number of documents in each set, per language; 0 for no set.

    train: sizes of the train sets, ascending. Each train set is contained in the next one.
    """

    test: int
    dev: int
    train: tuple[int, ...]

    def all(self) -> dict[str, int]:
        """Return the size of each set, in the order that the sets are filled."""
        return {TEST: self.test, DEV: self.dev} | {f"{TRAIN}.{size}": size for size in self.train}

    def disjoint(self) -> dict[str, int]:
        """Return the sizes of the non-empty sets that must be disjoint: test, dev, and the largest train set."""
        largest = self.train[-1] if self.train else 0
        return {name: size for name, size in ((TEST, self.test), (DEV, self.dev), (TRAIN, largest)) if size}


class Shortage(NamedTuple):
    """A class with fewer documents in a set than requested.

    requested, available: document counts.
    """

    language: str
    set: str
    label: str
    requested: int
    available: int


class BalancedSets(NamedTuple):
    """The balanced sets of all languages.

    sets: mapping from language and set to document ids in random order.
    short: classes with fewer documents than requested.
    """

    sets: dict[str, dict[str, list[str]]]
    short: list[Shortage]


class Merged(NamedTuple):
    """Documents without duplicates.

    documents: the remaining documents. Within a language, their texts are distinct.
    equal: number of duplicates removed, by language.
    differing: number of documents removed because the same text has several classes, by language.
    """

    documents: list[Document]
    equal: Counter[str]
    differing: Counter[str]


def distinct_documents(documents: Iterable[Document], *, seed: str) -> Merged:
    """Keep one random document for each text in a language, and drop texts that have several classes.

    Texts are the same if they only differ in case, character width or white space.
    """
    by_text: dict[tuple[str, str], list[Document]] = defaultdict(list)
    for document in documents:
        by_text[document.language, equal_key(document.text)].append(document)
    merged = Merged([], Counter(), Counter())
    for (language, _), alike in by_text.items():
        if len({document.label for document in alike}) > 1:
            merged.differing[language] += len(alike)
        else:
            merged.equal[language] += len(alike) - 1
            merged.documents.append(min(alike, key=lambda document: _sort_key(seed, "text", document.id)))
    return merged


def check_sizes(sizes: Sizes, classes: Collection[str]) -> None:
    """Raise BalanceError if the sizes cannot be balanced.

    There must be at least two classes and one set, each size must be divisible by the number of classes, and the train
    sizes must be ascending.
    """
    if len(classes) < 2:
        raise BalanceError(f"Balanced sets require at least two classes, but the number of classes is {len(classes)}.")
    if not any(sizes.all().values()):
        raise BalanceError("No set was requested. Specify a size for test, dev or train.")
    for name, size in sizes.all().items():
        _check_divisible(name, size, classes)
    if any(first >= second for first, second in pairwise(sizes.train)):
        raise BalanceError(
            "The sizes of train must increase, as in 1000 2000 5000, because each train set contains the previous one."
        )


def _check_divisible(name: str, size: int, classes: Collection[str]) -> None:
    if size % len(classes):
        below = size - size % len(classes)
        offered = " or ".join(f"{number:,}" for number in (below, below + len(classes)) if number)
        raise BalanceError(
            f"{size:,} documents in {name} cannot be divided equally among {len(classes)} classes. Use {offered}."
        )


def draw_balanced_sets(
    documents: Sequence[Document], classes: Sequence[str], sizes: Sizes, *, seed: str, fill: Collection[str] = ()
) -> BalancedSets:
    """Build the balanced sets of each language. The result does not depend on the order of the documents.

    Documents that share a value of `apart` form a group, even across languages. The groups are processed in random
    order. Each group is assigned to the part (test, dev or train) that can still use the most of its documents.
    Documents that the part doesn't need are left out.

    documents: documents with distinct texts; each has one of the classes.
    classes: all classes.
    sizes: size of each set.
    seed: seed of the draw.
    fill: parts (test, dev or train) whose sets are allowed to be smaller than requested. All other sets have exactly
        the requested size.

    Raise BalanceError if a set cannot be filled, or has no documents of a class (unless test is in `fill`).
    """
    check_sizes(sizes, classes)
    languages = sorted({document.language for document in documents})
    available = Counter((document.language, document.label) for document in documents)
    per_class = {name: size // len(classes) for name, size in sizes.disjoint().items()}
    check_enough(available, languages, classes, sizes, fill)
    taken = _assign_to_parts(
        documents, {(language, label) for language in languages for label in classes}, per_class, seed
    )
    sets: dict[str, dict[str, list[str]]] = {}
    short: list[Shortage] = []
    for language in languages:
        sets[language] = {}
        for name, size in sizes.all().items():
            if not size:
                continue
            part, requested = part_of(name), size // len(classes)
            chosen: list[str] = []
            for label in classes:
                ids = taken[part][language, label][:requested]
                if len(ids) < requested:
                    short.append(Shortage(language, name, label, requested, len(ids)))
                chosen += ids
            sets[language][name] = sorted(chosen, key=lambda key: _sort_key(seed, f"order {name}", key))
    lacking = [shortage for shortage in short if part_of(shortage.set) not in fill]
    if lacking:
        raise BalanceError(
            f"{_describe(lacking)} Documents that belong together must be in the same part (test, dev or train), so "
            "not all of them fit. Specify smaller sets."
        )
    if none := [shortage for shortage in short if not shortage.available and TEST not in fill]:
        raise BalanceError(
            f"{_describe(none)} The training set would contain no documents of the class. Specify smaller dev and test "
            "sets, or remove the class."
        )
    return BalancedSets(sets, short)


def check_enough(
    available: Counter[tuple[str, str]],
    languages: Iterable[str],
    classes: Sequence[str],
    sizes: Sizes,
    fill: Collection[str] = (),
) -> None:
    """Raise BalanceError if a class has too few documents in a language to fill its sets.

    available: number of documents by language and class.
    fill: see `draw_balanced_sets`. Sets of these parts need no minimum number of documents.
    """
    needed = sum(size // len(classes) for name, size in sizes.disjoint().items() if name not in fill)
    lacking = [
        Shortage(language, "all sets", label, needed, available[language, label])
        for language in languages
        for label in classes
        if available[language, label] < needed
    ]
    if not lacking:
        return
    exact = sum(size // len(classes) for name, size in sizes.disjoint().items() if name != TRAIN)
    may_fill = not fill and all(available[shortage.language, shortage.label] > exact for shortage in lacking)
    instead = "Specify smaller sets" + (', allow smaller train sets (--sets "… fill")' if may_fill else "")
    raise BalanceError(f"{_describe(lacking)} {instead}, or remove the class.")


MAX_LISTED = 5  # maximum number of classes in an error message


def _describe(lacking: Sequence[Shortage]) -> str:
    named = "; ".join(
        f"{shortage.language}, {shortage.label}: {shortage.available:,} available, {shortage.requested:,} needed"
        for shortage in lacking[:MAX_LISTED]
    )
    more = f"; and {len(lacking) - MAX_LISTED} more" if len(lacking) > MAX_LISTED else ""
    return f"Too few documents of a class: {named}{more}."


Cell = tuple[str, str]  # (language, class)


def _assign_to_parts(
    documents: Sequence[Document], cells: Collection[Cell], sizes: Mapping[str, int], seed: str
) -> dict[str, dict[Cell, list[str]]]:
    """Assign documents to parts in random order, and return the ids of each part and cell in this order.

    sizes: number of documents that each part needs per cell.
    """
    by_id = {document.id: document for document in documents}
    groups = [
        sorted((by_id[row.id] for row in rows), key=lambda document: _sort_key(seed, "draw", document.id))
        for rows in components(Row(document.id, document.language, document.apart) for document in documents)
    ]
    lacks = {part: dict.fromkeys(cells, number) for part, number in sizes.items()}
    taken: dict[str, dict[Cell, list[str]]] = {part: {cell: [] for cell in cells} for part in sizes}
    for group in sorted(groups, key=lambda group: _sort_key(seed, "draw", group[0].id)):
        counts = Counter((document.language, document.label) for document in group)
        useful = {part: sum(min(number, lack[cell]) for cell, number in counts.items()) for part, lack in lacks.items()}
        # If parts tie, `max` returns the first, so test is filled before dev, and dev before train.
        part = max(useful, key=lambda name: useful[name])
        for document in group:
            cell = document.language, document.label
            if lacks[part][cell]:
                lacks[part][cell] -= 1
                taken[part][cell].append(document.id)
    return taken


def _sort_key(seed: str, purpose: str, key: str) -> tuple[str, str]:
    return lot(seed, purpose, key), key


def select_joint_sets(
    balanced_sets: BalancedSets, labels: Mapping[str, str], classes: Sequence[str], number: int
) -> dict[str, dict[str, list[str]]]:
    """Select the documents for the joint sets, which contain documents of all languages.

    The joint dev set takes documents from each language's dev set. The joint train set takes them from each language's
    smallest train set that has enough documents of every class.

    labels: class of each document, by id.
    number: number of documents from each language in each joint set.

    Return ids by language and part (train or dev). Raise BalanceError if a language has too few documents.
    """
    _check_divisible("each language's part of the joint sets", number, classes)
    chosen: dict[str, dict[str, list[str]]] = {}
    for language, sets in balanced_sets.sets.items():
        chosen[language] = {}
        for part in (TRAIN, DEV):
            candidates = {
                name: _first(ids, labels, number // len(classes)) for name, ids in sets.items() if part_of(name) == part
            }
            complete = [ids for ids in candidates.values() if len(ids) == number]
            if not complete:
                raise BalanceError(
                    f"No {part} set in {language} can provide {number:,} documents, in equal numbers per class, for "
                    f"the joint set. Request fewer documents, or a larger {part} set."
                )
            chosen[language][part] = complete[0]
    return chosen


def _first(ids: Sequence[str], labels: Mapping[str, str], limit: int) -> list[str]:
    """Return the first ids of each class, at most `limit` per class."""
    seen = Counter[str]()
    first = []
    for key in ids:
        seen[labels[key]] += 1
        if seen[labels[key]] <= limit:
            first.append(key)
    return first


# --- Checks of published and exported lists.


class Fault(NamedTuple):
    """A fault in a language's published or exported lists.

    first, second: two sets that share ids, or a train set and the next larger one. Both are the same set if that set
        repeats ids.
    ids: the ids at fault. An id that a set repeats is listed once for each extra occurrence.
    """

    first: str
    second: str
    ids: list[str]


def find_faults(sets: Mapping[str, Sequence[str]]) -> Iterator[Fault]:
    """Yield the faults in one language's lists.

    An id is at fault if it is in more than one of test, dev and train, if a set repeats it, or if it is in a train set
    but not in the next larger one.
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
