"""Balanced sets for document classification, in which all classes have the same number of documents in each language.

There is a test set, a dev set, and train sets of several sizes, each contained in the next larger one (Schwenk and Li
2018, A Corpus for Multilingual Document Classification in Eight Languages, section 2.2). In the lists that the authors
published, classes are only balanced on average. Here they are balanced exactly. In addition, neither a document nor a
group of documents that belong together is in more than one of test, dev and train, even across languages.
`distinct_documents` defines which texts are the same document.
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

    apart: values of the fields that test, dev and train must not share, in the order of the fields.
    """

    id: str
    language: str
    label: str
    text: str = ""
    apart: Sequence[str] = ()


def part_of(name: str) -> str:
    """Return the part (test, dev or train) that a set belongs to. For example, the set train.1000 belongs to train."""
    return name.partition(".")[0]


def place_of(name: str) -> tuple[int, int]:
    """Return the key that sorts sets into the order in which they are filled: test, dev, then train by size."""
    return (TEST, DEV, TRAIN).index(part_of(name)), int(name.partition(".")[2] or 0)


class Sizes(NamedTuple):
    """The number of documents in each set, which is the same for every language; 0 for no set.

    train: sizes of the train sets, ascending. Each train set is contained in the next one.
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
    """A class that has fewer documents in a set than requested.

    requested, available: the requested number of documents, and the available number.
    """

    language: str
    set: str
    label: str
    requested: int
    available: int


class Balanced(NamedTuple):
    """The balanced sets of all languages.

    sets: mapping from language and set to document ids in random order.
    short: classes that have fewer documents than requested.
    """

    sets: dict[str, dict[str, list[str]]]
    short: list[Short]


class Merged(NamedTuple):
    """Documents without duplicates.

    documents: the remaining documents. Within a language, their texts are distinct.
    equal: number of duplicates that were removed, by language.
    differing: number of documents that were removed because the same text has several classes, by language.
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
            merged.documents.append(min(alike, key=lambda document: _turn(seed, "text", document.id)))
    return merged


def check_sizes(sizes: Sizes, classes: Collection[str]) -> None:
    """Raise BalanceError if the sizes cannot be balanced.

    There must be two classes or more and at least one set. Each size must be divisible by the number of classes, and
    the train sizes must be ascending.
    """
    if len(classes) < 2:
        raise BalanceError(f"Balanced sets require at least two classes, but the number of classes is {len(classes)}.")
    if not any(sizes.all().values()):
        raise BalanceError("No set was requested. Specify a size for test, dev or train.")
    for name, size in sizes.all().items():
        _check_shared(name, size, classes)
    if any(first >= second for first, second in pairwise(sizes.train)):
        raise BalanceError(
            "The sizes of train must increase, as in 1000 2000 5000, because each train set contains the previous one."
        )


def _check_shared(name: str, size: int, classes: Collection[str]) -> None:
    if size % len(classes):
        below = size - size % len(classes)
        offered = " or ".join(f"{number:,}" for number in (below, below + len(classes)) if number)
        raise BalanceError(
            f"{size:,} documents in {name} cannot be divided equally among {len(classes)} classes. Use {offered}."
        )


def balanced(
    documents: Sequence[Document], classes: Sequence[str], sizes: Sizes, *, seed: str, fill: Collection[str] = ()
) -> Balanced:
    """Build the balanced sets of each language. The result does not depend on the order of the documents.

    Documents that share a value of `apart` form a group, which may have documents in several languages. The groups are
    processed in random order. Each group is assigned to the part (test, dev or train) that can still use the most of
    its documents. Documents that the part does not need are in no set.

    documents: documents with distinct texts, each of one of the classes.
    classes: the classes.
    sizes: the size of each set.
    seed: seed of the draw.
    fill: parts (test, dev or train) whose sets may be smaller than requested. All other sets have exactly the requested
        size.

    Raise BalanceError if a set cannot be filled. If test is not in `fill`, also raise it if a set has no document of a
    class.
    """
    check_sizes(sizes, classes)
    languages = sorted({document.language for document in documents})
    available = Counter((document.language, document.label) for document in documents)
    per_class = {name: size // len(classes) for name, size in sizes.apart().items()}
    check_enough(available, languages, classes, sizes, fill)
    taken = _shared_out(documents, {(language, label) for language in languages for label in classes}, per_class, seed)
    sets: dict[str, dict[str, list[str]]] = {}
    short: list[Short] = []
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
                    short.append(Short(language, name, label, requested, len(ids)))
                chosen += ids
            sets[language][name] = sorted(chosen, key=lambda key: _turn(seed, f"order {name}", key))
    lacking = [shortage for shortage in short if part_of(shortage.set) not in fill]
    if lacking:
        raise BalanceError(
            f"{_listed(lacking)} Documents that belong together must be in the same part (test, dev or train), so "
            "not all of them fit. Specify smaller sets."
        )
    if none := [shortage for shortage in short if not shortage.available and TEST not in fill]:
        raise BalanceError(
            f"{_listed(none)} The training set would contain no documents of the class. Specify smaller dev and test "
            "sets, or remove the class."
        )
    return Balanced(sets, short)


def check_enough(
    available: Counter[tuple[str, str]],
    languages: Iterable[str],
    classes: Sequence[str],
    sizes: Sizes,
    fill: Collection[str] = (),
) -> None:
    """Raise BalanceError if some class has too few documents in some language for all of its sets.

    available: number of documents by language and class.
    fill: see `balanced`. Sets of these parts need no minimum number of documents.
    """
    needed = sum(size // len(classes) for name, size in sizes.apart().items() if name not in fill)
    lacking = [
        Short(language, "all sets", label, needed, available[language, label])
        for language in languages
        for label in classes
        if available[language, label] < needed
    ]
    if not lacking:
        return
    exact = sum(size // len(classes) for name, size in sizes.apart().items() if name != TRAIN)
    may_fill = not fill and all(available[shortage.language, shortage.label] > exact for shortage in lacking)
    instead = "Specify smaller sets" + (', allow smaller train sets (--sets "… fill")' if may_fill else "")
    raise BalanceError(f"{_listed(lacking)} {instead}, or remove the class.")


SHOWN = 5  # maximum number of classes that an error message lists


def _listed(lacking: Sequence[Short]) -> str:
    named = "; ".join(
        f"{shortage.language}, {shortage.label}: {shortage.available:,} available, {shortage.requested:,} needed"
        for shortage in lacking[:SHOWN]
    )
    more = f"; and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
    return f"Too few documents of a class: {named}{more}."


Cell = tuple[str, str]  # (language, class)


def _shared_out(
    documents: Sequence[Document], cells: Collection[Cell], sizes: Mapping[str, int], seed: str
) -> dict[str, dict[Cell, list[str]]]:
    """Assign documents to parts in random order, and return the ids for each part and cell in this order.

    sizes: number of documents that each part needs in every cell.
    """
    by_id = {document.id: document for document in documents}
    groups = [
        sorted((by_id[row.id] for row in rows), key=lambda document: _turn(seed, "draw", document.id))
        for rows in components(Row(document.id, document.language, document.apart) for document in documents)
    ]
    lacks = {part: dict.fromkeys(cells, number) for part, number in sizes.items()}
    taken: dict[str, dict[Cell, list[str]]] = {part: {cell: [] for cell in cells} for part in sizes}
    for group in sorted(groups, key=lambda group: _turn(seed, "draw", group[0].id)):
        counts = Counter((document.language, document.label) for document in group)
        useful = {part: sum(min(number, lack[cell]) for cell, number in counts.items()) for part, lack in lacks.items()}
        # If several parts are equal, `max` returns the first, so test is filled before dev, and dev before train.
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
    balanced_sets: Balanced, labels: Mapping[str, str], classes: Sequence[str], number: int
) -> dict[str, dict[str, list[str]]]:
    """Select the documents for the joint sets, which contain documents of all languages.

    The joint dev set has documents from the dev set of each language. The joint train set has documents from the
    smallest train set with enough documents of each class.

    labels: class of each document, by id.
    number: number of documents from each language in each joint set.

    Return ids by language and part (train or dev). Raise BalanceError if a language has too few documents.
    """
    _check_shared("each language's part of the joint sets", number, classes)
    chosen: dict[str, dict[str, list[str]]] = {}
    for language, sets in balanced_sets.sets.items():
        chosen[language] = {}
        for part in (TRAIN, DEV):
            candidates = {
                name: _first(ids, labels, number // len(classes)) for name, ids in sets.items() if part_of(name) == part
            }
            enough = [ids for ids in candidates.values() if len(ids) == number]
            if not enough:
                raise BalanceError(
                    f"No {part} set in {language} can provide {number:,} documents, in equal numbers per class, for "
                    f"the joint set. Request fewer documents, or a larger {part} set."
                )
            chosen[language][part] = enough[0]
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
    """A fault in the published or exported lists of a language.

    first, second: two sets that share ids, or a train set and the next larger one. If a set repeats ids, both are this
        set.
    ids: the affected ids. An id that a set repeats appears here once for each extra occurrence.
    """

    first: str
    second: str
    ids: list[str]


def faults(sets: Mapping[str, Sequence[str]]) -> Iterator[Fault]:
    """Yield the faults in the lists of one language.

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
