"""The content of a published thesaurus: concepts with labels in several languages, links, schemes and domains.

Definite mistakes are errors. Irregularities that may be intended are only reported (Oddities). This module uses neither
files nor the database.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from hashlib import sha256
from itertools import chain, groupby

from corpora.core import NAMED, CorpusError, counted, listed
from corpora.core.language_tags import cased, in_languages, is_registered, serving

MAX_KEY = 200
MAX_LABEL = 500
MAX_TAG = 16  # maximum length of a language tag (characters)

Labels = dict[str, str]  # texts by language tag


class VocabularyError(CorpusError):
    """Raised if a vocabulary does not exist, or cannot be imported or searched."""


class TagError(VocabularyError):
    """Raised for an invalid language tag. Only the label with the tag is left out."""


@dataclass(slots=True)
class Term:
    """A concept.

    preferred: preferred label in each language
    other: alternative labels in each language
    broader, related, schemes: ids of concepts and schemes
    is_deprecated: whether the concept should no longer be used
    replaced_by: ids of the concepts to use instead
    """

    preferred: Labels = field(default_factory=dict)
    other: dict[str, set[str]] = field(default_factory=dict)
    broader: set[str] = field(default_factory=set)
    related: set[str] = field(default_factory=set)
    schemes: set[str] = field(default_factory=set)
    is_deprecated: bool = False
    replaced_by: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Group:
    """A scheme, such as a EuroVoc microthesaurus, or a domain, which groups schemes.

    within: id of the scheme's domain; "" for a domain, or for a scheme without a domain
    """

    labels: Labels = field(default_factory=dict)
    within: str = ""


@dataclass(slots=True)
class Thesaurus:
    """A thesaurus.

    terms: concepts by id
    groups: schemes and domains by id
    lengthened: URI by id, for concepts whose id is longer than the last segment of the URI
    unread: number of resources that were not imported, by type
    rejected: messages about labels that were left out
    """

    terms: dict[str, Term] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    lengthened: dict[str, str] = field(default_factory=dict)
    unread: Counter[str] = field(default_factory=Counter)
    rejected: list[str] = field(default_factory=list)

    @property
    def languages(self) -> list[str]:
        return sorted({tag for term in self.terms.values() for tag in (*term.preferred, *term.other)})

    @property
    def digest(self) -> str:
        """A SHA-256 of the content, independent of the files' format and order."""
        terms = [
            [
                key,
                sorted(term.preferred.items()),
                sorted((tag, sorted(texts)) for tag, texts in term.other.items()),
                *(sorted(keys) for keys in (term.broader, term.related, term.schemes)),
                *([sorted(term.replaced_by)] if term.is_deprecated else []),
            ]
            for key, term in sorted(self.terms.items())
        ]
        groups = [[key, sorted(group.labels.items()), group.within] for key, group in sorted(self.groups.items())]
        return sha256(json.dumps([terms, groups]).encode()).hexdigest()


class Faults:
    """Collects the faults in a vocabulary, so that they can be reported in a single error."""

    def __init__(self) -> None:
        self.first: list[str] = []
        self.count = 0

    def add(self, sentence: str) -> None:
        self.count += 1
        if len(self.first) < NAMED:
            self.first.append(sentence)

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Catch a VocabularyError raised in this block, and add it to the faults."""
        try:
            yield
        except VocabularyError as error:
            self.add(str(error))

    def check(self, where: str) -> None:
        """Raise VocabularyError if there are faults.

        where: names of the files, for the error message
        """
        if self.count == 1:
            raise VocabularyError(f"{where}: {self.first[0]}")
        if self.count:
            heading_end = f"; the first {NAMED} are" if self.count > NAMED else ""
            raise VocabularyError("\n".join([f"{where}: {self.count:,} errors{heading_end}:", *self.first]))


@dataclass(frozen=True)
class Oddities:
    """Irregularities in a thesaurus, sorted by id.

    unlabelled: ids of concepts without a preferred label in the requested language
    shared: ids of the concepts that share a label in the same language, by label
    alike: groups of ids that differ only in case or Unicode normalization
    deprecated: ids of the replacements for each deprecated id
    untagged: number of labels without a language tag
    unknown_tags: language tags that are not in the registry
    lengthened, unread, rejected: as in Thesaurus
    """

    unlabelled: list[str]
    shared: dict[str, list[str]]
    alike: list[list[str]]
    deprecated: dict[str, list[str]]
    untagged: int
    unknown_tags: list[str]
    lengthened: dict[str, str]
    unread: dict[str, int]
    rejected: list[str]


@dataclass(frozen=True)
class Changes:
    """The differences between two versions, sorted by id.

    gone, new: labels of the concepts that were removed or added, by id
    renamed: (earlier label, current label) in the same language, by id
    """

    gone: dict[str, str]
    new: dict[str, str]
    renamed: dict[str, tuple[str, str]]


def read_key(value: object, what: str = "id") -> str:
    """Return the value as an id.

    what: the kind of id, for the error message

    Raise VocabularyError if it is neither a string nor an integer, is empty, contains spaces, or is too long.
    """
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise VocabularyError(f"The {what} {_excerpt(value)} must be a string.")
    key = _clean(str(value), what)
    if not key:
        raise VocabularyError(f"An {what} is empty." if what == "id" else f"A {what} is empty.")
    if any(character.isspace() for character in key):
        raise VocabularyError(
            f"The {what} {_excerpt(key)} contains a space, but spaces separate ids in answers and runs. Use _ instead."
        )
    if len(key) > MAX_KEY:
        raise VocabularyError(f"The {what} {key[:20]}… has {len(key):,} characters. The limit is {MAX_KEY}.")
    return key


def read_label(value: object, key: str) -> str:
    """Return a concept's label, possibly "", with white space collapsed to single spaces.

    key: id of the concept

    Raise VocabularyError if the label is not a string or is too long.
    """
    if not isinstance(value, str):
        raise VocabularyError(f"A label of concept {key} is {_excerpt(value)}. It must be a string.")
    label = _clean(value, f"label of concept {key}")
    if len(label) > MAX_LABEL:
        raise VocabularyError(f"A label of concept {key} has {len(label):,} characters. The limit is {MAX_LABEL}.")
    return label


def _clean(value: str, what: str) -> str:
    if "\0" in value:
        raise VocabularyError(f"The {what} contains a NUL character, which databases cannot store. Remove it.")
    if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise VocabularyError(f"The {what} contains half of a surrogate pair, which is not a character. Remove it.")
    return " ".join(value.split())


def _excerpt(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else f"{text[:40]}…"


def read_tag(tag: str, key: str) -> str:
    """Return a label's language tag with each subtag in its conventional case.

    key: id of the concept

    Raise TagError if the tag is not valid.
    """
    if len(tag) > MAX_TAG or not re.fullmatch(r"[A-Za-z0-9_-]*", tag):
        raise TagError(f"A label of concept {key} has an invalid language code, {tag[:20]!r}.")
    return cased(tag)


def set_preferred(term: Term, key: str, tag: str, label: str) -> None:
    """Set a concept's preferred label in a language.

    Raise VocabularyError if the concept already has a different preferred label in this language.
    """
    if term.preferred.setdefault(tag, label) != label:
        raise VocabularyError(
            f"Concept {key} has two preferred labels in one language ({tag or 'not specified'}): "
            f"{', '.join(sorted([term.preferred[tag], label]))}. Make one of them an alternative label."
        )


def finish(thesaurus: Thesaurus, where: str, faults: Faults) -> None:
    """Normalize and check a thesaurus.

    Links between related concepts become symmetric, and preferred labels are removed from the alternative labels.
    Schemes that contain all concepts or none are removed, because they don't help to distinguish concepts.

    where: names of the files, for the error message
    faults: faults found earlier

    Raise VocabularyError if the thesaurus has a fault.
    """
    terms = thesaurus.terms
    if not (terms or faults.count):
        only = f", only {counted(thesaurus.unread)}. A concept has the type skos:Concept" if thesaurus.unread else ""
        faults.add(f"The file contains no concepts{only}.")
    for key, term in terms.items():
        if not (term.preferred or term.other or term.is_deprecated):
            faults.add(f"Concept {key} has no label in any language. Add one, or remove the concept.")
        for relation, keys in (("broader", term.broader), ("related", term.related)):
            if unknown := sorted(key for key in keys if key not in terms):
                faults.add(
                    f"Concept {key} has {listed(unknown, len(unknown), f'unknown {relation} concept')}. Add the "
                    "missing concepts, or remove the links."
                )
        if key in term.related:
            faults.add(f"Concept {key} is related to itself. Remove the link.")
    for sentence in thesaurus.rejected if faults.count else ():
        faults.add(sentence)
    with faults.collect():
        _check_no_cycle(terms)
    for key, term in terms.items():
        for scheme in sorted(term.schemes - thesaurus.groups.keys()):
            faults.add(f"Concept {key} is in the unknown scheme {scheme}. Add the scheme, or remove the link.")
    for scheme, group in thesaurus.groups.items():
        if group.within and group.within not in thesaurus.groups:
            faults.add(f"Scheme {scheme} is in the unknown domain {group.within}. Add the domain.")
    faults.check(where)
    for key, term in terms.items():
        for related_key in term.related:
            terms[related_key].related.add(key)
        for tag, text in term.preferred.items():
            term.other.get(tag, set()).discard(text)
        term.other = {tag: texts for tag, texts in term.other.items() if texts}
    _remove_uninformative_schemes(thesaurus)


def _check_no_cycle(terms: Mapping[str, Term]) -> None:
    try:
        TopologicalSorter({key: sorted(term.broader) for key, term in terms.items()}).prepare()
    except CycleError as error:
        # In the reversed list, each concept is narrower than the next. The first concept is repeated at the end.
        cycle = list(reversed(error.args[1]))
        shown_cycle = cycle if len(cycle) <= NAMED + 1 else [*cycle[:NAMED], "…", cycle[-1]]
        raise VocabularyError(
            f"The broader concepts form a cycle of {len(cycle) - 1:,}: {' → '.join(shown_cycle)}. Remove one of these "
            "links."
        ) from None


def _remove_uninformative_schemes(thesaurus: Thesaurus) -> None:
    terms, groups = thesaurus.terms, thesaurus.groups
    members = Counter(scheme for term in terms.values() for scheme in term.schemes)
    useful = {scheme for scheme, count in members.items() if 0 < count < len(terms)}
    useful |= {groups[scheme].within for scheme in useful} - {""}
    for term in terms.values():
        term.schemes &= useful
    thesaurus.groups = {scheme: group for scheme, group in groups.items() if scheme in useful}


def oddities(thesaurus: Thesaurus, language: str) -> Oddities:
    terms = thesaurus.terms
    keys, offered = sorted(terms), sorted(key for key, term in terms.items() if not term.is_deprecated)
    by_label = sorted((tag, _fold(text), key, text) for key in offered for tag, text in terms[key].preferred.items())
    shared: dict[str, list[str]] = {}
    for (_, _), rows in groupby(by_label, key=lambda row: row[:2]):
        labels_shared = list(rows)
        if len(labels_shared) > 1:
            shared.setdefault(labels_shared[0][3], [key for _, _, key, _ in labels_shared])
    groups = groupby(sorted(keys, key=lambda key: (_fold(key), key)), key=_fold)
    return Oddities(
        unlabelled=[key for key in offered if not in_languages(terms[key].preferred, [language])],
        shared=shared,
        alike=[alike for _, group in groups if len(alike := list(group)) > 1],
        deprecated={key: sorted(terms[key].replaced_by) for key in keys if terms[key].is_deprecated},
        untagged=sum(("" in term.preferred) + len(term.other.get("", ())) for term in terms.values()),
        unknown_tags=[tag for tag in thesaurus.languages if tag and not is_registered(tag)],
        lengthened=thesaurus.lengthened,
        unread=dict(sorted(thesaurus.unread.items())),
        rejected=thesaurus.rejected,
    )


def _fold(text: str) -> str:
    """Return a key for comparing texts regardless of case and Unicode normalization."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def label_in(labels: Mapping[str, str], language: str) -> tuple[str, str]:
    """Return the label to display and its language tag, or two empty strings if there are no labels.

    The first of these languages that has a label is chosen: the given language, a closely related language, English,
    and finally the language with the alphabetically first tag.
    """
    tags = tuple(labels)
    tag = next(chain(serving(tags, language), serving(tags, "en"), sorted(tags)), "")
    return labels.get(tag, ""), tag


def changes(before: Mapping[str, Labels], now: Mapping[str, Labels], language: str) -> Changes:
    """Compare two versions of a vocabulary.

    before, now: preferred labels by concept id
    language: language for reporting labels, if possible
    """

    def shown(side: Mapping[str, Labels], keys: Iterable[str]) -> dict[str, str]:
        return {key: label_in(side[key], language)[0] for key in sorted(keys)}

    renamed = {}
    for key in sorted(before.keys() & now.keys()):
        # Check the given language first, so that its labels are reported if they differ.
        common = before[key].keys() & now[key].keys()
        tags = list(dict.fromkeys([*serving(tuple(sorted(common)), language), *sorted(common)]))
        if differing := [tag for tag in tags if before[key][tag] != now[key][tag]]:
            renamed[key] = (before[key][differing[0]], now[key][differing[0]])
    return Changes(shown(before, before.keys() - now.keys()), shown(now, now.keys() - before.keys()), renamed)


# --- The words of a text, normalized for search: without accents, case and punctuation.


# Letters that Unicode does not decompose into a base letter and an accent.
_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ŧ": "t", "ı": "i", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe"}
)
# In scripts without spaces between words, each letter counts as a word: Thai to Tibetan, Burmese, Khmer, kana and Han.
_SINGLE = "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_WORD = rf"[{_SINGLE}]|[^\W_{_SINGLE}]+"
LONGEST_WORD = 64  # longer words are truncated, because a PostgreSQL index row holds at most 2,700 bytes


def words_of(text: str) -> list[str]:
    """Return the words of a text, normalized for search. For example, "L'été à Århus" becomes l, ete, a, arhus."""
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    plain = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    return [word[:LONGEST_WORD] for word in re.findall(_WORD, plain.translate(_LETTERS))]
