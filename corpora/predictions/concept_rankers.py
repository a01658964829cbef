"""Two predictors that rank a vocabulary's concepts for each record of a corpus.

`label-match` ranks the concepts whose labels occur in the record's text. It searches for labels in the record's
language and in English. `nearest` ranks the labels of the records with the most similar texts.

A predictor's version is a digest of everything that its rankings depend on. Running the command again therefore has no
effect, and running it with different options creates a new version.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain
from math import log
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from corpora.core import CorpusError
from corpora.engines import explain_full_disk
from corpora.models import Label, Vocabulary
from corpora.predictions.rankings import Scores, add_rankings, rank_labels
from corpora.sources.compression import Progress
from corpora.storage.inventory import declared_records
from corpora.storage.layout import Predictions, check_fields, lock_corpus, manifest_of, write_manifest
from corpora.vocabulary.concept_index import languages_for, vocabulary_named
from corpora.vocabulary.thesaurus import words_of

# --- The two ranking methods.
#
# Label match (`label_match`): The score of a label is (1 + ln n) · ln((D + 1) / d), where n is the label's number of
# occurrences in the document, D is the number of documents, and d is the number of documents that contain the label. A
# concept's score is the highest score of its labels. Labels are compared word by word. If a longer label contains a
# shorter label at the same place, such as "fishing licence" and "licence", only the longer label counts.
#
# Nearest documents (`nearest`): Each document is a vector of its words' weights (1 + ln n) · ln((D + 1) / (d + 1)), and
# the similarity of two documents is the cosine of their vectors. The NEIGHBOURS most similar documents are selected. A
# label's score is the sum of the squared similarities of the selected documents that have the label.
#
# In both methods, a word in the title counts TITLE times. The constants were tuned on the train and dev documents of
# EURLEX57K in benchmarks/suggestions.py. The test documents were not used.


TITLE = 4  # weight of a word in the title
NEIGHBOURS = 20  # number of similar documents whose labels count
PLACES = 6  # decimal places of scores; they are rounded so that ties don't depend on a machine's rounding errors
_CELLS = 1 << 22  # maximum number of similarities in memory at a time, which take 32 MiB


def terms_of(text: str) -> list[str]:
    """Return the normalized words of a text. The final s of English and French plurals is removed."""
    return [word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word for word in words_of(text)]


class Phrases:
    """An index of concepts' labels that finds their occurrences in texts."""

    def __init__(self, labels: Iterable[tuple[str, str]]) -> None:
        """Index the labels. Labels with the same terms become a single phrase.

        labels: (concept, label) pairs
        """
        concepts_by_terms: dict[tuple[str, ...], set[str]] = defaultdict(set)
        for concept, text in labels:
            if terms := tuple(terms_of(text)):
                concepts_by_terms[terms].add(concept)
        # The concepts that have each phrase as a label, by phrase number.
        self.concepts: list[list[str]] = [sorted(concepts_by_terms[terms]) for terms in sorted(concepts_by_terms)]
        self._numbers = {terms: number for number, terms in enumerate(sorted(concepts_by_terms))}
        lengths: dict[str, set[int]] = defaultdict(set)
        for terms in concepts_by_terms:
            lengths[terms[0]].add(len(terms))
        # For each term, the lengths of the phrases that start with it, longest first.
        self._lengths = {term: sorted(term_lengths, reverse=True) for term, term_lengths in lengths.items()}

    def occurrences(self, terms: Sequence[str]) -> Iterator[int]:
        """Yield the phrase number of each occurrence in a text. Phrases inside a longer phrase are skipped.

        terms: terms of the text
        """
        end = 0
        for start, term in enumerate(terms):
            for length in self._lengths.get(term, ()):
                if start + length <= end:  # this phrase and all shorter ones are inside the previous phrase
                    break
                number = self._numbers.get(tuple(terms[start : start + length]))
                if number is not None:
                    yield number
                    end = start + length
                    break


class Counts:
    """Counts of features, such as terms, in documents. Documents are added one at a time."""

    def __init__(self) -> None:
        self._columns: dict[Any, int] = {}
        self._rows: list[tuple[np.ndarray, np.ndarray]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, title: Iterable[Any], rest: Iterable[Any]) -> None:
        """Add a document.

        title: features in its title
        rest: features in the rest of the document
        """
        counts = Counter(rest)
        for feature in title:
            counts[feature] += TITLE
        columns = [self._columns.setdefault(feature, len(self._columns)) for feature in counts]
        self._rows.append((np.array(columns, np.int32), np.array(list(counts.values()), np.int32)))

    def features(self) -> list[Any]:
        """Return the feature for each matrix column."""
        return list(self._columns)

    def matrix(self) -> csr_array:
        """Return 1 + ln(count) for each feature in each document, and 0 where the count is 0 (documents, features)."""
        ends = np.cumsum([0, *(len(columns) for columns, _ in self._rows)])
        columns, counts = (
            np.concatenate([row[part] for row in self._rows]) if self._rows else np.zeros(0) for part in (0, 1)
        )
        return csr_array((1 + np.log(counts), columns, ends), shape=(len(self._rows), len(self._columns)))


def _document_frequencies(matrix: csr_array) -> np.ndarray:
    """Return the number of documents that contain each feature (features,)."""
    return np.bincount(matrix.indices, minlength=matrix.shape[1])


def label_match(counts: Counts, phrases: Phrases) -> Iterator[dict[str, float]]:
    """Yield the scores of concepts for each document. Concepts without a label in the document's text are omitted.

    counts: occurrences of each phrase in each document; the features are phrase numbers
    phrases: labels of the concepts
    """
    matrix, numbers = counts.matrix(), counts.features()
    rarity = [log((len(counts) + 1) / frequency) for frequency in _document_frequencies(matrix)]
    for row in range(len(counts)):
        scores: dict[str, float] = {}
        for position in range(matrix.indptr[row], matrix.indptr[row + 1]):
            column = matrix.indices[position]
            score = round(float(matrix.data[position] * rarity[column]), PLACES)
            for concept in phrases.concepts[numbers[column]]:
                scores[concept] = max(score, scores.get(concept, 0.0))
        yield scores


def nearest(
    counts: Counts, labels: Sequence[Sequence[str]], groups: Sequence[str], progress: Callable[[int], object]
) -> Iterator[dict[str, float]]:
    """Yield the scores of labels for each document. Only labels of the most similar documents are included.

    Similarities are computed only with labelled documents, for a block of documents at a time. If documents are equally
    similar, the first documents are used.

    counts: occurrences of each term in each document
    labels: labels of each document; empty for documents whose labels must not be used
    groups: group of each document; documents in the same group, such as translations, do not use each other's labels
    progress: called with the number of documents processed
    """
    vectors = _weight_and_normalize(counts.matrix())
    labelled = np.array([row for row, document_labels in enumerate(labels) if document_labels], dtype=np.int64)
    labelled_vectors = vectors[labelled].T.tocsr()
    positions: dict[str, list[int]] = defaultdict(list)
    for position, row in enumerate(labelled):
        positions[groups[row]].append(position)
    block = max(1, _CELLS // max(1, len(labelled)))
    for start in range(0, len(labels), block):
        similarities = (vectors[start : start + block] @ labelled_vectors).toarray()
        for row, cosines in enumerate(similarities, start):
            cosines[positions.get(groups[row], [])] = 0.0
            scores: dict[str, float] = defaultdict(float)
            for position in _top_positions(cosines.round(PLACES)):
                for label in labels[labelled[position]]:
                    scores[label] += float(cosines[position]) ** 2
            yield {label: round(score, PLACES) for label, score in scores.items()}
        progress(len(similarities))


def _weight_and_normalize(matrix: csr_array) -> csr_array:
    """Weight each term by its rarity, and normalize each document to length 1 (documents, terms).

    Empty documents remain 0.
    """
    matrix.data *= np.log((matrix.shape[0] + 1) / (_document_frequencies(matrix) + 1))[matrix.indices]
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    length = np.sqrt(np.bincount(rows, matrix.data**2, minlength=matrix.shape[0]))
    matrix.data /= np.where(length, length, 1.0)[rows]
    return matrix


def _top_positions(values: np.ndarray) -> np.ndarray:
    """Return the indices of the NEIGHBOURS greatest values above 0, greatest first. Ties keep their order."""
    threshold = np.partition(values, -NEIGHBOURS)[-NEIGHBOURS] if len(values) > NEIGHBOURS else 0.0
    positions = np.flatnonzero((values >= threshold) & (values > 0))
    return positions[np.argsort(-values[positions], kind="stable")][:NEIGHBOURS]


LABEL_MATCH, NEAREST = "label-match", "nearest"
_METHOD = 2  # part of every version; increment it if a code change affects the rankings


@dataclass(frozen=True)
class SuggestResult:
    """The predictors that were created, starting with label match.

    already: whether the predictors already existed; if so, nothing was done and the remaining fields are empty
    learned: number of records whose labels `nearest` uses; if 0, only label match was created
    outside: for each label that is not a concept of the vocabulary, the number of records with the label
    """

    predictors: list[Predictions]
    vocabulary: Vocabulary
    already: bool = False
    learned: int = 0
    outside: Counter[str] = field(default_factory=Counter)


def check_suggest(corpus_name: str, vocabulary_name: str, learn_from: str, apart: str) -> tuple[Vocabulary, list[str]]:
    """Check the parameters of `suggest`. Return the vocabulary, and the fields that are not part of the text.

    Raise CorpusError if the corpus, the vocabulary, a field or the labels are missing.
    """
    learned_field, _, value = learn_from.partition("=")
    if learn_from and not (learned_field and value):
        raise CorpusError(f"--learn-from {learn_from}: expected FIELD=VALUE, such as split=train.")
    unread, manifest = sorted({learned_field, apart} - {""}), manifest_of(corpus_name)
    check_fields(corpus_name, manifest, unread)
    if len(unread) == len(manifest.fields):
        raise CorpusError(f"No field of corpus {corpus_name} is left to read as text. Remove --learn-from or --apart.")
    if learn_from and not manifest.declared:
        raise CorpusError(
            f"The records of corpus {corpus_name} have no declared labels to learn from. Remove --learn-from to use "
            "only label match."
        )
    return vocabulary_named(vocabulary_name), unread


def suggest(
    corpus_name: str,
    vocabulary_name: str,
    *,
    learn_from: str = "",
    apart: str = "",
    depth: int = 20,
    progress: Progress = lambda count: None,
) -> SuggestResult:
    """Create the two predictors for a corpus.

    learn_from: selects the records whose labels `nearest` uses, as FIELD=VALUE; "" for all records with labels
    apart: a field; records with the same value, such as translations, do not use each other's labels
    depth: maximum number of labels per record
    progress: called twice for each record

    The fields in `learn_from` and `apart` are not part of the text.

    Raise CorpusError if the corpus, the vocabulary, a field or the labels are missing.
    """
    vocabulary, unread = check_suggest(corpus_name, vocabulary_name, learn_from, apart)
    with lock_corpus(corpus_name), explain_full_disk("no suggestions were saved"):
        manifest = manifest_of(corpus_name)
        inputs = [_METHOD, manifest.posts_sha256, vocabulary.sha256, depth, unread]
        nearest_version = {NEAREST: _version([*inputs, learn_from, apart])} if manifest.declared else {}
        versions = {LABEL_MATCH: _version(inputs)} | nearest_version
        existing = [entry for name, version in versions.items() if (entry := manifest.predictions_of(name, version))]
        if len(existing) == len(versions):
            return SuggestResult(existing, vocabulary, already=True)
        records = _Records(vocabulary, tuple(field for field in manifest.fields if field not in unread))
        records.add_all(corpus_name, learn_from, apart, progress)
        created = []
        for name, scores in records.scores(progress).items():
            source = f"{vocabulary}{f', {learn_from}' if learn_from and name == NEAREST else ''}"
            manifest, predictions = add_rankings(
                corpus_name, manifest, _best(scores, depth), name=name, version=versions[name], source=source
            )
            created.append(predictions)
        write_manifest(corpus_name, manifest)
    return SuggestResult(created, vocabulary, learned=records.learned, outside=records.outside)


def _version(inputs: list[object]) -> str:
    return sha256(json.dumps(inputs).encode()).hexdigest()[:8]


def _best(scores: Iterator[tuple[str, Scores]], depth: int) -> Iterator[tuple[str, Scores]]:
    """Limit the scores of each document to the `depth` best labels."""
    for key, label_scores in scores:
        yield key, {label: label_scores[label] for label in rank_labels(label_scores)[:depth]}


class _Records:
    """The records of a corpus, sorted by id and prepared for comparison. The first field is treated as the title."""

    def __init__(self, vocabulary: Vocabulary, fields: tuple[str, ...]) -> None:
        self.vocabulary, self.fields = vocabulary, fields
        # Whether each concept is deprecated, by key. Deprecated concepts are not suggested.
        self.concepts = dict(vocabulary.concepts.values_list("key", "is_deprecated"))
        self.ids: list[str] = []
        self.labels: list[list[str]] = []
        self.apart: list[str] = []
        self.terms = Counts()
        # For each language: the phrases to search for, their counts in the records, and the records' ids.
        self.by_language: dict[str, tuple[Phrases, Counts, list[str]]] = {}
        self.outside: Counter[str] = Counter()

    @property
    def learned(self) -> int:
        return sum(map(bool, self.labels))

    def scores(self, progress: Progress) -> dict[str, Iterator[tuple[str, Scores]]]:
        """Return (record id, scores) pairs for each predictor."""
        scores = {LABEL_MATCH: self.matched()}
        if self.learned:
            scores[NEAREST] = zip(self.ids, nearest(self.terms, self.labels, self.apart, progress), strict=True)
        return scores

    def add_all(self, corpus_name: str, learn_from: str, apart: str, progress: Progress) -> None:
        """Add all records of a corpus.

        Raise CorpusError if no record selected by `learn_from` has a label from the vocabulary.
        """
        learned_field, _, value = learn_from.partition("=")
        for row in declared_records(corpus_name, None, ()):
            fields = row["fields"]
            self.add(row, learns=not learn_from or fields[learned_field] == value, apart=fields[apart] if apart else "")
            progress(1)
        if learn_from and not self.learned:
            raise CorpusError(
                f"No record in corpus {corpus_name} with {learn_from} has a label that is a concept of "
                f"{self.vocabulary}. Choose another value, or remove --learn-from."
            )

    def add(self, row: Mapping[str, Any], *, learns: bool, apart: str) -> None:
        """Add a record.

        learns: whether `nearest` can use the record's labels
        apart: the record's group; "" if there is none
        """
        title, *rest = [terms_of(row["fields"][field]) for field in self.fields]
        self.ids.append(row["id"])
        self.apart.append(apart or row["id"])
        self.terms.add(title, chain.from_iterable(rest))
        declared = (row["declared"] or []) if learns else []
        self.labels.append([label for label in declared if self.concepts.get(label) is False])
        self.outside.update(label for label in declared if label not in self.concepts)
        if row["language"] not in self.by_language:
            self.by_language[row["language"]] = (Phrases(self._labels(row["language"])), Counts(), [])
        phrases, counts, ids = self.by_language[row["language"]]
        counts.add(phrases.occurrences(title), chain.from_iterable(map(phrases.occurrences, rest)))
        ids.append(row["id"])

    def _labels(self, language: str) -> Iterator[tuple[str, str]]:
        languages = languages_for(self.vocabulary, [language])
        labels = Label.objects.filter(
            concept__vocabulary=self.vocabulary, concept__is_deprecated=False, language__in=languages
        )
        return labels.values_list("concept__key", "text").iterator()

    def matched(self) -> Iterator[tuple[str, Scores]]:
        """Yield each record id with its scores from label match.

        A label's rarity is computed separately in each language.
        """
        for phrases, counts, ids in self.by_language.values():
            yield from zip(ids, label_match(counts, phrases), strict=True)
