"""The concept picker: the panel next to a document where annotators choose concepts from a vocabulary.

The panel keeps its state in form fields, so that it works without JavaScript. Nothing is stored until the answer is
submitted. The form has these fields:

answer: keys of the chosen concepts
way: how the annotator found each of these concepts
view: the open tab
at: the open place in the vocabulary
typed: search text
do: command of the pressed button (add KEY WAY, drop KEY, open PLACE, show VIEW or find)
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from django.db.models import F
from django.http import QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _

from annotate.controls.suggestions import shown_to, suggested
from annotate.kinds.concept_kind import parse_ways, version_of
from annotate.kinds.kind import ALLOW, ASK, BROWSED, SEARCHED, SUGGESTED, WAYS
from annotate.models import Annotator, Change, Judgment, Task, Unit
from annotate.work.permit import Permit
from corpora.core.language_tags import same_language
from corpora.models import Concept, Item, Scheme, Vocabulary
from corpora.vocabulary.concept_index import (
    LONGEST,
    concepts_of,
    find,
    label_of_scheme,
    names_in,
    nested_pairs,
    top_concepts,
    tree_of,
)
from corpora.vocabulary.thesaurus import VocabularyError

# --- Lists of concepts for pages and the API, found by a search or by browsing the vocabulary

FOUND = 10  # maximum number of search results
MOST = 100  # maximum number of concepts listed at one place; no place in EuroVoc has more


@dataclass(frozen=True)
class Row:
    """A concept in a list.

    language: language of the name if it differs from the document's language, otherwise empty
    path: names of the concept's scheme and its broader concepts
    way: how the concept was found, which is stored with the answer if the concept is chosen from this list
    match: label that matched the search; empty if it is the name
    narrower: number of narrower concepts
    votes: annotators who chose the concept; shown only to adjudicators
    """

    key: str
    name: str
    language: str
    path: list[str]
    is_chosen: bool
    way: str
    match: str = ""
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


def concepts_in_order(vocabulary: Vocabulary, keys: Iterable[str]) -> list[Concept]:
    """Load the concepts with these keys, in the same order. Unknown keys are ignored."""
    concepts = concepts_of(vocabulary, keys)
    return [concepts[key] for key in keys if key in concepts]


@dataclass(frozen=True)
class Listing:
    """Builds lists of concepts for a document.

    language: the document's language
    chosen: mapping from the key of each chosen concept to how it was found
    """

    vocabulary: Vocabulary
    language: str
    chosen: Mapping[str, str] = field(default_factory=dict)

    def rows(
        self,
        concepts: Collection[Concept],
        way: str,
        *,
        matches: Mapping[str, str] = MappingProxyType({}),
        votes: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> list[Row]:
        """Return a row for each concept, in the same order.

        way: how these concepts were found; if empty, the value from `chosen` is used for chosen concepts
        matches: mapping from concept key to the label that matched the search
        votes: mapping from concept key to the annotators who chose the concept
        """
        tree, names = tree_of(self.vocabulary), names_in(self.vocabulary, self.language)
        return [
            Row(
                key=concept.key,
                name=names[concept.key].text,
                language="" if self._is_own(names[concept.key].language) else names[concept.key].language,
                path=[
                    *self._scheme(tree.scheme.get(concept.key)),
                    *(names[key].text for key in tree.way_to(concept.key)),
                ],
                is_chosen=concept.key in self.chosen,
                way=way or self.chosen.get(concept.key, ""),
                match="" if matches.get(concept.key) == names[concept.key].text else matches.get(concept.key, ""),
                narrower=tree.narrower.get(concept.key, 0),
                votes=votes.get(concept.key, ()),
            )
            for concept in concepts
        ]

    def _is_own(self, tag: str) -> bool:
        """Return whether a label is in the document's language or has no language.

        tag: language tag of the label
        """
        return not tag or same_language(tag, self.language)

    def _scheme(self, scheme: Scheme | None) -> list[str]:
        return [label_of_scheme(scheme, self.language)] if scheme else []

    def search(self, typed: str, also: Sequence[str] = ()) -> list[Row]:
        """Search the vocabulary. Raise VocabularyError for the same reasons as concept_index.find.

        typed: search text
        also: languages to search in addition to the document's language
        """
        hits = find(self.vocabulary, typed, self.language, FOUND, also=also)
        matched_labels = {hit.concept.key: hit.label.text for hit in hits if not hit.label.is_preferred}
        matched_labels |= {hit.concept.key: hit.label.text for hit in hits if not self._is_own(hit.label.language)}
        return self.rows([hit.concept for hit in hits], SEARCHED, matches=matched_labels)

    def browse(self, at: str) -> dict[str, Any]:
        kind_of_place, _colon, key = at.partition(":")
        concept = concepts_of(self.vocabulary, [key]).get(key) if kind_of_place == "concept" else None
        if concept and not concept.is_deprecated:
            return self._at_concept(concept)
        scheme = self.vocabulary.schemes.filter(key=key).first() if kind_of_place == "scheme" else None
        parts = [self._place(part) for part in (scheme.parts.all() if scheme else self._top_schemes())]
        tops = top_concepts(scheme) if scheme else () if parts else self._tops()
        crumbs = [Place("", _("All"))] if scheme else []
        if scheme and scheme.domain:
            crumbs.append(self._place(scheme.domain))
        here = label_of_scheme(scheme, self.language) if scheme else ""
        places = sorted(parts, key=lambda part: (part.name, part.place))
        return {"places": places, "crumbs": crumbs, "here": here, **self._list_context(tops)}

    def _tops(self) -> Any:
        current = self.vocabulary.concepts.filter(is_deprecated=False)
        return current.exclude(broader__is_deprecated=False)

    def _top_schemes(self) -> Any:
        """Return the vocabulary's domains, or its schemes if it has no domains.

        In a vocabulary with domains, a scheme without a domain represents the whole vocabulary and is left out.
        """
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
            crumbs += [self._place(part) for part in (scheme.domain, scheme) if part]
        listed = {name: self.rows(concepts, BROWSED) for name, concepts in around.items()}
        crumbs += [Place(row.place, row.name) for row in listed["broader"][:1]]
        [current_row] = self.rows([concept], BROWSED)
        return {
            "crumbs": crumbs,
            "here": current_row.name,
            "current": current_row,
            "around": [(name, rows) for name, rows in listed.items() if rows],
            **self._list_context(concept.narrower.filter(**current).order_by("key")),
        }

    def _list_context(self, concepts: Any) -> dict[str, Any]:
        """Return the template context for a list of at most MOST concepts, with a note if there are more."""
        some = list(concepts[: MOST + 1])
        rows = self.rows(some[:MOST], BROWSED)
        more = _("Only the first %(number)s are shown. Use the search to find others.") % {"number": MOST}
        return {
            "rows": sorted(rows, key=lambda row: (row.name.casefold(), row.key)),
            "note": more if len(some) > MOST else "",
        }


SUGGESTIONS, SEARCH, BROWSE, VOTES = VIEWS = ("suggestions", "search", "browse", "votes")


@dataclass
class State:
    """The state of the panel, read from its form.

    ways: mapping from the key of each chosen concept to how it was found, in the order chosen
    view: the open tab
    at: the open place in the vocabulary
    typed: search text
    is_sure: whether the user has confirmed choosing a concept together with a broader one
    """

    ways: dict[str, str] = field(default_factory=dict)
    view: str = ""
    at: str = ""
    typed: str = ""
    is_sure: bool = False


def read_state(posted: QueryDict) -> State:
    """Read the panel's state from its form, and apply the command of the pressed button."""
    state = State(
        ways=parse_ways(posted),
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
            # The search is finished, so clear the search field.
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


def unit_panel(unit: Unit, permit: Permit, posted: QueryDict | None) -> dict[str, Any]:
    """Return the panel for answering a unit.

    If the annotator has undone an answer to this unit, its concepts are preselected.
    """
    state = read_state(posted) if posted is not None else State(_undone_concepts(unit, permit.annotator))
    url = reverse("judge", args=[unit.task.name])
    return _panel(unit.task, unit.item, state, shown_to(permit.annotator, unit), url, reads=list(permit.levels))


def change_panel(
    judgment: Judgment, number: int, latest_change: Change | None, permit: Permit, posted: QueryDict | None
) -> dict[str, Any]:
    """Return the panel for changing an answer. The concepts of the current answer are preselected.

    number: number of the answer in its URL
    latest_change: latest change of the answer; None if there is none
    """
    task, unit = permit.task, judgment.unit
    if task.vocabulary_id is None:
        return {}
    # How concepts were found is stored only for some changed answers. It is never shown for changed answers, because
    # annotators must not learn which of the answers have it.
    ways = {} if latest_change else dict(judgment.chosen.order_by("pk").values_list("concept__key", "way"))
    current_concepts = {
        key: ways.get(key, "")
        for key in task.kind.form.facets(latest_change.label if latest_change else judgment.label)
    }
    state = read_state(posted) if posted is not None else State(current_concepts)
    url = reverse("change", args=[task.name, number])
    return _panel(task, unit.item, state, shown_to(permit.annotator, unit), url, reads=list(permit.levels))


def question_panel(item: Item, permit: Permit, posted: QueryDict | None) -> dict[str, Any]:
    """Return the panel for a practice or test question, without suggestions."""
    task = permit.task
    if task.vocabulary_id is None:
        return {}
    address = reverse("qualification-answer", args=[task.name, item.language])
    state = read_state(posted) if posted is not None else State()
    return _panel(task, item, state, [], address, reads=list(permit.levels))


def decision_panel(unit: Unit, annotator: Annotator, blind: bool, posted: QueryDict | None) -> dict[str, Any]:
    """Return the panel for an adjudicator.

    It shows the suggestions and which annotators chose each concept, unless the unit is reviewed blind.
    """
    if unit.task.vocabulary_id is None:
        return {}
    state = read_state(posted) if posted is not None else State()
    address = reverse("adjudicate", args=[unit.task.name, unit.pk])
    votes = {} if blind else _votes(unit)
    reads = list(annotator.languages.values_list("language", flat=True))
    suggestions = [] if blind else suggested(unit)
    return _panel(unit.task, unit.item, state, suggestions, address, reads=reads, votes=votes)


def _undone_concepts(unit: Unit, annotator: Annotator) -> dict[str, str]:
    """Return how the concepts in the annotator's last undone answer to a unit were found, by concept key."""
    own_judgments = Judgment.objects.filter(unit=unit, annotator=annotator, kind=Judgment.ANSWER, voided_by=None)
    last = own_judgments.exclude(voided_at=None).order_by("-pk").first()
    ways = last.chosen.order_by("pk").values_list("concept__key", "way") if last else ()
    return dict(ways)


def _votes(unit: Unit) -> dict[str, list[str]]:
    """Return the annotators who chose each concept, by concept key, most votes first."""
    live = Judgment.objects.live().answers().filter(unit=unit).select_related("annotator").order_by("pk")
    annotators: dict[str, list[str]] = {}
    for judgment in live:
        for key in unit.task.kind.form.facets(judgment.label):
            annotators.setdefault(key, []).append(judgment.annotator.pseudonym)
    return dict(sorted(annotators.items(), key=lambda pair: (-len(pair[1]), pair[0])))


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
    """Return the template context of the panel.

    suggestions: keys of the suggested concepts
    address: URL of the form, which also receives the panel's commands
    reads: languages that the user reads, which are searched in addition to the document's language
    votes: annotators who chose each concept, by concept key
    """
    version, rules = version_of(task), task.kind.form.vocabulary(task.kind)
    assert rules  # only tasks with a vocabulary have this panel
    listing = Listing(version, item.language, state.ways)
    tabs = {VOTES: bool(votes), SUGGESTIONS: bool(suggestions), BROWSE: True}
    available_views = [name for name, is_there in tabs.items() if is_there]
    view = state.view if state.view in (SEARCH, *available_views) else available_views[0]
    concepts = concepts_in_order(version, state.ways)
    pairs = [] if rules["beside_broader"] == ALLOW else nested_pairs(concepts)
    names = names_in(version, item.language)
    contents: dict[str, Callable[[], dict[str, Any]]] = {
        SEARCH: lambda: _search_results(listing, state.typed, reads),
        SUGGESTIONS: lambda: {"rows": listing.rows(concepts_in_order(version, suggestions), SUGGESTED)},
        VOTES: lambda: {"rows": listing.rows(concepts_in_order(version, votes), "", votes=votes)},
        BROWSE: lambda: listing.browse(state.at),
    }
    return {
        "compose": address,
        "panel": {
            **{"rows": [], "places": [], "crumbs": [], "around": []},
            **contents[view](),
            "view": view,
            "tabs": available_views,
            "at": state.at,
            "typed": state.typed[:LONGEST],
            "longest": LONGEST,
            "language": item.language,
            "chosen": listing.rows(concepts, ""),
            "unknown": sorted(state.ways.keys() - {concept.key for concept in concepts}),
            "pairs": [(names[broader.key].text, names[narrower.key].text) for narrower, broader in pairs],
            "may_insist": rules["beside_broader"] == ASK,
            "is_sure": state.is_sure,
            "least": rules["least"],
            "most": rules["most"],
        },
    }


def _search_results(listing: Listing, typed: str, reads: Sequence[str]) -> dict[str, Any]:
    try:
        rows = listing.search(typed[:LONGEST], reads)
    except VocabularyError:  # the text can't be too long, so it has no letters or digits
        return {"note": _("The search text contains no letters or digits. Type the beginning of a word.")}
    note = "" if rows else _("No concept has this name. Type the beginning of another word of its name, or browse.")
    return {"rows": rows, "note": note}
