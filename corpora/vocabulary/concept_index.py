"""Query vocabularies and their concepts: labels, the hierarchy, and search."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Case, Count, Exists, F, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Length

from corpora.core.language_tags import in_languages, serving
from corpora.models import Broader, Concept, Label, LabelWord, Related, Scheme, Vocabulary
from corpora.vocabulary.thesaurus import VocabularyError, label_in, words_of


class DisplayLabel(NamedTuple):
    """A label and its language tag, which is "" if the source does not state it.

    Pages show the tag if it differs from the requested language.
    """

    text: str
    language: str


def vocabulary_rows() -> list[dict[str, Any]]:
    """Return a dict for each version of each vocabulary, sorted by name and version.

    The keys are vocabulary, version, concepts, schemes, languages, source, sha256 and imported_at.
    """
    vocabularies = Vocabulary.objects.annotate(
        concept_count=Count("concepts", distinct=True), scheme_count=Count("schemes", distinct=True)
    )
    return [
        {
            "vocabulary": vocabulary.name,
            "version": vocabulary.version,
            "concepts": vocabulary.concept_count,
            "schemes": vocabulary.scheme_count,
            "languages": vocabulary.languages,
            "source": vocabulary.source,
            "sha256": vocabulary.sha256,
            "imported_at": vocabulary.imported_at,
        }
        for vocabulary in vocabularies
    ]


def vocabulary_named(name: str, version: int | None = None) -> Vocabulary:
    """Return a version of a vocabulary, by default the newest.

    Raise VocabularyError if there is no such vocabulary or version.
    """
    versions = Vocabulary.objects.filter(name=name)
    match = versions.order_by("version").last() if version is None else versions.filter(version=version).first()
    if match is None:
        available = ", ".join(f"{entry.name} {entry.version}" for entry in Vocabulary.objects.all()) or "none"
        requested = name if version is None else f"{name} {version}"
        raise VocabularyError(f"The vocabulary {requested!r} does not exist. Available vocabularies: {available}.")
    return match


@lru_cache(maxsize=64)
def vocabulary_of(key: int) -> Vocabulary:
    """Return the vocabulary version with this primary key. Cached, because versions are immutable."""
    return Vocabulary.objects.get(pk=key)


@lru_cache(maxsize=8)
def names_in(vocabulary: Vocabulary, language: str) -> Mapping[str, DisplayLabel]:
    """Return the label to display for each concept, by concept id. Cached, because versions are immutable.

    It is the preferred label that `label_in` chooses for the language. For a concept without preferred labels, it is an
    alternative label, or else the id.
    """
    rows = Label.objects.filter(concept__vocabulary=vocabulary).order_by("pk")
    labels_by_concept = _by_concept(rows.values_list("concept__key", "language", "text", "is_preferred"))
    nameless = {key: DisplayLabel(key, "") for key in vocabulary.concepts.values_list("key", flat=True)}
    return nameless | {
        key: DisplayLabel(*label_in(labels[True] or labels[False], language))
        for key, labels in labels_by_concept.items()
    }


def languages_for(vocabulary: Vocabulary, languages: Iterable[str]) -> list[str]:
    """Return the language tags of the labels to compare with text in these languages.

    They include the tags for English, and "" for labels without a tag. If the vocabulary has none of these tags, all
    its tags are returned.
    """
    return in_languages(vocabulary.languages, [*languages, "en", ""]) or vocabulary.languages


# Label texts: is_preferred -> language -> text.
_Labels = dict[bool, dict[str, str]]


def _by_concept(rows: Iterable[tuple[Any, str, str, bool]]) -> dict[Any, _Labels]:
    labels: defaultdict[Any, _Labels] = defaultdict(lambda: {True: {}, False: {}})
    for concept, tag, text, is_preferred in rows:
        labels[concept][is_preferred].setdefault(tag, text)
    return labels


def label_of_scheme(scheme: Scheme, language: str) -> str:
    """Return the scheme's label that `label_in` chooses for the language, or the scheme's id if it has no labels."""
    return label_in(scheme.labels, language)[0] or scheme.key


class Tree(NamedTuple):
    """The hierarchy of a vocabulary version. All keys are concept ids.

    above: broader concept of each concept; if there are several, the concept whose id is alphabetically first
    narrower: number of narrower concepts that are not deprecated
    scheme: scheme displayed to distinguish concepts with the same name; a scheme in a domain is preferred, because
        EuroVoc itself is also a scheme with all its concepts
    """

    above: Mapping[str, str]
    narrower: Mapping[str, int]
    scheme: Mapping[str, Scheme]

    def way_to(self, key: str) -> list[str]:
        """Return the ids on the path from a top concept down to a concept, excluding the concept itself."""
        way: list[str] = []
        while key := self.above.get(key, ""):
            way.insert(0, key)
        return way


@lru_cache(maxsize=8)
def tree_of(vocabulary: Vocabulary) -> Tree:
    """Return the hierarchy of a vocabulary version.

    Cached, because a list of concepts would otherwise need a query for each level above them.
    """
    rows = Broader.objects.filter(concept__vocabulary=vocabulary).order_by("-broader__key")
    links = list(rows.values_list("concept__key", "broader__key", "concept__is_deprecated"))
    schemes = {scheme.pk: scheme for scheme in vocabulary.schemes.all()}
    within = Concept.schemes.through.objects.filter(scheme__vocabulary=vocabulary)
    last_first = within.order_by(F("scheme__domain").desc(nulls_first=True), "-scheme__key")
    return Tree(
        above={key: broader for key, broader, _ in links},
        narrower=Counter(broader for _, broader, is_deprecated in links if not is_deprecated),
        scheme={key: schemes[scheme] for key, scheme in last_first.values_list("concept__key", "scheme")},
    )


def descriptors(vocabulary: Vocabulary) -> dict[str, dict[str, Any]]:
    """Return all concepts by id, in the format of EURLEX57K's descriptors, which import_vocabulary can read.

    For each concept, the keys are label and alt_labels for English, label_fr and so on for other languages, parents and
    related. The format requires an English label, so a concept without an English label gets its display label.
    """
    entries: dict[str, dict[str, Any]] = {
        key: {"label": shown.text, "alt_labels": [], "parents": [], "related": []}
        for key, shown in sorted(names_in(vocabulary, "en").items())
    }
    labels = Label.objects.filter(concept__vocabulary=vocabulary).order_by("concept__key", "language", "text")
    for key, tag, text, is_preferred in labels.values_list("concept__key", "language", "text", "is_preferred"):
        suffix = f"_{tag}" if tag not in ("", "en") else ""
        if not is_preferred:
            entries[key].setdefault(f"alt_labels{suffix}", []).append(text)
        elif suffix:
            entries[key][f"label{suffix}"] = text
    broader = Broader.objects.filter(concept__vocabulary=vocabulary).order_by("broader__key")
    for key, other_key in broader.values_list("concept__key", "broader__key"):
        entries[key]["parents"].append(other_key)
    related = Related.objects.filter(concept__vocabulary=vocabulary).order_by("related__key")
    for key, other_key in related.values_list("concept__key", "related__key"):
        entries[key]["related"].append(other_key)
    return entries


def concepts_of(vocabulary: Vocabulary, keys: Iterable[str]) -> dict[str, Concept]:
    """Return concepts by id. Ids that do not exist are omitted."""
    return {concept.key: concept for concept in vocabulary.concepts.filter(key__in=list(keys))}


_NESTED = """
WITH RECURSIVE above (start, concept) AS (
    SELECT concept_id, broader_id FROM corpora_broader WHERE concept_id IN ({0})
    UNION
    SELECT above.start, link.broader_id FROM above JOIN corpora_broader AS link ON link.concept_id = above.concept
)
SELECT start, concept FROM above WHERE concept IN ({0})
"""


def nested_pairs(concepts: Collection[Concept]) -> list[tuple[Concept, Concept]]:
    """Return the (narrower, broader) pairs among the concepts, sorted by id. The links can be indirect."""
    by_pk = {concept.pk: concept for concept in concepts}
    if len(by_pk) < 2:
        return []
    with connection.cursor() as cursor:
        # UNION removes duplicates, so the query doesn't follow a link twice if several paths lead to it.
        cursor.execute(_NESTED.format(", ".join(["%s"] * len(by_pk))), [*by_pk, *by_pk])
        pairs = [(by_pk[start], by_pk[above]) for start, above in cursor.fetchall()]
    return sorted(pairs, key=lambda pair: (pair[0].key, pair[1].key))


def top_concepts(scheme: Scheme) -> QuerySet[Concept]:
    """Return the top concepts of a scheme, sorted by id.

    A top concept is not deprecated, and each of its broader concepts is deprecated or outside the scheme.
    """
    current = scheme.concepts.filter(is_deprecated=False)
    # Use a subquery, because PostgreSQL may run a filter on broader__in as slow nested loops.
    below = Broader.objects.filter(broader__in=current).values("concept")
    return current.exclude(pk__in=below).order_by("key")


# --- Search for concepts by prefixes of words: "env pol" and "pol env" both find environmental policy.
#
# Each word of the query must be a prefix of a word in the same label. Two words of the query must match two different
# words of the label, unless they are single letters. Preferred and alternative labels are searched if their language is
# unknown, or if readers of the requested language or of English understand it (corpora/core/language_tags.py). If the
# vocabulary has no such labels, all labels are searched. Accents, case and punctuation are ignored
# (corpora/vocabulary/thesaurus.py).


LONGEST = 200  # maximum length of a query (characters)
_HIGHEST = b"\xff"  # greater than every byte in UTF-8


class Hit(NamedTuple):
    """A concept found by a search, and its label that matched the query."""

    concept: Concept
    label: Label


def find(
    vocabulary: Vocabulary, typed: str, language: str, limit: int = 10, *, also: Collection[str] = ()
) -> list[Hit]:
    """Return the best `limit` concepts for a query, each with its best label. An empty query finds none.

    Labels are sorted by these criteria in turn:
    - labels equal to the query come first
    - preferred labels come before alternative labels
    - labels that begin with the first word of the query come first
    - labels in the requested language, or in a related one, come first
    - shorter labels come first
    - remaining ties are sorted by normalized text, and then by the concept's id

    also: additional languages to search, such as other languages that the annotator reads

    Raise VocabularyError if the query is too long, or if it contains no letter or digit.
    """
    if not typed.strip():
        return []
    if len(typed) > LONGEST:
        raise VocabularyError(f"The search text has {len(typed):,} characters. The limit is {LONGEST}.")
    words = list(dict.fromkeys(words_of(typed)))
    if not words:
        raise VocabularyError("The search text contains no letters or digits. Type the beginning of a word.")
    matching = _matching(vocabulary, words, languages_for(vocabulary, [language, *also]))
    labels = _sorted_labels(matching, words_of(typed), serving(tuple(vocabulary.languages), language))
    hits: dict[int, Hit] = {}
    for label in _iterate_in_slices(labels, limit):
        hits.setdefault(label.concept_id, Hit(label.concept, label))
        if len(hits) == limit:
            break
    return list(hits.values())


def _has_prefix(name: str, word: str) -> Q:
    start = word.encode()
    return Q(**{f"{name}__gte": start, f"{name}__lt": start + _HIGHEST})


def _matching(vocabulary: Vocabulary, words: Sequence[str], languages: Sequence[str]) -> QuerySet[Label]:
    """Return the labels that match the query.

    The search starts with the query's longest word, which has the fewest matches.
    """
    longest, *remaining = sorted(words, key=len, reverse=True)
    leading = LabelWord.objects.filter(_has_prefix("word", longest), vocabulary=vocabulary)
    labels = Label.objects.filter(pk__in=leading.values("label"), language__in=languages)
    for word in remaining:
        of_label: QuerySet[LabelWord, Any] = LabelWord.objects.filter(_has_prefix("word", word), label=OuterRef("pk"))
        # In the query "in inte", both words are prefixes of "international". The label must therefore contain two words
        # that begin with "in". A single letter, however, can match the same word as another word of the query.
        needed = sum(other_word.startswith(word) for other_word in words) if len(word) > 1 else 1
        if needed > 1:
            of_label = of_label.values("label").annotate(count=Count("pk")).filter(count__gte=needed)
        labels = labels.filter(Exists(of_label))
    return labels


def _sorted_labels(labels: QuerySet[Label], words: Sequence[str], closest: Sequence[str]) -> QuerySet[Label]:
    """Sort the labels, best first.

    closest: language tags, closest to the requested language first
    """

    ranks = [When(language=tag, then=Value(rank)) for rank, tag in enumerate(closest)]

    def last_unless(condition: Q) -> Case:
        return Case(When(condition, then=Value(0)), default=Value(1))

    return labels.order_by(
        last_unless(Q(plain=" ".join(words).encode())),
        F("is_preferred").desc(),
        last_unless(_has_prefix("plain", words[0])),
        # If `closest` is empty, the rank would be a constant, which PostgreSQL would interpret as a column number.
        *([Case(*ranks, default=Value(len(ranks)))] if ranks else []),
        Length("plain"),
        "plain",
        "concept__key",
        "text",
    ).select_related("concept")


def _iterate_in_slices(labels: QuerySet[Label], limit: int) -> Iterator[Label]:
    """Yield the labels in order.

    They are fetched in slices of increasing size, because the number of labels needed for `limit` concepts is unknown.
    """
    start, size = 0, 3 * limit
    while part := list(labels[start : start + size]):
        yield from part
        if len(part) < size:
            return
        start, size = start + size, 10 * size
