"""Random splits of an exported set into train, dev and test, without overlap between splits.

Rows with the same value in a field that must not be split are connected, and each connected component goes to a single
split, across languages. As in XGLUE, only English has a train split; in other languages, dev and test divide the rows
in their ratio.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from annotate.core.aggregation.answer_table import Ints
from annotate.core.draws.hash_order import lot
from annotate.core.estimation.resampling import percentiles
from annotate.core.option import OptionError, fraction

TRAIN, DEV, TEST = SPLITS = ("train", "dev", "test")
TRAINED_IN = "en"
# A split that misses its share of a language's rows by more than this is reported.
FAR = Fraction(1, 20)


class SplitError(ValueError):
    """Ratios that cannot be used. The message gives the reason."""


class Row(NamedTuple):
    """A row to be split.

    apart: values that splits must not share, in the order of their fields.
    """

    id: str
    language: str
    apart: Sequence[str]


class Miss(NamedTuple):
    """A split that is far from its share of a language.

    wanted, got: requested and actual share.
    rows: number of rows in the language.
    bound: number of these rows that are connected to rows in other languages.
    largest: number of rows of the language in the component with most of them.
    """

    language: str
    split: str
    wanted: float
    got: float
    rows: int
    bound: int
    largest: int


def ratios(option: str) -> dict[str, Fraction]:
    """Parse the share of each split from an option such as train=0.8,dev=0.1,test=0.1.

    A split that is not named gets 0. Raises SplitError if the shares are malformed or do not add up to 1.
    """
    found: dict[str, Fraction] = {}
    for part in option.split(","):
        name, equals, share = (words.strip() for words in part.partition("="))
        if name not in SPLITS or not equals:
            raise SplitError(f"{part.strip()!r} is not a share of a split; write train=0.8,dev=0.1,test=0.1.")
        if name in found:
            raise SplitError(f"The split {name} is named twice; give each one share.")
        found[name] = _share(name, share)
    if sum(found.values()) != 1:
        raise SplitError(f"The shares in {option!r} make {float(sum(found.values())):g} together; they must make 1.")
    return {name: found.get(name, Fraction(0)) for name in SPLITS}


def _share(name: str, written: str) -> Fraction:
    try:
        share = fraction(written)
    except OptionError:
        raise SplitError(f"{written!r} is not a share of the split {name}; write a number such as 0.8.") from None
    if not 0 <= share <= 1:
        raise SplitError(f"The share of the split {name} is between 0 and 1, not {written}.")
    return share


def shares(language: str, given: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Return the share of each split of a language, without empty splits.

    Raises SplitError if no split is left for the language.
    """
    there = {name: share for name, share in given.items() if share and (name != TRAIN or language == TRAINED_IN)}
    if not there:
        raise SplitError(
            f"Only {TRAINED_IN} has a train split, so nothing is left for the rows in {language}; give dev or test a "
            "share."
        )
    whole = sum(there.values())
    return {name: share / whole for name, share in there.items()}


def components(rows: Iterable[Row]) -> list[list[Row]]:
    """Return the connected components of rows. Values that differ only in case, width or white space are equal."""
    parents: dict[object, object] = {}

    def root(node: object) -> object:
        parent = parents.setdefault(node, node)
        while parent != node:
            parents[node] = node = parents[parent]  # path halving
            parent = parents[node]
        return node

    listed = list(rows)
    for row in listed:
        for field, value in enumerate(row.apart):
            parents[root((field, equal_key(value)))] = root(row.id)
    found: dict[object, list[Row]] = {}
    for row in listed:
        found.setdefault(root(row.id), []).append(row)
    return list(found.values())


def equal_key(value: str) -> str:
    """Return a key that equal values share: NFKC, case-folded, with single spaces."""
    folded = unicodedata.normalize("NFKC", value).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())


def split(rows: Iterable[Row], given: Mapping[str, Fraction], *, seed: str) -> dict[str, str]:
    """Assign each row to a split. The result does not depend on the order of the rows.

    Components are taken in random order and fill test, then dev, then train. A component that is added, changed or
    removed therefore moves few other rows, and a set that is exported again with some more rows keeps nearly the same
    test split. Whether a component is in test does not depend on its size, except for components with more rows than
    the smallest split should have. Those come first, largest first, and go to the split that lacks most rows, so that
    the others can fill up the rest.

    Test and dev may exceed their size by less than the component that filled them; train is smaller by as much.

    given: share of each split.
    seed: seed of the draw.

    Returns the split of each id.
    """
    found = components(rows)
    counts: dict[str, int] = {}
    for component in found:
        for row in component:
            counts[row.language] = counts.get(row.language, 0) + 1
    lacking = {
        language: {name: share * counts[language] for name, share in shares(language, given).items()}
        for language in sorted(counts)
    }
    chosen: dict[str, str] = {}
    turns = [(*_turn(component, lacking, seed), component) for component in found]
    for larger, _, _, component in sorted(turns, key=lambda turn: turn[:3]):
        languages = sorted({row.language for row in component})
        # A component with English and other rows cannot go to train.
        open_to = [name for name in SPLITS if all(name in lacking[language] for language in languages)]
        lacks = {name: sum(lacking[language][name] for language in languages) for name in open_to}
        best = max(open_to, key=lambda name: lacks[name])
        if not larger:
            best = next((name for name in reversed(open_to) if lacks[name] > 0), best)
        for row in component:
            lacking[row.language][best] -= 1
            chosen[row.id] = best
    return chosen


def _turn(component: list[Row], lacking: Mapping[str, Mapping[str, Fraction]], seed: str) -> tuple[int, str, str]:
    """Return the sort key of a component.

    Its first value is 0, or negative for components larger than the smallest split.
    """
    first = min(row.id for row in component)
    least = min(share for row in component for share in lacking[row.language].values())
    return (-len(component) if len(component) > max(least, Fraction(1)) else 0, lot(seed, "split", first), first)


def misses(rows: Iterable[Row], given: Mapping[str, Fraction], chosen: Mapping[str, str]) -> list[Miss]:
    """Return the splits that are far from their share of a language.

    given: share of each split.
    chosen: the result of `split`.
    """
    counts: dict[str, Counter[str]] = {}
    bound, largest = Counter[str](), Counter[str]()
    for component in components(rows):
        languages = Counter(row.language for row in component)
        for language, number in languages.items():
            counts.setdefault(language, Counter())[chosen[component[0].id]] += number
            bound[language] += number if len(languages) > 1 else 0
            largest[language] = max(largest[language], number)
    return [
        Miss(
            language,
            name,
            float(share),
            counts[language][name] / counts[language].total(),
            counts[language].total(),
            bound[language],
            largest[language],
        )
        for language in sorted(counts)
        for name, share in shares(language, given).items()
        if abs(Fraction(counts[language][name], counts[language].total()) - share) > FAR
    ]


# --- Label frequencies in the documents of a set: buckets by training frequency, and differences between splits.
#
# A document is represented by the set of its labels.


FREQUENT_OVER = 50
FREQUENT, FEW, ZERO = BUCKETS = ("frequent", "few", "zero")
SHUFFLES = 200

Labels = AbstractSet[str]


def counts(documents: Iterable[Labels]) -> Counter[str]:
    """Return the number of documents with each label."""
    return Counter(label for labels in documents for label in labels)


def buckets(
    splits: Mapping[str, Iterable[Labels]], train: str, *, frequent_over: int = FREQUENT_OVER
) -> dict[str, frozenset[str]]:
    """Group the labels of all splits by their frequency in the split `train` (Chalkidis et al. 2019).

    frequent_over: number of documents above which a label is frequent.

    Returns the labels that are frequent, few (at least one document) and zero. Raises ValueError if `frequent_over` is
    below 1 or the split is missing.
    """
    if frequent_over < 1:
        raise ValueError(f"Frequent labels are those over 1 document or more, not over {frequent_over}.")
    if train not in splits:
        raise ValueError(f"There is no split {train!r}, whose documents are counted; there are {', '.join(splits)}.")
    found = {name: counts(documents) for name, documents in splits.items()}
    trained = found[train]
    used = set().union(*found.values())
    return {
        FREQUENT: frozenset(label for label in used if trained[label] > frequent_over),
        FEW: frozenset(label for label in used if 0 < trained[label] <= frequent_over),
        ZERO: frozenset(label for label in used if not trained[label]),
    }


def total_variation(first: Counter[str], second: Counter[str]) -> float | None:
    """Return the total variation distance of two label distributions, from 0 for equal to 1 for disjoint.

    It is half the sum of the absolute differences of the labels' shares. The shares of all labels in a split add up to
    1. Returns None if either split has no labels.
    """
    one, other = first.total(), second.total()
    if not (one and other):
        return None
    # Integers, so that the order of the labels cannot change the result.
    apart = sum(abs(first[label] * other - second[label] * one) for label in first.keys() | second.keys())
    return float(Fraction(apart, 2 * one * other))


class Apart(NamedTuple):
    """Distance of the label distributions of two splits.

    Rare labels are never evenly split, so two small splits differ considerably by chance alone.

    value: total variation distance; None if either split has no labels.
    low, high: range that holds 95% of random splits of the same sizes.
    """

    value: float | None
    low: float | None
    high: float | None


def apart(first: Sequence[Labels], second: Sequence[Labels], *, seed: str) -> Apart:
    """Compare the label distributions of two splits with those of random splits of the same documents.

    The same lists and seed give the same result.
    """
    value = total_variation(counts(first), counts(second))
    if value is None:
        return Apart(None, None, None)
    documents = [*first, *second]
    place = {label: number for number, label in enumerate(counts(documents))}
    given = np.array([place[label] for labels in documents for label in labels])
    document = np.repeat(np.arange(len(documents)), [len(labels) for labels in documents])
    everything = np.bincount(given)
    shuffling = np.random.Generator(np.random.PCG64(int(lot(seed, "label shares", ""), 16)))
    found = []
    for _ in range(SHUFFLES):
        in_first = np.zeros(len(documents), dtype=np.bool_)
        in_first[shuffling.permutation(len(documents))[: len(first)]] = True
        some = np.bincount(given[in_first[document]], minlength=len(place))
        found.append(_apart(some, everything - some))
    return Apart(value, *percentiles(np.array(found)))


def _apart(some: Ints, others: Ints) -> float:
    """Return the total variation distance of two label counts; 0 if either is empty.

    A random part may be empty if most documents have no label.
    """
    one, other = int(some.sum()), int(others.sum())
    return int(np.abs(some * other - others * one).sum()) / (2 * one * other) if one and other else 0.0
