"""Concepts of a vocabulary by beginnings of words: "env pol" finds environmental policy, and so does "pol env".

Each word that is typed must begin a word of one label, two typed words two of them, single letters apart. The label may
be preferred or other, in any tag that serves readers of the given language or of English (core/language_tags.py), or in
no language that its source says; where a vocabulary has none of these, in any. Accents, case and punctuation do not
count (core/words.py).
"""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from django.db.models import Case, Count, Exists, F, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Length

from corpora.core.language_tags import serving
from corpora.core.thesaurus import VocabularyError
from corpora.core.words import words_of
from corpora.models import Concept, Label, LabelWord, Vocabulary
from corpora.vocabularies import languages_for

LONGEST = 200  # characters of a search
_AFTER = b"\xff"  # comes after every byte of UTF-8


class Hit(NamedTuple):
    """A concept, and which of its labels was found."""

    concept: Concept
    label: Label


def find(
    vocabulary: Vocabulary, typed: str, language: str, limit: int = 10, *, also: Collection[str] = ()
) -> list[Hit]:
    """At most `limit` concepts, each once, by its best label, best first; none if nothing was typed. also: further
    languages whose labels count, such as those that a reader reads.

    First comes a label that is what was typed; then preferred labels before others; then one that begins with the first
    word typed; then the given language before others; then the shorter; and where all that is equal, they are in the
    order of the text without accents and case, and of the concepts' ids. VocabularyError for a search that is too long,
    or holds no letter and no digit.
    """
    if not typed.strip():
        return []
    if len(typed) > LONGEST:
        raise VocabularyError(f"{len(typed):,} characters were typed; search with {LONGEST} at the most.")
    words = list(dict.fromkeys(words_of(typed)))
    if not words:
        raise VocabularyError("Nothing that was typed is a letter or a digit; type the beginning of a word.")
    matching = _matching(vocabulary, words, languages_for(vocabulary, [language, *also]))
    labels = _ranked(matching, words_of(typed), serving(tuple(vocabulary.languages), language))
    hits: dict[int, Hit] = {}
    for label in _each(labels, limit):
        hits.setdefault(label.concept_id, Hit(label.concept, label))
        if len(hits) == limit:
            break
    return list(hits.values())


def _begins(name: str, word: str) -> Q:
    start = word.encode()
    return Q(**{f"{name}__gte": start, f"{name}__lt": start + _AFTER})


def _matching(vocabulary: Vocabulary, words: Sequence[str], languages: Sequence[str]) -> QuerySet[Label]:
    """The longest word, of which there are fewest, leads; the others are looked up in the labels that have it."""
    first, *others = sorted(words, key=len, reverse=True)
    leading = LabelWord.objects.filter(_begins("word", first), vocabulary=vocabulary)
    labels = Label.objects.filter(pk__in=leading.values("label"), language__in=languages)
    for word in others:
        of_label = LabelWord.objects.filter(_begins("word", word), label=OuterRef("pk"))
        # Of "in inte", both begin "international": it takes two words that begin with "in". A single letter may be the
        # beginning of a word that was typed again.
        needed = sum(each.startswith(word) for each in words) if len(word) > 1 else 1
        if needed > 1:
            of_label = of_label.values("label").annotate(count=Count("pk")).filter(count__gte=needed)
        labels = labels.filter(Exists(of_label))
    return labels


def _ranked(labels: QuerySet[Label], words: Sequence[str], closest: Sequence[str]) -> QuerySet[Label]:
    """closest: tags, that of the given language first."""

    def last_unless(condition: Q) -> Case:
        return Case(When(condition, then=Value(0)), default=Value(1))

    return labels.order_by(
        last_unless(Q(plain=" ".join(words).encode())),
        F("is_preferred").desc(),
        last_unless(_begins("plain", words[0])),
        # PostgreSQL takes a constant for the number of a column.
        *([_place(closest)] if closest else []),
        Length("plain"),
        "plain",
        "concept__key",
        "text",
    ).select_related("concept")


def _place(closest: Sequence[str]) -> Case:
    return Case(*(When(language=tag, then=Value(at)) for at, tag in enumerate(closest)), default=Value(len(closest)))


def _each(labels: QuerySet[Label], limit: int) -> Iterator[Label]:
    """The labels in their order, read in growing parts: a concept may be found by many of its labels."""
    start, size = 0, 3 * limit
    while part := list(labels[start : start + size]):
        yield from part
        if len(part) < size:
            return
        start, size = start + size, 10 * size
