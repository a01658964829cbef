"""ROUGE and Dist of suggested replies, as the set MRS is measured (Zhang et al. 2021, A Dataset and Baselines for
Multilingual Reply Suggestion, section 3.4), to the last digit of its eval.py with the package rouge 1.0.1.

What is published differs from Lin 2004 in what is counted: n-grams count once each, full stops part words and are
deleted, and n-grams run on across sentences. Whether a reply is in the response set is asked in replies.py.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import NamedTuple

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
