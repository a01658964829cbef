"""Labels that two plain systems rank for documents: by the words of the labels, and by labelled documents like them.

Label match (`label_match`): a concept is ranked by the greatest (1 + ln n) · ln((D + 1) / d) of its labels, n being how
often the label stands in the document, word by word, and d in how many of the D documents it does. Where one label
holds another only the longer counts, as in "fishing licence".

Nearest documents (`nearest`): documents are compared by the cosine of their words' (1 + ln n) · ln((D + 1) / (d + 1)),
and a label is ranked by the sum of the squared cosines of those of the NEIGHBOURS most alike that have it.

In both what stands in a title counts TITLE times. The constants were chosen on the train and dev documents of EURLEX57K
that tests/benchmarks/suggestions.py measures on, without those of test.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import log
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from corpora.core.words import words_of

TITLE = 4  # times that a word of a title counts
NEIGHBOURS = 20  # documents whose labels count
PLACES = 6  # of a score, so that the last bits of a sum, which differ between machines, part no ties
_CELLS = 1 << 22  # similarities that are in memory at a time: 32 MiB


def terms_of(text: str) -> list[str]:
    """The words of a text as they are compared: as core/words.py has them, a final s cut off, by which English and
    French plurals differ from singulars."""
    return [word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word for word in words_of(text)]


class Phrases:
    """The labels of concepts, as phrases that are looked for in texts."""

    def __init__(self, labels: Iterable[tuple[str, str]]) -> None:
        """labels: (concept, text of one of its labels); labels of the same terms are one phrase."""
        found: dict[tuple[str, ...], set[str]] = defaultdict(set)
        for concept, text in labels:
            if terms := tuple(terms_of(text)):
                found[terms].add(concept)
        self.concepts: list[list[str]] = [sorted(found[terms]) for terms in sorted(found)]  # by the phrase's number
        self._numbers = {terms: number for number, terms in enumerate(sorted(found))}
        lengths: dict[str, set[int]] = defaultdict(set)
        for terms in found:
            lengths[terms[0]].add(len(terms))
        # First term -> how long the phrases are that begin with it, the longest first.
        self._lengths = {term: sorted(of, reverse=True) for term, of in lengths.items()}

    def found_in(self, terms: Sequence[str]) -> Iterator[int]:
        """The number of each phrase, as often as it stands there; none that lies within a longer one."""
        end = 0
        for start, term in enumerate(terms):
            for length in self._lengths.get(term, ()):
                if start + length <= end:  # and so do all shorter ones
                    break
                number = self._numbers.get(tuple(terms[start : start + length]))
                if number is not None:
                    yield number
                    end = start + length
                    break


class Counts:
    """How often each of many things stands in each of many documents, gathered document by document."""

    def __init__(self) -> None:
        self._columns: dict[Any, int] = {}
        self._rows: list[tuple[np.ndarray, np.ndarray]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, title: Iterable[Any], rest: Iterable[Any]) -> None:
        """The next document: what stands in its title, and elsewhere in it."""
        counts = Counter(rest)
        for each in title:
            counts[each] += TITLE
        columns = [self._columns.setdefault(each, len(self._columns)) for each in counts]
        self._rows.append((np.array(columns, np.int32), np.array(list(counts.values()), np.int32)))

    def things(self) -> list[Any]:
        """What each column counts."""
        return list(self._columns)

    def matrix(self) -> csr_array:
        """(documents, things): 1 + ln of how often, 0 where it does not stand."""
        ends = np.cumsum([0, *(len(columns) for columns, _ in self._rows)])
        columns, counts = (
            np.concatenate([row[part] for row in self._rows]) if self._rows else np.zeros(0) for part in (0, 1)
        )
        return csr_array((1 + np.log(counts), columns, ends), shape=(len(self._rows), len(self._columns)))


def _documents(matrix: csr_array) -> np.ndarray:
    """In how many documents each thing stands."""
    return np.bincount(matrix.indices, minlength=matrix.shape[1])


def label_match(counts: Counts, phrases: Phrases) -> Iterator[dict[str, float]]:
    """For each document the concepts of which a label stands in it, with their scores. counts: of phrases' numbers."""
    matrix, numbers = counts.matrix(), counts.things()
    rarity = [log((len(counts) + 1) / documents) for documents in _documents(matrix)]
    for row in range(len(counts)):
        scores: dict[str, float] = {}
        for place in range(matrix.indptr[row], matrix.indptr[row + 1]):
            column = matrix.indices[place]
            score = round(float(matrix.data[place] * rarity[column]), PLACES)
            for concept in phrases.concepts[numbers[column]]:
                scores[concept] = max(score, scores.get(concept, 0.0))
        yield scores


def nearest(
    counts: Counts, labels: Sequence[Sequence[str]], apart: Sequence[str], progress: Callable[[int], object]
) -> Iterator[dict[str, float]]:
    """For each document the labels of those that are most alike, with their scores. counts: of terms.

    labels: of each document, none of those that are not learned from. apart: documents of the same value, such as
    translations, do not learn from one another, nor does one from itself. Of documents that are equally alike the
    first in order count. Products are made in blocks of documents, against those alone that have labels; `progress` is
    told of documents.
    """
    vectors = _normed(counts.matrix())
    learned = np.array([row for row, of in enumerate(labels) if of], dtype=np.int64)
    others = vectors[learned].T.tocsr()
    places: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(learned):
        places[apart[row]].append(place)
    block = max(1, _CELLS // max(1, len(learned)))
    for start in range(0, len(labels), block):
        alike = (vectors[start : start + block] @ others).toarray()
        for row, cosines in enumerate(alike, start):
            cosines[places.get(apart[row], [])] = 0.0
            scores: dict[str, float] = defaultdict(float)
            for place in _greatest(cosines.round(PLACES)):
                for label in labels[learned[place]]:
                    scores[label] += float(cosines[place]) ** 2
            yield {label: round(score, PLACES) for label, score in scores.items()}
        progress(len(alike))


def _normed(matrix: csr_array) -> csr_array:
    """(documents, terms): weighed by the rarity of the terms, each document of length 1, or 0 if nothing is in it."""
    matrix.data *= np.log((matrix.shape[0] + 1) / (_documents(matrix) + 1))[matrix.indices]
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    length = np.sqrt(np.bincount(rows, matrix.data**2, minlength=matrix.shape[0]))
    matrix.data /= np.where(length, length, 1.0)[rows]
    return matrix


def _greatest(values: np.ndarray) -> np.ndarray:
    """The places of the NEIGHBOURS greatest above 0, the greatest first, equal ones in their order."""
    least = np.partition(values, -NEIGHBOURS)[-NEIGHBOURS] if len(values) > NEIGHBOURS else 0.0
    places = np.flatnonzero((values >= least) & (values > 0))
    return places[np.argsort(-values[places], kind="stable")][:NEIGHBOURS]
