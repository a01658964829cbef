"""What suggested replies are worth, over all examples: mean ROUGE, Dist-1 and -2, precision at one and mean reciprocal
rank, each with its interval, and two systems compared.

rouge.py measures one example. Examples of one message are not independent, as they have the same suggestions: they are
left out together by the jackknife, and trade sides together in the randomization test. In 500 simulated sets of 30 to
300 examples each, with one to three of a message (tests/annotate/test_replies.py), the intervals of means held the
truth in 92.6% to 97.2%, and those of Dist, which are wide, in 95.2% to 99.8%.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from annotate.core.aggregation.answer_table import Floats
from annotate.core.estimation.comparisons import Difference, paired
from annotate.core.estimation.proportions import UNKNOWN, Estimate
from annotate.core.estimation.resampling import LEAST_UNITS, jackknife, jackknife_difference, randomization

# --- ROUGE and Dist of suggested replies, as the set MRS is measured (Zhang et al. 2021, A Dataset and Baselines for
# Multilingual Reply Suggestion, section 3.4), to the last digit of its eval.py with the package rouge 1.0.1.
#
# What is published differs from Lin 2004 in what is counted: n-grams count once each, full stops part words and are
# deleted, and n-grams run on across sentences. Whether a reply is in the response set is asked in replies.py.


JAPANESE = "ja"
LONGEST = 100  # words of a reference that is measured, and of a prediction that are
EMPTY = "<empty>"  # what stands for a prediction without words
TINY = 1e-8  # keeps F from dividing by nothing
ORDERS = (1, 2, 3)


class MissingTokenizer(Exception):
    """What parts a language into words is not installed; the sentence says what to do."""


class Scores(NamedTuple):
    """F1 of n-grams, from 0 to 1."""

    one: float
    two: float
    three: float

    @property
    def weighted(self) -> float:
        return self.one / 6 + self.two / 3 + self.three / 2


@dataclass(frozen=True)
class Best:
    """Of the replies to one message the one that counts. place: among the replies, from 0; words: those of Dist, full
    stops that stand alone among them."""

    scores: Scores
    place: int
    words: tuple[str, ...]


def tokenized(text: str, language: str) -> str:
    """The lower-case words of a text, with single spaces between: NLTK's words, without parting sentences first, for
    which NLTK would need a file from the network; of Japanese those of MeCab.

    MissingTokenizer if the text is Japanese and MeCab is not installed.
    """
    part = _mecab() if language == JAPANESE else _nltk()
    return " ".join(part(text.lower()))


@cache
def _nltk() -> Callable[[str], Sequence[str]]:
    from nltk.tokenize import word_tokenize  # here, as NLTK loads for two seconds

    return lambda text: word_tokenize(text, preserve_line=True)


@cache
def _mecab() -> Callable[[str], Sequence[str]]:
    try:
        import MeCab
        import unidic_lite  # noqa: F401  the dictionary that MeCab finds by itself
    except ImportError:
        raise MissingTokenizer(
            "Japanese is split into words by MeCab, which is not installed; install it with "
            "`pip install mecab-python3 unidic-lite`, or leave the Japanese predictions out."
        ) from None
    tagger = MeCab.Tagger("-Owakati")
    return lambda text: tagger.parse(text).split()


def rouge(prediction: str, reference: str) -> Scores:
    """Of two tokenized texts. A side with fewer than n words has a score of 0."""
    said, true = _words(prediction), _words(reference)
    return Scores(*(_f1(set(ngrams(said, n)), set(ngrams(true, n))) for n in ORDERS))


def _words(text: str) -> list[str]:
    """Between two full stops that are separated by spaces alone stands an empty word, as in the package."""
    return list(chain.from_iterable(" ".join(part.split()).split(" ") for part in text.split(".") if part))


def ngrams(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """In the order of the words; what stands there twice comes twice."""
    return list(zip(*(words[start:] for start in range(n)), strict=False))


def _f1(said: set[tuple[str, ...]], true: set[tuple[str, ...]]) -> float:
    if not (said and true):
        return 0.0
    both = len(said & true)
    precision, recall = both / len(said), both / len(true)
    return 2.0 * (precision * recall / (precision + recall + TINY))


def is_measured(reference: str) -> bool:
    """Whether a tokenized reference has words other than full stops, and LONGEST of them at most."""
    return len(reference.split()) <= LONGEST and bool(reference.replace(".", "").strip())


def best_of(predictions: Iterable[str], reference: str) -> Best:
    """The tokenized prediction with the highest weighted ROUGE, the first of several; one without words, or none at
    all, counts as EMPTY."""
    cut = [" ".join(said.split()[:LONGEST]) if said.replace(".", "").strip() else EMPTY for said in predictions]
    found = [rouge(said, reference) for said in cut or [EMPTY]]
    place = max(range(len(found)), key=lambda place: found[place].weighted)
    return Best(found[place], place, tuple((cut or [EMPTY])[place].split()))


class Example(NamedTuple):
    """A message with its reference reply. message: what the examples of one message share; best: the suggestion that
    counts; rank: that of the reference among the suggestions, from 1, and 0 if it is none of them, where the reference
    is in the response set; else None."""

    message: str
    best: Best
    rank: int | None


def rank_of(reference: str, suggestions: Sequence[str], response_set: AbstractSet[str]) -> int | None:
    """As Example has it. Texts are compared as they are, letter by letter."""
    if reference not in response_set:
        return None
    return suggestions.index(reference) + 1 if reference in suggestions else 0


# What is a mean over examples -> the value of one; None of an example that has no part in it.
MEANS: Mapping[str, Callable[[Example], float | None]] = {
    "weighted_rouge": lambda each: each.best.scores.weighted,
    "rouge1": lambda each: each.best.scores.one,
    "rouge2": lambda each: each.best.scores.two,
    "rouge3": lambda each: each.best.scores.three,
    "p1": lambda each: None if each.rank is None else float(each.rank == 1),
    "mrr": lambda each: None if each.rank is None else 1 / each.rank if each.rank else 0.0,
}
DISTINCT = {"dist1": 1, "dist2": 2}
MEASURES = (*("weighted_rouge", "rouge1", "rouge2", "rouge3"), *DISTINCT, *("p1", "mrr"))
# Dist is of all replies together, so that no coin for each message can make it of either system.
TESTED = ("weighted_rouge", "p1", "mrr")


class _Figure(NamedTuple):
    """without: the figure with each message left out that has a part in it."""

    value: float
    without: Floats


def figures(examples: Sequence[Example]) -> dict[str, Estimate]:
    """Measure -> its figure, with the interval for other messages like these; UNKNOWN where no example has a part in
    it. Dist-n is the number of distinct n-grams of the replies that counted, divided by their words."""
    found = _figures(examples)
    return {name: jackknife(*each) if (each := found[name]) else UNKNOWN for name in MEASURES}


def differences(first: Sequence[Example], second: Sequence[Example]) -> dict[str, Difference | None]:
    """Measure -> what the first system reaches less what the second does; None of fewer messages than LEAST_UNITS.
    ValueError unless both are of the same messages in the same order."""
    _check_same(first, second)
    found = {name: _mean_difference(first, second, value) for name, value in MEANS.items()}
    found |= {name: _distinct_difference(first, second, n) for name, n in DISTINCT.items()}
    return {name: found[name] for name in MEASURES}


def _mean_difference(
    first: Sequence[Example], second: Sequence[Example], value: Callable[[Example], float | None]
) -> Difference | None:
    """By how much the first is better, less by how much the second is, each with its own interval, as in by_class.py:
    where one is better by as much in every example, that does not show that it would be in all others."""

    def ahead(ones: Sequence[Example], others: Sequence[Example]) -> _Figure | None:
        better = (
            (one.message, None if (own := value(one)) is None else max(0.0, own - (value(other) or 0.0)))
            for one, other in zip(ones, others, strict=True)
        )
        return _mean(_sums(better))

    up, down = ahead(first, second), ahead(second, first)
    if up is None or down is None or len(up.without) < LEAST_UNITS:
        return None
    vary = up.without.std() > 0 and down.without.std() > 0
    correlation = float(np.corrcoef(up.without, down.without)[0, 1]) if vary else 0.0
    return paired(jackknife(*up), jackknife(*down), max(-1.0, min(1.0, correlation)))


def _distinct_difference(first: Sequence[Example], second: Sequence[Example], n: int) -> Difference | None:
    one, other = _distinct(first, n), _distinct(second, n)
    return jackknife_difference(one.value - other.value, one.without - other.without) if one and other else None


def p_values(first: Sequence[Example], second: Sequence[Example], *, seed: str) -> dict[str, float | None]:
    """Measure of TESTED -> the p-value of the randomization test that both systems reach the same; None where no
    example has a part in it. ValueError as in `differences`."""
    _check_same(first, second)
    found: dict[str, float | None] = {}
    for name in TESTED:
        ones, others = (_sums((each.message, MEANS[name](each)) for each in side) for side in (first, second))
        whole = ones[:, 1].sum()
        found[name] = randomization(ones[:, :1] / whole, others[:, :1] / whole, _total, seed=seed) if whole else None
    return found


def _total(sums: Floats) -> Floats:
    total: Floats = sums[0]
    return total


def _check_same(first: Sequence[Example], second: Sequence[Example]) -> None:
    if [(each.message, each.rank is None) for each in first] != [(each.message, each.rank is None) for each in second]:
        raise ValueError("The two systems are not measured on the same messages in the same order; give the same.")


# --- figures, and what they are with a message left out


def _figures(examples: Sequence[Example]) -> dict[str, _Figure | None]:
    found = {name: _mean(_sums((each.message, value(each)) for each in examples)) for name, value in MEANS.items()}
    return found | {name: _distinct(examples, n) for name, n in DISTINCT.items()}


def _sums(values: Iterable[tuple[str, float | None]]) -> Floats:
    """Of each message that has a part: the sum of its examples' values, and how many they are, (messages, 2). values:
    of each example, with its message; None where it has no part."""
    sums: dict[str, list[float]] = {}
    for message, value in values:
        if value is not None:
            own = sums.setdefault(message, [0.0, 0.0])
            own[0] += value
            own[1] += 1
    return np.array(list(sums.values()), dtype=np.float64).reshape(-1, 2)


def _mean(sums: Floats) -> _Figure | None:
    return _ratio(sums[:, 0].sum(), sums[:, 1].sum(), sums[:, 0], sums[:, 1]) if len(sums) else None


def _distinct(examples: Sequence[Example], n: int) -> _Figure | None:
    """A message that is left out takes those n-grams away that are in no reply to another."""
    own: dict[str, Counter[tuple[str, ...]]] = {}
    words: Counter[str] = Counter()
    for each in examples:
        own.setdefault(each.message, Counter()).update(ngrams(each.best.words, n))
        words[each.message] += len(each.best.words)
    messages = Counter(gram for grams in own.values() for gram in grams)
    alone = np.array([sum(messages[gram] == 1 for gram in grams) for grams in own.values()], dtype=np.float64)
    counted = np.array([words[message] for message in own], dtype=np.float64)
    return _ratio(float(len(messages)), counted.sum(), alone, counted) if examples else None


def _ratio(part: float, whole: float, parts: Floats, wholes: Floats) -> _Figure:
    """parts, wholes: what each message takes away; a message without which nothing is left changes nothing."""
    left = whole - wholes
    value = part / whole
    without = np.divide(part - parts, left, out=np.full(len(parts), value), where=left > 0)
    return _Figure(float(value), without)
