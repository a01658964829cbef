"""Balanced sets for document classification: of each class as many documents, in each set of each language.

The sets are test, dev and train of several sizes, each within the next (Schwenk and Li 2018, A Corpus for Multilingual
Document Classification in Eight Languages, section 2.2). Unlike in the published lists, where classes are equal on
average, each has exactly its share here, and neither a document nor two that belong together are in two of test, dev
and train, in whatever languages. Which texts are one document is said in `one_of_each`.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from annotate.core.draws.hash_order import lot
from annotate.core.draws.splits import DEV, TEST, TRAIN, Row, components, equal_key


class BalanceError(ValueError):
    """Sets that cannot be had; the sentence says why, with the numbers, and what to do."""


class Document(NamedTuple):
    """apart: the values that no two of test, dev and train may share, in the order of their fields."""

    id: str
    language: str
    label: str
    text: str = ""
    apart: Sequence[str] = ()


def part_of(name: str) -> str:
    """train of train.1000: which of test, dev and train a set is or belongs to."""
    return name.partition(".")[0]


def place_of(name: str) -> tuple[int, int]:
    """By which sets stand in the order in which they are filled: test, dev, and train by size."""
    return (TEST, DEV, TRAIN).index(part_of(name)), int(name.partition(".")[2] or 0)


class Sizes(NamedTuple):
    """How many documents each set has in each language; 0 for none. train: rising, each set within the next."""

    test: int
    dev: int
    train: tuple[int, ...]

    def all(self) -> dict[str, int]:
        """Set -> its size, in the order in which they are filled."""
        return {TEST: self.test, DEV: self.dev} | {f"{TRAIN}.{size}": size for size in self.train}

    def apart(self) -> dict[str, int]:
        """Those that share no document: test, dev, and the largest train set; without those that have none."""
        largest = self.train[-1] if self.train else 0
        return {name: size for name, size in ((TEST, self.test), (DEV, self.dev), (TRAIN, largest)) if size}


class Short(NamedTuple):
    """A class of which a set has fewer documents than asked for."""

    language: str
    set: str
    label: str
    wanted: int
    there: int


class Balanced(NamedTuple):
    """sets: language -> set -> ids, in an order by lot. short: what was filled as far as it goes."""

    sets: dict[str, dict[str, list[str]]]
    short: list[Short]


class Merged(NamedTuple):
    """documents: one of each text; by language, equal: how many more were equal to one of these; differing: how many
    were left out, since their text is declared to be of several classes."""

    documents: list[Document]
    equal: Counter[str]
    differing: Counter[str]


def one_of_each(documents: Iterable[Document], *, seed: str) -> Merged:
    """One document for each text of a language, by lot, where they are of one class, and none where they are of
    several. Texts that differ by case, width or spaces alone are equal."""
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
    """BalanceError where the classes cannot be equal in a set, or train sets do not rise."""
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
    """The sets in each language, the same for the same documents in any order.

    documents: each of one of the classes, and no two with an equal text. Those that share a value of `apart` are in
    one of test, dev and train, in all languages together; the one that lacks most of what they hold takes them, in
    the order of their lots, and those of them that it does not need are in no set. fill: which of test, dev and train
    take what there is, where there are too few; the others stay exact. BalanceError with the numbers where a set cannot
    be filled, or where train alone may be short and has none of a class.
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
    """BalanceError with the numbers where a class in a language has fewer documents than all sets need. there:
    (language, class) -> documents; fill: as in `balanced`."""
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


SHOWN = 5  # classes that a refusal names


def _listed(lacking: Sequence[Short]) -> str:
    named = "; ".join(
        f"{each.language}, {each.label}: {each.there:,} there, {each.wanted:,} needed" for each in lacking[:SHOWN]
    )
    more = f"; and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
    return f"Too few documents of a class: {named}{more}."


Cell = tuple[str, str]  # language, class


def _shared_out(
    documents: Sequence[Document], cells: Collection[Cell], each: Mapping[str, int], seed: str
) -> dict[str, dict[Cell, list[str]]]:
    """Part -> cell -> the ids that it takes, in the order of their lots."""
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
        # Of equal ones the first, so that test is filled before dev, and dev before train.
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
    """Language -> train and dev -> `number` ids each, of which the joint sets of all languages are made: of each class
    the first ones of the smallest train set that has so many, and of dev. labels: id -> class. BalanceError where there
    are not so many."""
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
    """The first ids of each class, `each` at most."""
    seen = Counter[str]()
    kept = []
    for key in ids:
        seen[labels[key]] += 1
        if seen[labels[key]] <= each:
            kept.append(key)
    return kept


# --- what a published or exported set of lists holds


class Fault(NamedTuple):
    """Ids that are in two sets which should share nothing; or, where first is second, those that the set has once more
    than once, as often as it does."""

    first: str
    second: str
    ids: list[str]


def faults(sets: Mapping[str, Sequence[str]]) -> Iterator[Fault]:
    """What is wrong with the lists of one language: ids in two of test, dev and train, ids that one list has several
    times, and ids that a train set has and the next larger one lacks."""
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
