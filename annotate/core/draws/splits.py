"""Random splits of an exported set into train, dev and test, without overlap between splits.

Some fields have values that must not occur in more than one split. Rows that share a value of such a field are
connected, and each connected component goes to a single split, even if it has rows in several languages. As in XGLUE,
only English has a train split. In every other language, dev and test divide the rows in proportion to their shares.
"""

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from fractions import Fraction
from math import lcm
from typing import NamedTuple

import numpy as np

from annotate.core.aggregation.answer_table import Ints
from annotate.core.draws.hash_order import lot
from annotate.core.estimation.resampling import generator, percentiles
from annotate.core.option import OptionError, fraction

TRAIN, DEV, TEST = SPLITS = ("train", "dev", "test")
TRAINED_IN = "en"
# `misses` reports a split if its actual and requested shares of a language's rows differ by more than this.
FAR = Fraction(1, 20)


class SplitError(ValueError):
    """The requested shares of the splits are unusable. The message explains why."""


class Row(NamedTuple):
    """A row to be split.

    apart: field values that splits must not share, one value per field.
    """

    id: str
    language: str
    apart: Sequence[str]


class Miss(NamedTuple):
    """A split whose share of a language's rows is far from the requested share.

    requested, actual: shares of the language's rows.
    rows: number of rows in the language.
    bound: number of these rows that are connected to rows in other languages.
    largest: the largest number of these rows in a single connected component.
    """

    language: str
    split: str
    requested: float
    actual: float
    rows: int
    bound: int
    largest: int


def ratios(option: str) -> dict[str, Fraction]:
    """Parse an option such as train=0.8,dev=0.1,test=0.1 into the share of each split.

    A split that the option does not name gets 0. Raise SplitError if the shares are malformed or do not add up to 1.
    """
    shares_by_split: dict[str, Fraction] = {}
    for part in option.split(","):
        name, equals, share = (words.strip() for words in part.partition("="))
        if name not in SPLITS or not equals:
            raise SplitError(f"{part.strip()!r} is not a share of a split. Write shares as train=0.8,dev=0.1,test=0.1.")
        if name in shares_by_split:
            raise SplitError(f"The split {name} occurs twice. Specify one share for each split.")
        shares_by_split[name] = _share(name, share)
    if sum(shares_by_split.values()) != 1:
        raise SplitError(
            f"The shares in {option!r} add up to {float(sum(shares_by_split.values())):g}. They must add up to 1."
        )
    return {name: shares_by_split.get(name, Fraction(0)) for name in SPLITS}


def _share(name: str, written: str) -> Fraction:
    try:
        share = fraction(written)
    except OptionError:
        raise SplitError(f"{written!r} is not a share for the split {name}. Write a number such as 0.8.") from None
    if not 0 <= share <= 1:
        raise SplitError(f"The share of the split {name} must be between 0 and 1, not {written}.")
    return share


def shares(language: str, ratio: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Return the share of each non-empty split in a language.

    Only English has a train split. In every other language, the shares of dev and test are scaled to add up to 1.

    ratio: requested share of each split.

    Raise SplitError if no split is left for the language.
    """
    available = {name: share for name, share in ratio.items() if share and (name != TRAIN or language == TRAINED_IN)}
    if not available:
        raise SplitError(
            f"Only {TRAINED_IN} has a train split, so there is no split for the rows in {language}. Specify a share "
            "for dev or test."
        )
    whole = sum(available.values())
    return {name: share / whole for name, share in available.items()}


def components(rows: Iterable[Row]) -> list[list[Row]]:
    """Group rows into connected components. Two rows are connected if they share a value of `apart`.

    Values are equal if they only differ in case, character width or white space.
    """
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
    by_root: dict[object, list[Row]] = {}
    for row in listed:
        by_root.setdefault(root(row.id), []).append(row)
    return list(by_root.values())


def equal_key(value: str) -> str:
    """Return a key that is the same for all values that count as equal.

    The key is the value in normalization form NFKC, case-folded, with single spaces between words.
    """
    folded = unicodedata.normalize("NFKC", value).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())


def split(rows: Iterable[Row], ratio: Mapping[str, Fraction], *, seed: str) -> dict[str, str]:
    """Assign each row to a split. The result does not depend on the order of the rows.

    Connected components are assigned in random order: they fill test, then dev, then train. If a component is added,
    changed or removed, only a few other rows move. For example, if a set is exported again with some more rows, its
    test split stays nearly the same.

    A component's size does not affect whether it is in test, with one exception: components larger than the smallest
    requested split are assigned first, starting with the largest. Each of them goes to the split that lacks the most
    rows, so that the smaller components can fill the remaining space.

    Components are never divided, so test and dev can become larger than requested. The excess is always smaller than
    the component that filled the split, and train is smaller than requested by the same number of rows.

    ratio: share of each split.
    seed: seed of the draw.

    Return a mapping from row id to split.
    """
    groups = components(rows)
    counts: dict[str, int] = {}
    for component in groups:
        for row in component:
            counts[row.language] = counts.get(row.language, 0) + 1
    wanted = {language: shares(language, ratio) for language in sorted(counts)}
    # Each row counts as this many parts, so that all sizes are integers. Fractions would be several times as slow.
    parts = lcm(*(share.denominator for by_split in wanted.values() for share in by_split.values()))
    lacking = {
        language: {name: int(share * parts) * counts[language] for name, share in by_split.items()}
        for language, by_split in wanted.items()
    }
    smallest = {language: min(by_split.values()) for language, by_split in lacking.items()}
    chosen: dict[str, str] = {}
    ordered = [(*_sort_key(component, smallest, parts, seed), component) for component in groups]
    for larger, _, _, component in sorted(ordered):
        languages = [lacking[language] for language in {row.language for row in component}]
        # If a component has rows in English and in another language, it cannot go to train.
        open_to = [name for name in SPLITS if all(name in language for language in languages)]
        lacks = {name: sum(language[name] for language in languages) for name in open_to}
        best = max(open_to, key=lambda name: lacks[name])
        if not larger:
            best = next((name for name in reversed(open_to) if lacks[name] > 0), best)
        for row in component:
            lacking[row.language][best] -= parts
            chosen[row.id] = best
    return chosen


def _sort_key(component: list[Row], smallest: Mapping[str, int], parts: int, seed: str) -> tuple[int, str, str]:
    """Return a sort key for assigning the components in order.

    The first value of the key is negative for components larger than the smallest split, and 0 for all others.

    smallest: size of the smallest split by language, in parts of a row.
    parts: number of parts per row.
    """
    first, size = min(row.id for row in component), len(component)
    is_larger = size > 1 and size * parts > min(smallest[row.language] for row in component)
    return -size if is_larger else 0, lot(seed, "split", first), first


def misses(rows: Collection[Row], ratio: Mapping[str, Fraction], chosen: Mapping[str, str]) -> list[Miss]:
    """Return the splits whose share of a language's rows differs from the requested share by more than FAR.

    ratio: share of each split.
    chosen: the result of `split`.
    """
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        counts.setdefault(row.language, Counter())[chosen[row.id]] += 1
    far = [
        (language, name, float(share), Fraction(counts[language][name], counts[language].total()))
        for language in sorted(counts)
        for name, share in shares(language, ratio).items()
        if abs(Fraction(counts[language][name], counts[language].total()) - share) > FAR
    ]
    bound, largest = Counter[str](), Counter[str]()
    for component in components(rows) if far else ():
        languages = Counter(row.language for row in component)
        for language, number in languages.items():
            bound[language] += number if len(languages) > 1 else 0
            largest[language] = max(largest[language], number)
    return [
        Miss(language, name, share, float(actual), counts[language].total(), bound[language], largest[language])
        for language, name, share, actual in far
    ]


# --- Label frequencies: buckets by training frequency, and differences between splits. Documents are sets of labels.


FREQUENT_OVER = 50
FREQUENT, FEW, ZERO = BUCKETS = ("frequent", "few", "zero")
SHUFFLES = 200

Labels = AbstractSet[str]


def counts(documents: Iterable[Labels]) -> Counter[str]:
    """Count the documents that have each label."""
    return Counter(label for labels in documents for label in labels)


def buckets(
    splits: Mapping[str, Iterable[Labels]], train: str, *, frequent_over: int = FREQUENT_OVER
) -> dict[str, frozenset[str]]:
    """Group the labels of all splits by their frequency in the `train` split (Chalkidis et al. 2019).

    frequent_over: number of documents above which a label is frequent.

    Return the frequent labels, those with few documents in `train` (at least one), and those with none. Raise
    ValueError if `frequent_over` is below 1 or the split is missing.
    """
    if frequent_over < 1:
        raise ValueError(f"The limit for frequent labels must be at least 1 document, not {frequent_over}.")
    if train not in splits:
        raise ValueError(f"The split {train!r} is needed to count labels, but the splits are {', '.join(splits)}.")
    frequencies = {name: counts(documents) for name, documents in splits.items()}
    trained = frequencies[train]
    used = set().union(*frequencies.values())
    return {
        FREQUENT: frozenset(label for label in used if trained[label] > frequent_over),
        FEW: frozenset(label for label in used if 0 < trained[label] <= frequent_over),
        ZERO: frozenset(label for label in used if not trained[label]),
    }


def total_variation(first: Ints, second: Ints) -> float | None:
    """Return the total variation distance between two label distributions, from 0 (equal) to 1 (disjoint).

    A label's share is its count divided by the sum of all counts. The distance is half the sum, over all labels, of the
    absolute difference between the two shares.

    first, second: count of each label in a split, (K,).

    Return None if either split has no labels.
    """
    one, other = int(first.sum()), int(second.sum())
    return int(np.abs(first * other - second * one).sum()) / (2 * one * other) if one and other else None


class SplitDistance(NamedTuple):
    """The distance between the label distributions of two splits, and its range under random splitting.

    Rare labels cannot be split evenly, so two small splits differ considerably even if they are random.

    value: total variation distance; None if either split has no labels.
    low, high: range that contains the distance for 95% of random splits of the same sizes.
    """

    value: float | None
    low: float | None
    high: float | None


def compare_splits(first: Sequence[Labels], second: Sequence[Labels], *, seed: str) -> SplitDistance:
    """Compare the distance between the label distributions of two splits with random splits of the same documents.

    The same lists and seed always give the same result.
    """
    documents = [*first, *second]
    place = {label: number for number, label in enumerate(counts(documents))}
    label_places = np.array([place[label] for labels in documents for label in labels], dtype=np.int64)
    document = np.repeat(np.arange(len(documents)), [len(labels) for labels in documents])
    all_counts = np.bincount(label_places, minlength=len(place))

    def distance(chosen: Ints) -> float | None:
        in_first = np.zeros(len(documents), dtype=np.bool_)
        in_first[chosen] = True
        first_counts = np.bincount(label_places[in_first[document]], minlength=len(place))
        return total_variation(first_counts, all_counts - first_counts)

    value = distance(np.arange(len(first)))
    if value is None:
        return SplitDistance(None, None, None)
    shuffling = generator(seed, "label shares")
    # If few documents have labels, one side of a random split may have none. The distance is then 0.
    distances = [distance(shuffling.permutation(len(documents))[: len(first)]) or 0.0 for _ in range(SHUFFLES)]
    return SplitDistance(value, *percentiles(np.array(distances)))
