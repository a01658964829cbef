"""Measures of suggested replies, with intervals: ROUGE, BLEU, Dist-1 and Dist-2, precision at 1 and reciprocal ranks.

Examples with the same message have the same suggestions, so they are dependent. The jackknife therefore leaves them out
together, and the randomization test swaps them together. Coverage was measured on 500 simulated sets with 30 to 300
examples and one to three examples per message (tests/annotate/core/test_generated_texts.py). Intervals of means covered
the true value in 92.6% to 97.2% of sets. Intervals of Dist are wide and covered it in 95.2% to 99.8%.
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
from annotate.core.estimation.differences import Difference, paired
from annotate.core.estimation.proportions import UNKNOWN, Estimate
from annotate.core.estimation.resampling import (
    LEAST_UNITS,
    Ratio,
    jackknife,
    jackknife_difference,
    randomization,
    ratio,
)
from annotate.core.measures.generated_texts import MissingExtra, scores

# --- ROUGE and Dist of suggested replies
#
# The results are identical, to the last digit, to those of the MRS dataset's eval.py with the package rouge 1.0.1
# (Zhang et al. 2021, A Dataset and Baselines for Multilingual Reply Suggestion, section 3.4). They differ from Lin 2004
# in three ways: repeated n-grams count once, full stops separate words and are removed, and n-grams cross sentence
# boundaries.


JAPANESE = "ja"
LONGEST = 100  # in words; longer references are not measured, and longer predictions are truncated
EMPTY = "<empty>"  # replaces a prediction without words
TINY = 1e-8  # avoids division by zero in F1
ORDERS = (1, 2, 3)


class Scores(NamedTuple):
    """F1 of unigrams, bigrams and trigrams, from 0 to 1."""

    one: float
    two: float
    three: float

    @property
    def weighted(self) -> float:
        return self.one / 6 + self.two / 3 + self.three / 2


@dataclass(frozen=True)
class Best:
    """The suggested reply with the highest score.

    scores: the reply's scores.
    place: index among the suggested replies.
    words: the reply's words including full stops, for Dist.
    """

    scores: Scores
    place: int
    words: tuple[str, ...]


def tokenize(text: str, language: str) -> str:
    """Return the lower-cased words of a text, separated by single spaces.

    Japanese is tokenized by MeCab, and all other languages by NLTK. NLTK doesn't split the text into sentences, because
    its sentence model would have to be downloaded.

    Raise MissingExtra if the tokenizer is not installed.
    """
    tokenize = _mecab() if language == JAPANESE else _nltk()
    return " ".join(tokenize(text.lower()))


@cache
def _nltk() -> Callable[[str], Sequence[str]]:
    try:
        from nltk.tokenize import word_tokenize  # imported here because NLTK takes two seconds to load
    except ImportError:
        raise MissingExtra("ROUGE", "nltk", "text") from None
    return lambda text: word_tokenize(text, preserve_line=True)


@cache
def _mecab() -> Callable[[str], Sequence[str]]:
    try:
        import MeCab
        import unidic_lite  # noqa: F401  MeCab's dictionary; MeCab finds it by itself
    except ImportError:
        raise MissingExtra("Splitting Japanese into words", "mecab-python3 unidic-lite", "ja") from None
    tagger = MeCab.Tagger("-Owakati")
    return lambda text: tagger.parse(text).split()


def rouge(prediction: str, reference: str) -> Scores:
    """Return the ROUGE scores of two tokenized texts. The score for n is 0 if either text has fewer than n words."""
    predicted, true = _words(prediction), _words(reference)
    return Scores(*(_f1(set(ngrams(predicted, n)), set(ngrams(true, n))) for n in ORDERS))


def _words(text: str) -> list[str]:
    """Split a tokenized text into words at spaces and full stops.

    As in the package rouge, two full stops with only spaces between them enclose an empty word.
    """
    return list(chain.from_iterable(" ".join(part.split()).split(" ") for part in text.split(".") if part))


def ngrams(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """Return the text's n-grams in order, including repeats."""
    return list(zip(*(words[start:] for start in range(n)), strict=False))


def _f1(predicted: set[tuple[str, ...]], true: set[tuple[str, ...]]) -> float:
    if not (predicted and true):
        return 0.0
    both = len(predicted & true)
    precision, recall = both / len(predicted), both / len(true)
    return 2.0 * (precision * recall / (precision + recall + TINY))


def is_measured(reference: str) -> bool:
    """Return whether a tokenized reference has words other than full stops, and at most LONGEST words."""
    return len(reference.split()) <= LONGEST and bool(reference.replace(".", "").strip())


def best_of(predictions: Iterable[str], reference: str) -> Best:
    """Return the prediction with the highest weighted ROUGE. If several tie, return the first.

    A prediction without words is replaced by EMPTY, and so is an empty list of predictions.

    predictions, reference: tokenized texts.
    """
    truncated = [" ".join(text.split()[:LONGEST]) if text.replace(".", "").strip() else EMPTY for text in predictions]
    scores = [rouge(text, reference) for text in truncated or [EMPTY]]
    place = max(range(len(scores)), key=lambda place: scores[place].weighted)
    return Best(scores[place], place, tuple((truncated or [EMPTY])[place].split()))


class Example(NamedTuple):
    """A message with a reference reply.

    message: the message. Several examples can have the same message.
    best: the suggestion with the highest score.
    rank: rank of the reference among the suggestions, starting at 1; 0 if it is not among them; None if it is not in
        the response set.
    reference: the reference reply and its language.
    random_rank: rank of the reference in a random set of replies that contains it; None if unknown.
    matches: BLEU's counts for the suggestion with the highest score; None if BLEU is not measured.
    """

    message: str
    best: Best
    rank: int | None
    reference: str = ""
    random_rank: int | None = None
    matches: Floats | None = None


def rank_of(reference: str, suggestions: Sequence[str], response_set: AbstractSet[str]) -> int | None:
    """Return the reference's rank (see Example). Texts must match exactly."""
    if reference not in response_set:
        return None
    return suggestions.index(reference) + 1 if reference in suggestions else 0


# Measures that are means over examples. Each function returns an example's value, or None if the example doesn't count.
MEANS: Mapping[str, Callable[[Example], float | None]] = {
    "weighted_rouge": lambda example: example.best.scores.weighted,
    "rouge1": lambda example: example.best.scores.one,
    "rouge2": lambda example: example.best.scores.two,
    "rouge3": lambda example: example.best.scores.three,
    "p1": lambda example: _is_first(example.rank),
    "mrr": lambda example: _reciprocal(example.rank),
    "random_p1": lambda example: _is_first(example.random_rank),
    "random_mrr": lambda example: _reciprocal(example.random_rank),
}
# Other measures. Each function computes the measure and its leave-one-out values.
OTHERS: Mapping[str, Callable[[Sequence[Example]], Ratio | None]] = {
    "bleu4": lambda examples: _bleu(examples),
    "dist1": lambda examples: _dist(examples, 1),
    "dist2": lambda examples: _dist(examples, 2),
    "macro_mrr": lambda examples: _macro_mrr(examples),
}
RANDOM = ("random_p1", "random_mrr")
MEASURES = (
    *("weighted_rouge", "rouge1", "rouge2", "rouge3", "bleu4"),
    *("dist1", "dist2", "p1", "mrr", "macro_mrr"),
    *RANDOM,
)
# Measures with a randomization test. Dist has none, because it has no value per message that the test could swap.
TESTED = ("weighted_rouge", "p1", "mrr")


def _is_first(rank: int | None) -> float | None:
    return None if rank is None else float(rank == 1)


def _reciprocal(rank: int | None) -> float | None:
    return None if rank is None else 1 / rank if rank else 0.0


def figures(examples: Sequence[Example]) -> dict[str, Estimate]:
    """Estimate each measure, with intervals over messages. A measure is UNKNOWN if no example counts for it.

    Dist-n is the number of distinct n-grams in the best replies, divided by the number of words in these replies.
    """
    values = {name: _mean((example.message, value(example)) for example in examples) for name, value in MEANS.items()}
    values |= {name: of(examples) for name, of in OTHERS.items()}
    return {name: jackknife(*value) if (value := values[name]) else UNKNOWN for name in MEASURES}


def differences(first: Sequence[Example], second: Sequence[Example]) -> dict[str, Difference | None]:
    """Estimate the difference between two systems in each measure, first minus second.

    A difference is None with fewer than LEAST_UNITS messages. Raise ValueError unless both systems have the same
    messages in the same order.
    """
    _check_same(first, second)
    by_measure = {name: _mean_difference(first, second, value) for name, value in MEANS.items()}
    by_measure |= {name: _other_difference(of(first), of(second)) for name, of in OTHERS.items()}
    return {name: by_measure[name] for name in MEASURES}


def _mean_difference(
    first: Sequence[Example], second: Sequence[Example], value: Callable[[Example], float | None]
) -> Difference | None:
    """Estimate the difference between two means from the examples on which each system is better.

    The estimate is the first system's mean advantage minus the second's. Each of the two has its own interval, so the
    difference has an interval even if it is the same in every example (see `classification.difference`).
    """

    def advantage(one: Example, other: Example) -> tuple[str, float | None]:
        value_of_one = value(one)
        return one.message, None if value_of_one is None else max(0.0, value_of_one - (value(other) or 0.0))

    def mean_advantage(ones: Sequence[Example], others: Sequence[Example]) -> Ratio | None:
        return _mean(map(advantage, ones, others))

    up, down = mean_advantage(first, second), mean_advantage(second, first)
    if up is None or down is None or len(up.without) < LEAST_UNITS:
        return None
    vary = up.without.std() > 0 and down.without.std() > 0
    correlation = float(np.corrcoef(up.without, down.without)[0, 1]) if vary else 0.0
    return paired(jackknife(*up), jackknife(*down), max(-1.0, min(1.0, correlation)))


def _other_difference(one: Ratio | None, other: Ratio | None) -> Difference | None:
    return jackknife_difference(one.value - other.value, one.without - other.without) if one and other else None


def p_values(first: Sequence[Example], second: Sequence[Example], *, seed: str) -> dict[str, float | None]:
    """Return the p-value of a randomization test for each measure in TESTED. It is None if no example counts.

    Raise ValueError unless both systems have the same messages in the same order.
    """
    _check_same(first, second)
    by_measure: dict[str, float | None] = {}
    for name in TESTED:
        ones, others = (_sums((example.message, MEANS[name](example)) for example in side) for side in (first, second))
        means = ones[:, :1] / ones[:, 1].sum(), others[:, :1] / ones[:, 1].sum()
        by_measure[name] = randomization(*means, lambda sums: sums[0], seed=seed) if len(ones) else None
    return by_measure


def _check_same(first: Sequence[Example], second: Sequence[Example]) -> None:
    ones, others = ([(example.message, example.rank is None) for example in side] for side in (first, second))
    if ones != others:
        raise ValueError("The two systems must be measured on the same messages in the same order.")


# --- Figures, and their leave-one-out values by message


def _sums(values: Iterable[tuple[str, float | None]]) -> Floats:
    """Return the sum of values and the number of examples for each message, (messages, 2).

    values: each example's message and value. Examples with the value None are left out.
    """
    sums: dict[str, list[float]] = {}
    for message, value in values:
        if value is not None:
            total = sums.setdefault(message, [0.0, 0.0])
            total[0] += value
            total[1] += 1
    return np.array(list(sums.values()), dtype=np.float64).reshape(-1, 2)


def _mean(values: Iterable[tuple[str, float | None]]) -> Ratio | None:
    sums = _sums(values)
    return ratio(sums[:, 0], sums[:, 1]) if len(sums) else None


def _dist(examples: Sequence[Example], n: int) -> Ratio | None:
    """Return Dist-n. Leaving out a message removes the n-grams that only occur in replies to this message."""
    by_message: dict[str, Counter[tuple[str, ...]]] = {}
    words: Counter[str] = Counter()
    for example in examples:
        by_message.setdefault(example.message, Counter()).update(ngrams(example.best.words, n))
        words[example.message] += len(example.best.words)
    messages = Counter(gram for grams in by_message.values() for gram in grams)
    alone = np.array([sum(messages[gram] == 1 for gram in grams) for grams in by_message.values()], dtype=np.float64)
    counted = np.array([words[message] for message in by_message], dtype=np.float64)
    return ratio(alone, counted, float(len(messages))) if examples else None


def _macro_mrr(examples: Sequence[Example]) -> Ratio | None:
    """Return the mean, over distinct reference replies, of each reply's MRR."""
    by_reply: dict[str, list[tuple[str, float | None]]] = {}
    for example in examples:
        if example.rank is not None:
            by_reply.setdefault(example.reference, []).append((example.message, _reciprocal(example.rank)))
    if not by_reply:
        return None
    messages = list(dict.fromkeys(message for values in by_reply.values() for message, _ in values))
    places = {message: place for place, message in enumerate(messages)}
    # For each message, the sum of the replies' means and the number of replies if the message is left out.
    means = {reply: _mean(values) for reply, values in by_reply.items()}
    whole = sum(mean.value for mean in means.values() if mean)
    sums, sizes = np.full(len(messages), whole), np.full(len(messages), float(len(means)))
    for reply, mean in means.items():
        indices = [places[message] for message in dict.fromkeys(message for message, _ in by_reply[reply])]
        if mean and len(indices) > 1:
            sums[indices] += mean.without - mean.value
        elif mean:
            sums[indices] -= mean.value
            sizes[indices] -= 1
    value = whole / len(means)
    return Ratio(value, np.divide(sums, sizes, out=np.full(len(messages), value), where=sizes > 0))


def _bleu(examples: Sequence[Example]) -> Ratio | None:
    """Return corpus BLEU of the best replies."""
    by_message: dict[str, Floats] = {}
    for example in examples:
        if example.matches is not None:
            by_message[example.message] = by_message.get(example.message, 0.0) + example.matches
    if not by_message:
        return None
    rows = np.array(list(by_message.values()))
    whole = rows.sum(axis=0)
    value = float(scores(whole[:, None])[0])
    return Ratio(value, scores((whole - rows).T) if len(rows) > 1 else np.array([value]))
