"""Which vocabularies there are, and what is known of their concepts: labels, paths, what stands beside them."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Case, Count, Exists, F, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Length

from corpora.core.language_codes import in_languages, serving
from corpora.models import Broader, Concept, Label, LabelWord, Related, Scheme, Vocabulary
from corpora.vocabulary.thesaurus import VocabularyError, label_in, words_of


class Shown(NamedTuple):
    """A label as it is shown, and its language, so that a page can say so where it is not the one asked for; empty
    where the source does not say it."""

    text: str
    language: str


def vocabularies_there() -> list[dict[str, Any]]:
    """By name and version. A row: vocabulary, version, concepts, schemes, languages, source, sha256, imported_at."""
    found = Vocabulary.objects.annotate(
        concept_count=Count("concepts", distinct=True), scheme_count=Count("schemes", distinct=True)
    )
    return [
        {
            "vocabulary": each.name,
            "version": each.version,
            "concepts": each.concept_count,
            "schemes": each.scheme_count,
            "languages": each.languages,
            "source": each.source,
            "sha256": each.sha256,
            "imported_at": each.imported_at,
        }
        for each in found
    ]


def vocabulary_named(name: str, version: int | None = None) -> Vocabulary:
    """That version, or the newest. VocabularyError if there is none."""
    found = Vocabulary.objects.filter(name=name)
    wanted = found.order_by("version").last() if version is None else found.filter(version=version).first()
    if wanted is None:
        there = ", ".join(f"{each.name} {each.version}" for each in Vocabulary.objects.all()) or "none"
        asked = name if version is None else f"{name} {version}"
        raise VocabularyError(f"There is no vocabulary {asked!r}; there is: {there}.")
    return wanted


@lru_cache(maxsize=64)
def vocabulary_of(key: int) -> Vocabulary:
    """The version with this primary key, read once in a process: versions never change, nor are keys used again."""
    return Vocabulary.objects.get(pk=key)


@lru_cache(maxsize=8)
def names_in(vocabulary: Vocabulary, language: str) -> Mapping[str, Shown]:
    """By id of all its concepts: the preferred label that `label_in` chooses for readers of the language; another
    label where there is no preferred one, and the id where there is none. Read once in a process, for the same reason.
    """
    rows = Label.objects.filter(concept__vocabulary=vocabulary).order_by("pk")
    found = _by_concept(rows.values_list("concept__key", "language", "text", "is_preferred"))
    nameless = {key: Shown(key, "") for key in vocabulary.concepts.values_list("key", flat=True)}
    return nameless | {key: _shown(labels, language) for key, labels in found.items()}


def languages_for(vocabulary: Vocabulary, languages: Iterable[str]) -> list[str]:
    """The tags of the vocabulary whose labels are compared with text in these languages: those that serve readers of
    them or of English, and no tag at all; every tag where the vocabulary has none of these."""
    return in_languages(vocabulary.languages, [*languages, "en", ""]) or vocabulary.languages


_Labels = dict[bool, dict[str, str]]  # whether preferred -> language -> text


def _by_concept(rows: Iterable[tuple[Any, str, str, bool]]) -> dict[Any, _Labels]:
    found: defaultdict[Any, _Labels] = defaultdict(lambda: {True: {}, False: {}})
    for concept, tag, text, is_preferred in rows:
        found[concept][is_preferred].setdefault(tag, text)
    return found


def _shown(labels: _Labels, language: str) -> Shown:
    return Shown(*label_in(labels[True] or labels[False], language))


def label_of_scheme(scheme: Scheme, language: str) -> str:
    """As that of a concept; its id where it has none."""
    return label_in(scheme.labels, language)[0] or scheme.key


class Tree(NamedTuple):
    """Where the concepts of a version stand, by their ids.

    above: the broader one over which the way to it leads: of several the one whose id comes first. narrower: how many
    offered ones are. scheme: the one by which it is told from others of its name, one within a domain before others:
    EuroVoc is a scheme of its own, of all its concepts.
    """

    above: Mapping[str, str]
    narrower: Mapping[str, int]
    scheme: Mapping[str, Scheme]

    def way_to(self, key: str) -> list[str]:
        """The ids from a concept that has no broader one down to this one, itself left out."""
        way: list[str] = []
        while key := self.above.get(key, ""):
            way.insert(0, key)
        return way


@lru_cache(maxsize=8)
def tree_of(vocabulary: Vocabulary) -> Tree:
    """Read once in a process, as names are: a list of ten concepts would need a statement for each level above them."""
    rows = Broader.objects.filter(concept__vocabulary=vocabulary).order_by("-broader__key")
    links = list(rows.values_list("concept__key", "broader__key", "concept__is_deprecated"))
    schemes = {each.pk: each for each in vocabulary.schemes.all()}
    within = Concept.schemes.through.objects.filter(scheme__vocabulary=vocabulary)
    last_first = within.order_by(F("scheme__domain").desc(nulls_first=True), "-scheme__key")
    return Tree(
        above={key: broader for key, broader, _ in links},
        narrower=Counter(broader for _, broader, is_deprecated in links if not is_deprecated),
        scheme={key: schemes[scheme] for key, scheme in last_first.values_list("concept__key", "scheme")},
    )


def descriptors(vocabulary: Vocabulary) -> dict[str, dict[str, Any]]:
    """By id of all its concepts: label and alt_labels in English, label_fr and so on in other languages, parents and
    related, as EURLEX57K publishes them and import_vocabulary reads them. A concept that has no label in English has
    the one that is shown in its place, since every reader needs one.
    """
    found: dict[str, dict[str, Any]] = {
        key: {"label": shown.text, "alt_labels": [], "parents": [], "related": []}
        for key, shown in sorted(names_in(vocabulary, "en").items())
    }
    labels = Label.objects.filter(concept__vocabulary=vocabulary).order_by("concept__key", "language", "text")
    for key, tag, text, is_preferred in labels.values_list("concept__key", "language", "text", "is_preferred"):
        beside = f"_{tag}" if tag not in ("", "en") else ""
        if not is_preferred:
            found[key].setdefault(f"alt_labels{beside}", []).append(text)
        elif beside:
            found[key][f"label{beside}"] = text
    broader = Broader.objects.filter(concept__vocabulary=vocabulary).order_by("broader__key")
    for key, other in broader.values_list("concept__key", "broader__key"):
        found[key]["parents"].append(other)
    related = Related.objects.filter(concept__vocabulary=vocabulary).order_by("related__key")
    for key, other in related.values_list("concept__key", "related__key"):
        found[key]["related"].append(other)
    return found


def concepts_of(vocabulary: Vocabulary, keys: Iterable[str]) -> dict[str, Concept]:
    """By id, those of these ids that there are."""
    return {each.key: each for each in vocabulary.concepts.filter(key__in=list(keys))}


_NESTED = """
WITH RECURSIVE above (start, concept) AS (
    SELECT concept_id, broader_id FROM corpora_broader WHERE concept_id IN ({0})
    UNION
    SELECT above.start, link.broader_id FROM above JOIN corpora_broader AS link ON link.concept_id = above.concept
)
SELECT start, concept FROM above WHERE concept IN ({0})
"""


def nested(concepts: Collection[Concept]) -> list[tuple[Concept, Concept]]:
    """Those of the concepts that are beside one that is broader, at whatever distance: (narrower, broader), by id."""
    known = {each.pk: each for each in concepts}
    if len(known) < 2:
        return []
    with connection.cursor() as cursor:
        # UNION leaves out what is there already, so that several ways up cost no more than one.
        cursor.execute(_NESTED.format(", ".join(["%s"] * len(known))), [*known, *known])
        pairs = [(known[start], known[above]) for start, above in cursor.fetchall()]
    return sorted(pairs, key=lambda pair: (pair[0].key, pair[1].key))


def siblings_of(concept: Concept) -> QuerySet[Concept]:
    """The other concepts that have a broader one in common with it, by id."""
    beside = Concept.objects.filter(broader__in=concept.broader.all()).exclude(pk=concept.pk)
    return beside.distinct().order_by("key")


def tops_of(scheme: Scheme) -> QuerySet[Concept]:
    """The concepts of a scheme that are offered and have no broader one in it, by id."""
    current = scheme.concepts.filter(is_deprecated=False)
    # Excluding broader__in would look up the links of each concept, which PostgreSQL may plan as nested loops.
    below = Broader.objects.filter(broader__in=current).values("concept")
    return current.exclude(pk__in=below).order_by("key")


# --- Concepts of a vocabulary by beginnings of words: "env pol" finds environmental policy, and so does "pol env".
#
# Each word that is typed must begin a word of one label, two typed words two of them, single letters apart. The label
# may be preferred or other, in any tag that serves readers of the given language or of English
# (core/language_codes.py), or in no language that its source says; where a vocabulary has none of these, in any.
# Accents, case and punctuation do not count (vocabulary/thesaurus.py).


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
