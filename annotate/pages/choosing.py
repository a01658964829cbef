"""Choosing concepts of a vocabulary: what the panel beside a document shows, and what its buttons do.

The panel keeps its state in its own form, so that it works without JavaScript, and nothing is stored before the answer
is given: the concepts chosen so far (`answer`), what led to each (`way`), what is shown (`view`, `at`, `typed`), and by
a button what is to be done (`do`): add KEY WAY, drop KEY, open PLACE, or show VIEW. The page never holds the
vocabulary.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from django.db.models import Count, F
from django.http import QueryDict
from django.urls import reverse

from annotate.kinds.kind import ALLOW, ASK, BROWSED, SEARCHED, SUGGESTED, WAYS
from annotate.models import Annotator, Judgment, Task, Unit
from annotate.quality.suggestions import shown_to, suggested
from corpora.core.thesaurus import VocabularyError
from corpora.models import Broader, Concept, Item, Scheme, Vocabulary
from corpora.vocabularies import concepts_of, label_of_scheme, labels_of, names_in, nested, paths_to, tops_of
from corpora.vocabulary_search import LONGEST, find

FOUND = 10  # concepts that a search shows
MOST = 100  # concepts of one place that are shown when browsing: EuroVoc has none with more
SUGGESTIONS, SEARCH, BROWSE, VOTES = VIEWS = ("suggestions", "search", "browse", "votes")


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


@dataclass
class State:
    """What a form says. ways: concept -> what led to it, in the order in which they were chosen."""

    ways: dict[str, str] = field(default_factory=dict)
    view: str = ""
    at: str = ""
    typed: str = ""
    is_sure: bool = False


def read_ways(posted: QueryDict) -> dict[str, str]:
    """Concept -> what led to it, as a form says; empty where it does not."""
    ways = dict(pair.partition(" ")[::2] for pair in posted.getlist("way"))
    return {key: way if (way := ways.get(key, "")) in WAYS else "" for key in posted.getlist("answer") if key}


def read_state(posted: QueryDict) -> State:
    """The state after what was to be done."""
    state = State(
        ways=read_ways(posted),
        view=posted.get("view", ""),
        at=posted.get("at", ""),
        typed=posted.get("typed", ""),
        is_sure="is_sure" in posted,
    )
    verb, _, what = posted.get("do", "").partition(" ")
    match verb:
        case "add":
            key, _, way = what.partition(" ")
            state.ways.setdefault(key, way if way in WAYS else "")
            # What was typed has been found.
            state.typed, state.view = "", "" if state.view == SEARCH else state.view
        case "drop":
            state.ways.pop(what, None)
        case "open":
            state.view, state.at, state.typed = BROWSE, what, ""
        case "show":
            state.view, state.at, state.typed = what, "", ""
        case "find":
            state.view = SEARCH if state.typed.strip() else ""
    return state


def of_unit(unit: Unit, annotator: Annotator, posted: QueryDict | None) -> dict[str, Any]:
    """The panel of somebody who answers a unit; what they took back is chosen at first. Nothing where answers are no
    concepts.
    """
    if unit.task.vocabulary_id is None:
        return {}
    state = read_state(posted) if posted is not None else State(_taken_back(unit, annotator))
    address = reverse("choose", args=[unit.task.name])
    return _panel(unit.task, unit.item, state, shown_to(annotator, unit), address, reads=_read_by(annotator))


def of_question(task: Task, item: Item, annotator: Annotator, posted: QueryDict | None) -> dict[str, Any]:
    """The panel of a question in practice or test, for which nothing is suggested."""
    if task.vocabulary_id is None:
        return {}
    address = reverse("qualification-choose", args=[task.name, item.language])
    state = read_state(posted) if posted is not None else State()
    return _panel(task, item, state, [], address, reads=_read_by(annotator))


def of_decision(unit: Unit, annotator: Annotator, blind: bool, posted: QueryDict | None) -> dict[str, Any]:
    """The panel of an adjudicator, who sees who chose which concept, unless the unit is checked blind."""
    if unit.task.vocabulary_id is None:
        return {}
    state = read_state(posted) if posted is not None else State()
    address = reverse("adjudicate-choose", args=[unit.task.name, unit.pk])
    votes = {} if blind else _votes(unit)
    return _panel(unit.task, unit.item, state, suggested(unit), address, reads=_read_by(annotator), votes=votes)


def _read_by(annotator: Annotator) -> list[str]:
    """The languages in which somebody may look for concepts."""
    return list(annotator.languages.order_by("-level", "language").values_list("language", flat=True))


def _taken_back(unit: Unit, annotator: Annotator) -> dict[str, str]:
    """The concepts of the last answer to the unit that its author took back, so that they need not be found again."""
    own = Judgment.objects.filter(unit=unit, annotator=annotator, kind=Judgment.ANSWER, voided_by=None)
    last = own.exclude(voided_at=None).order_by("-pk").first()
    chosen = last.chosen.order_by("pk").values_list("concept__key", "way") if last else ()
    return dict(chosen)


def _votes(unit: Unit) -> dict[str, list[str]]:
    """Concept -> who chose it, those that most people chose first."""
    live = Judgment.objects.live().answers().filter(unit=unit).select_related("annotator__user").order_by("pk")
    found: dict[str, list[str]] = {}
    for judgment in live:
        for key in unit.task.kind.form.facets(judgment.label):
            found.setdefault(key, []).append(str(judgment.annotator))
    return dict(sorted(found.items(), key=lambda pair: (-len(pair[1]), pair[0])))


def _panel(
    task: Task,
    item: Item,
    state: State,
    suggestions: Sequence[str],
    address: str,
    *,
    reads: Sequence[str],
    votes: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> dict[str, Any]:
    """address: that which is told what is to be done. reads: further languages in which concepts are found."""
    version, asked = task.kind.thesaurus.version, task.kind.thesaurus
    listing = _Listing(version, item.language, state.ways)
    tabs = {VOTES: bool(votes), SUGGESTIONS: bool(suggestions), BROWSE: True}
    there = [name for name, is_there in tabs.items() if is_there]
    view = state.view if state.view in (SEARCH, *there) else there[0]
    chosen = in_order(version, state.ways)
    pairs = [] if asked.beside_broader == ALLOW else nested(chosen)
    names = names_in(version, item.language)
    shown: dict[str, Any] = {"rows": [], "places": [], "crumbs": [], "around": []}
    if view == SEARCH:
        shown |= listing.searched(state.typed, reads)
    elif view == SUGGESTIONS:
        shown |= {"rows": listing.rows(in_order(version, suggestions), SUGGESTED)}
    elif view == VOTES:
        shown |= {"rows": listing.rows(in_order(version, votes), "", votes=votes)}
    else:
        shown |= listing.browsed(state.at)
    return {
        "compose": address,
        "panel": {
            **shown,
            "view": view,
            "tabs": there,
            "at": state.at,
            "typed": state.typed[:LONGEST],
            "longest": LONGEST,
            "language": item.language,
            "chosen": listing.rows(chosen, ""),
            "unknown": sorted(state.ways.keys() - {each.key for each in chosen}),
            "pairs": [(names[broader.key].text, names[narrower.key].text) for narrower, broader in pairs],
            "may_insist": asked.beside_broader == ASK,
            "is_sure": state.is_sure,
            "least": asked.least,
            "most": asked.most,
        },
    }


def in_order(vocabulary: Vocabulary, keys: Iterable[str]) -> list[Concept]:
    """The concepts of these ids, in their order, those that there are."""
    found = concepts_of(vocabulary, keys)
    return [found[key] for key in keys if key in found]


@dataclass(frozen=True)
class _Listing:
    """Concepts as rows. language: of the document; chosen: concept -> what led to it."""

    vocabulary: Vocabulary
    language: str
    chosen: Mapping[str, str]

    def rows(
        self,
        concepts: Collection[Concept],
        way: str,
        *,
        found: Mapping[str, str] = MappingProxyType({}),
        votes: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> list[Row]:
        """A row each, in their order, by a few statements for all of them."""
        paths = paths_to(concepts)
        above = {each.pk: each for path in paths.values() for each in path}
        labels = labels_of([*concepts, *above.values()], self.language)
        schemes, narrower = self._schemes(concepts), self._narrower(concepts)
        return [
            Row(
                key=each.key,
                name=labels[each.pk].text or each.key,
                language=labels[each.pk].language,
                path=[*schemes.get(each.pk, []), *(labels[one.pk].text or one.key for one in paths[each.pk])],
                is_chosen=each.key in self.chosen,
                way=way or self.chosen.get(each.key, ""),
                found=found.get(each.key, ""),
                narrower=narrower.get(each.pk, 0),
                votes=votes.get(each.key, ()),
            )
            for each in concepts
        ]

    def _schemes(self, concepts: Collection[Concept]) -> dict[int, list[str]]:
        """By primary key: the scheme by which the concept is told from others of its name, those within a domain first:
        EuroVoc is a scheme of its own, of all its concepts."""
        rows = Scheme.objects.filter(concepts__in=concepts).annotate(concept=F("concepts__pk"))
        found: dict[int, list[str]] = {}
        for scheme in rows.order_by(F("domain").asc(nulls_last=True), "key"):
            found.setdefault(scheme.concept, [label_of_scheme(scheme, self.language)])
        return found

    def _narrower(self, concepts: Collection[Concept]) -> dict[int, int]:
        rows = Broader.objects.filter(broader__in=concepts).order_by().values_list("broader").annotate(Count("pk"))
        return dict(rows)

    def searched(self, typed: str, also: Sequence[str]) -> dict[str, Any]:
        try:
            hits = find(self.vocabulary, typed, self.language, FOUND, also=also)
        except VocabularyError as error:
            return {"note": str(error)}
        others = {hit.concept.key: hit.label.text for hit in hits if not hit.label.is_preferred}
        others |= {hit.concept.key: hit.label.text for hit in hits if hit.label.language not in ("", self.language)}
        rows = self.rows([hit.concept for hit in hits], SEARCHED, found=others)
        note = "" if hits else "No concept is called so. Type the beginning of another word of it, or browse."
        return {"rows": rows, "note": note}

    def browsed(self, at: str) -> dict[str, Any]:
        what, _, key = at.partition(":")
        if what == "concept" and (concept := concepts_of(self.vocabulary, [key]).get(key)):
            return self._at_concept(concept)
        scheme = self.vocabulary.schemes.filter(key=key).first() if what == "scheme" else None
        parts = [self._place(each) for each in (scheme.parts.all() if scheme else self._top_schemes())]
        tops = tops_of(scheme) if scheme else () if parts else self.vocabulary.concepts.filter(broader=None)
        crumbs = [Place("", "All")] if scheme else []
        if scheme and scheme.domain:
            crumbs.append(self._place(scheme.domain))
        here = label_of_scheme(scheme, self.language) if scheme else ""
        places = sorted(parts, key=lambda part: (part.name, part.place))
        return {"places": places, "crumbs": crumbs, "here": here, **self._some(tops)}

    def _top_schemes(self) -> Any:
        """Domains, or where there are none, the schemes; a scheme that is in no domain beside those that are is the
        whole vocabulary."""
        schemes = self.vocabulary.schemes.filter(domain=None)
        domains = schemes.exclude(parts=None)
        return domains.distinct() or schemes

    def _place(self, scheme: Scheme) -> Place:
        return Place(f"scheme:{scheme.key}", label_of_scheme(scheme, self.language))

    def _at_concept(self, concept: Concept) -> dict[str, Any]:
        around = {"broader": list(concept.broader.order_by("key")), "related": list(concept.related.order_by("key"))}
        schemes = concept.schemes.order_by(F("domain").asc(nulls_last=True), "key").select_related("domain")
        crumbs = [Place("", "All")]
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
            **self._some(concept.narrower.order_by("key")),
        }

    def _some(self, concepts: Any) -> dict[str, Any]:
        """The concepts of a place, by name; a place with thousands shows some, and says so."""
        some = list(concepts[: MOST + 1])
        rows = self.rows(some[:MOST], BROWSED)
        note = f"There are more than {MOST} here. Search for what is missing." if len(some) > MOST else ""
        return {"rows": sorted(rows, key=lambda row: (row.name.casefold(), row.key)), "note": note}
