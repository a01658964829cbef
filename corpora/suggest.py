"""From the records of a corpus and a vocabulary to two ranked predictors, which core/suggesting.py describes.

`label-match` ranks concepts by their labels in the text; `nearest` ranks the labels of the records most alike. Of a
vocabulary, it reads the labels that serve readers of the record's language or of English. A version is a digest of
all that the rankings depend on, so that the same again changes nothing, and whatever else is asked for stands beside
it.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain

from corpora.core.errors import CorpusError
from corpora.core.rankings import ranked
from corpora.core.suggesting import Counts, Phrases, label_match, nearest, terms_of
from corpora.declared import declared_records
from corpora.engines import full_disk_explained
from corpora.files import Progress
from corpora.locks import changing
from corpora.manifest import Manifest, Predictions, check_records, manifest_of, write_manifest
from corpora.models import Label, Vocabulary
from corpora.ranked import Scores, with_rankings
from corpora.vocabularies import languages_for, vocabulary_named

LABEL_MATCH, NEAREST = "label-match", "nearest"
_METHOD = 2  # part of every version; raise it when rankings change for the same input


@dataclass(frozen=True)
class Suggested:
    """The predictors, label match first. already: they were there, so that nothing was done and the rest says nothing.

    learned: records whose labels count; where there are none, only label match was made. outside: labels of these that
    are no concepts of the vocabulary -> how many records have them.
    """

    predictors: list[Predictions]
    vocabulary: Vocabulary
    already: bool = False
    learned: int = 0
    outside: Counter[str] = field(default_factory=Counter)


def suggest(
    corpus_name: str,
    vocabulary_name: str,
    *,
    learn_from: str = "",
    apart: str = "",
    depth: int = 20,
    progress: Progress = lambda count: None,
) -> Suggested:
    """Make the two predictors, with `depth` labels a record at the most.

    learn_from: FIELD=VALUE, the records whose labels `nearest` ranks; all that have labels if it is empty. apart: a
    field; records with an equal value, such as translations, do not learn from one another. Neither field is read as
    text. `progress` is told of records, of each twice. CorpusError if there is no such corpus, field or vocabulary, or
    nothing to learn from where learn_from says so.
    """
    learned_field, _, value = learn_from.partition("=")
    if learn_from and not (learned_field and value):
        raise CorpusError(f"--learn-from {learn_from}: write FIELD=VALUE, such as split=train.")
    unread = sorted({learned_field, apart} - {""})
    _check(corpus_name, manifest_of(corpus_name), unread, learn_from)
    vocabulary = vocabulary_named(vocabulary_name)
    with changing(corpus_name), full_disk_explained("no suggestions were kept"):
        manifest = manifest_of(corpus_name)
        about = [_METHOD, manifest.posts_sha256, vocabulary.sha256, depth, unread]
        versions = {LABEL_MATCH: _version(about)}
        if manifest.declared:
            versions[NEAREST] = _version([*about, learn_from, apart])
        there = [known for name, version in versions.items() if (known := manifest.predictions_of(name, version))]
        if len(there) == len(versions):
            return Suggested(there, vocabulary, already=True)
        read = _Read(vocabulary, tuple(each for each in manifest.fields if each not in unread))
        for row in declared_records(corpus_name, None, ()):
            fields = row["fields"]
            read.add(row, learns=not learn_from or fields[learned_field] == value, apart=fields[apart] if apart else "")
            progress(1)
        if learn_from and not read.learned:
            raise CorpusError(
                f"No record of corpus {corpus_name} with {learn_from} has a label that is a concept of {vocabulary}; "
                "name another value, or leave --learn-from out."
            )
        scores = {LABEL_MATCH: read.matched()}
        if read.learned:
            scores[NEAREST] = zip(read.ids, nearest(read.terms, read.labels, read.apart, progress), strict=True)
        made = []
        for name, of in scores.items():
            source = f"{vocabulary}{f', {learn_from}' if learn_from and name == NEAREST else ''}"
            manifest, predictions = with_rankings(
                corpus_name, manifest, _cut(of, depth), name=name, version=versions[name], source=source
            )
            made.append(predictions)
        write_manifest(corpus_name, manifest)
    return Suggested(made, vocabulary, learned=read.learned, outside=read.outside)


def _check(corpus_name: str, manifest: Manifest, fields: list[str], learn_from: str) -> None:
    check_records(corpus_name, manifest)
    if missing := [each for each in fields if each not in manifest.fields]:
        raise CorpusError(
            f"Corpus {corpus_name} has no field {missing[0]!r}; its fields are {', '.join(manifest.fields)}."
        )
    if len(fields) == len(manifest.fields):
        raise CorpusError(f"Of corpus {corpus_name} no field is left to be read as text; leave one of them out.")
    if learn_from and not manifest.declared:
        raise CorpusError(
            f"No labels came with the records of corpus {corpus_name}, so there is nothing to learn from; leave "
            "--learn-from out for label match alone."
        )


def _version(about: list[object]) -> str:
    return sha256(json.dumps(about).encode()).hexdigest()[:8]


def _cut(scores: Iterator[tuple[str, Scores]], depth: int) -> Iterator[tuple[str, Scores]]:
    """With the best labels of each document alone."""
    for key, of in scores:
        yield key, {label: of[label] for label in ranked(of)[:depth]}


class _Read:
    """The records of a corpus as they are compared, in order of their ids. The first field is taken for a title."""

    def __init__(self, vocabulary: Vocabulary, fields: tuple[str, ...]) -> None:
        self.vocabulary, self.fields = vocabulary, fields
        # Whether each concept is deprecated: such ones are in the vocabulary, and are not suggested.
        self.concepts = dict(vocabulary.concepts.values_list("key", "is_deprecated"))
        self.ids: list[str] = []
        self.labels: list[list[str]] = []
        self.apart: list[str] = []
        self.terms = Counts()
        # Language -> the labels looked for in records of it, how often each stands in them, and their ids.
        self.found: dict[str, tuple[Phrases, Counts, list[str]]] = {}
        self.outside: Counter[str] = Counter()

    @property
    def learned(self) -> int:
        return sum(map(bool, self.labels))

    def add(self, row: dict, *, learns: bool, apart: str) -> None:
        """The next record. apart: what it has in common with those that it must not learn from; "" for nothing."""
        title, *rest = [terms_of(row["fields"][field]) for field in self.fields]
        self.ids.append(row["id"])
        self.apart.append(apart or row["id"])
        self.terms.add(title, chain.from_iterable(rest))
        declared = (row["declared"] or []) if learns else []
        self.labels.append([label for label in declared if self.concepts.get(label) is False])
        self.outside.update(label for label in declared if label not in self.concepts)
        if row["language"] not in self.found:
            self.found[row["language"]] = (Phrases(self._labels(row["language"])), Counts(), [])
        phrases, counts, ids = self.found[row["language"]]
        counts.add(phrases.found_in(title), chain.from_iterable(map(phrases.found_in, rest)))
        ids.append(row["id"])

    def _labels(self, language: str) -> Iterator[tuple[str, str]]:
        languages = languages_for(self.vocabulary, [language])
        labels = Label.objects.filter(
            concept__vocabulary=self.vocabulary, concept__is_deprecated=False, language__in=languages
        )
        return labels.values_list("concept__key", "text").iterator()

    def matched(self) -> Iterator[tuple[str, Scores]]:
        """Id and label match's scores. A label is as rare as it is in the records of the same language."""
        for phrases, counts, ids in self.found.values():
            yield from zip(ids, label_match(counts, phrases), strict=True)
