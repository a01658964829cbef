"""Concepts of a vocabulary as pages and programs list them: found by what is typed, or at a place of it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from django.db.models import F
from django.utils.translation import gettext as _

from annotate.kinds.kind import BROWSED, SEARCHED
from corpora.core.language_codes import same_language
from corpora.models import Concept, Scheme, Vocabulary
from corpora.vocabulary.concept_index import concepts_of, find, label_of_scheme, names_in, tops_of, tree_of

FOUND = 10  # concepts that a search shows
MOST = 100  # concepts of one place that are shown when browsing: EuroVoc has none with more


@dataclass(frozen=True)
class Row:
    """A concept as it is listed. language: of its name, if that is not the one asked for. found: the other label by
    which it was found. path: where it stands. narrower: how many concepts are; place: the address for browsing on.
    way: what led to it if it is chosen here. votes: who chose it, for adjudicators.
    """

    key: str
    name: str
    language: str
    path: list[str]
    is_chosen: bool
    way: str
    found: str = ""
    narrower: int = 0
    votes: Sequence[str] = ()

    @property
    def place(self) -> str:
        return f"concept:{self.key}"


@dataclass(frozen=True)
class Place:
    """A domain, scheme or concept that can be opened."""

    place: str
    name: str


def in_order(vocabulary: Vocabulary, keys: Iterable[str]) -> list[Concept]:
    """The concepts of these ids, in their order, those that there are."""
    found = concepts_of(vocabulary, keys)
    return [found[key] for key in keys if key in found]


@dataclass(frozen=True)
class Listing:
    """Concepts as rows. language: of the document; chosen: concept -> what led to it."""

    vocabulary: Vocabulary
    language: str
    chosen: Mapping[str, str] = field(default_factory=dict)

    def rows(
        self,
        concepts: Collection[Concept],
        way: str,
        *,
        found: Mapping[str, str] = MappingProxyType({}),
        votes: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> list[Row]:
        """A row each, in their order."""
        tree, names = tree_of(self.vocabulary), names_in(self.vocabulary, self.language)
        return [
            Row(
                key=each.key,
                name=names[each.key].text,
                language="" if self._is_own(names[each.key].language) else names[each.key].language,
                path=[*self._scheme(tree.scheme.get(each.key)), *(names[one].text for one in tree.way_to(each.key))],
                is_chosen=each.key in self.chosen,
                way=way or self.chosen.get(each.key, ""),
                found="" if found.get(each.key) == names[each.key].text else found.get(each.key, ""),
                narrower=tree.narrower.get(each.key, 0),
                votes=votes.get(each.key, ()),
            )
            for each in concepts
        ]

    def _is_own(self, tag: str) -> bool:
        """Whether readers of the document need not be shown the language of a label."""
        return not tag or same_language(tag, self.language)

    def _scheme(self, scheme: Scheme | None) -> list[str]:
        return [label_of_scheme(scheme, self.language)] if scheme else []

    def found(self, typed: str, also: Sequence[str] = ()) -> list[Row]:
        """also: further languages in which concepts are found. VocabularyError as vocabulary_search.find has it."""
        hits = find(self.vocabulary, typed, self.language, FOUND, also=also)
        others = {hit.concept.key: hit.label.text for hit in hits if not hit.label.is_preferred}
        others |= {hit.concept.key: hit.label.text for hit in hits if not self._is_own(hit.label.language)}
        return self.rows([hit.concept for hit in hits], SEARCHED, found=others)

    def browsed(self, at: str) -> dict[str, Any]:
        what, _colon, key = at.partition(":")
        concept = concepts_of(self.vocabulary, [key]).get(key) if what == "concept" else None
        if concept and not concept.is_deprecated:
            return self._at_concept(concept)
        scheme = self.vocabulary.schemes.filter(key=key).first() if what == "scheme" else None
        parts = [self._place(each) for each in (scheme.parts.all() if scheme else self._top_schemes())]
        tops = tops_of(scheme) if scheme else () if parts else self._tops()
        crumbs = [Place("", _("All"))] if scheme else []
        if scheme and scheme.domain:
            crumbs.append(self._place(scheme.domain))
        here = label_of_scheme(scheme, self.language) if scheme else ""
        places = sorted(parts, key=lambda part: (part.name, part.place))
        return {"places": places, "crumbs": crumbs, "here": here, **self._some(tops)}

    def _tops(self) -> Any:
        current = self.vocabulary.concepts.filter(is_deprecated=False)
        return current.exclude(broader__is_deprecated=False)

    def _top_schemes(self) -> Any:
        """Domains, or where there are none, the schemes; a scheme that is in no domain beside those that are is the
        whole vocabulary."""
        schemes = self.vocabulary.schemes.filter(domain=None)
        domains = schemes.exclude(parts=None)
        return domains.distinct() or schemes

    def _place(self, scheme: Scheme) -> Place:
        return Place(f"scheme:{scheme.key}", label_of_scheme(scheme, self.language))

    def _at_concept(self, concept: Concept) -> dict[str, Any]:
        current = {"is_deprecated": False}
        around = {
            "broader": list(concept.broader.filter(**current).order_by("key")),
            "related": list(concept.related.filter(**current).order_by("key")),
        }
        schemes = concept.schemes.order_by(F("domain").asc(nulls_last=True), "key").select_related("domain")
        crumbs = [Place("", _("All"))]
        if scheme := schemes.first():
            crumbs += [self._place(each) for each in (scheme.domain, scheme) if each]
        listed = {name: self.rows(found, BROWSED) for name, found in around.items()}
        crumbs += [Place(row.place, row.name) for row in listed["broader"][:1]]
        [own] = self.rows([concept], BROWSED)
        return {
            "crumbs": crumbs,
            "here": own.name,
            "own": own,
            "around": [(name, rows) for name, rows in listed.items() if rows],
            **self._some(concept.narrower.filter(**current).order_by("key")),
        }

    def _some(self, concepts: Any) -> dict[str, Any]:
        """The concepts of a place, by name; a place with thousands shows some, and says so."""
        some = list(concepts[: MOST + 1])
        rows = self.rows(some[:MOST], BROWSED)
        more = _("There are more than %(number)s here. Search for what is missing.") % {"number": MOST}
        return {
            "rows": sorted(rows, key=lambda row: (row.name.casefold(), row.key)),
            "note": more if len(some) > MOST else "",
        }
