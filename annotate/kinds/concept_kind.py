"""Kinds whose answers are sets of concepts from a vocabulary."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotate.core import stages
from annotate.kinds.control import Task, Unit
from annotate.kinds.forms import register
from annotate.kinds.forms.labels import RIGHT_FROM, Labels
from annotate.kinds.interface_language import ENGLISH
from annotate.kinds.kind import ASK, BESIDE_BROADER, REFUSE, WAYS, Answer, Kind, Thesaurus, Unsure
from annotate.kinds.language_questions import SEARCHES, search_links
from annotate.kinds.options import ASKED, OF_GOLD, OF_TEST
from annotate.kinds.toml_tables import Table, nearest
from corpora.models import Concept, Item, Vocabulary
from corpora.vocabulary.concept_index import concepts_of, names_in, nested_pairs, vocabulary_named

# If no concept gets a majority, the document goes to an adjudicator, who sees every chosen concept.
DEFAULTS: Mapping[str, Any] = {"on_conflict": stages.ADJUDICATION, "test_items": 0, "gold_share": 0.0}
# Columns of an exported set, in order, as in record_kind.py. There are no posteriors, because a model of annotators
# would treat each set of concepts as a separate label.
COLUMNS = (
    *("id", "language", "split", "fields", "label", "concepts", "support", "suggested", "declared", "stage", "chance"),
    *("judged_as", "posted_at", "author", "url", "judgments", "transitions"),
)
SECTIONS = ("splits", "concepts", "people", "gold_answers", "honeypots", "agreement", "published")
# The largest number of concepts per answer in any kind. In EURLEX57K, 99.4% of the documents have at most ten.
MOST_CONCEPTS = 1000
# Help texts for the keys of the table [vocabulary], shown in the documentation.
VOCABULARY_KEYS: Mapping[str, str] = {
    "name": "the name of an imported vocabulary. A task uses the newest version at the time it is opened",
    "least": "the minimum number of concepts in an answer (default 1)",
    "most": "the maximum number of concepts in an answer (default: no limit)",
    "beside_broader": "what happens if an answer contains both a concept and a broader one: `refuse` the answer, "
    "`ask` the annotator to confirm it (default), or `allow` it",
    "right_from": f"the minimum F1 with the known answer for an answer to count as correct (default {RIGHT_FROM})",
}
OPTIONS = (*ASKED, "aggregation", *OF_TEST, *OF_GOLD)


def version_of(task: Task) -> Vocabulary:
    version: Vocabulary | None = task.kind.thesaurus.version
    assert version is not None, "every task about concepts has a vocabulary version"
    return version


def newest_version(kind: Kind) -> Vocabulary:
    """Return the newest version of a kind's vocabulary, which new tasks use.

    Raise VocabularyError if the vocabulary has not been imported.
    """
    assert kind.thesaurus, "every kind about concepts has a vocabulary"
    return vocabulary_named(kind.thesaurus.name)


def chosen_concepts(label: str, task: Task) -> list[Concept]:
    """Return the answer's concepts in text order.

    Raise ValueError if a concept is not in the task's vocabulary.
    """
    keys, version = CONCEPTS.facets(label), version_of(task)
    concepts = concepts_of(version, keys)
    if unknown := [key for key in keys if key not in concepts]:
        values = {"concept": repr(unknown[0]), "vocabulary": version}
        raise ValueError(_("%(concept)s is not a concept of %(vocabulary)s. Look it up or remove it.") % values)
    return [concepts[key] for key in keys]


def check_label(label: str, task: Task) -> None:
    thesaurus: Thesaurus = task.kind.thesaurus
    # Check the number first, so that an answer with thousands of concepts doesn't cause thousands of lookups.
    CONCEPTS.check(label, CONCEPTS.facets(label), thesaurus.least, thesaurus.most)
    for concept in chosen_concepts(label, task):
        if concept.is_deprecated:
            _refuse_deprecated(concept, task.kind)


def _refuse_deprecated(concept: Concept, kind: Kind) -> None:
    """Raise ValueError with a message that names the deprecated concept's replacements, if there are any."""
    replacements = ", ".join(f"{kind.name(key)} ({key})" for key in concept.replaced_by.split())
    values = {"concept": f"{kind.name(concept.key)} ({concept.key})", "replacement": replacements}
    raise ValueError(
        _("%(concept)s is deprecated. Choose %(replacement)s instead.") % values
        if replacements
        else _("%(concept)s is deprecated. Choose another concept.") % values
    )


def check(answer: Answer, unit: Unit) -> None:
    if not answer.label:
        raise ValueError(_("No concept was chosen. Choose one or more, or skip."))
    check_label(answer.label, unit.task)
    answer.check_no_reason()
    policy = unit.task.kind.thesaurus.beside_broader
    if policy == REFUSE or (policy == ASK and not answer.is_sure):
        for narrower, broader in nested_pairs(chosen_concepts(answer.label, unit.task)):
            names = [unit.task.kind.name(concept.key, unit.item.language) for concept in (broader, narrower)]
            values = {"broader": names[0], "narrower": names[1]}
            if policy == REFUSE:
                raise ValueError(
                    _("%(broader)s is broader than %(narrower)s, and both are chosen. Remove %(broader)s.") % values
                )
            raise Unsure(
                _(
                    "%(broader)s is broader than %(narrower)s, and both are chosen. Remove %(broader)s, or confirm "
                    "that you mean both."
                )
                % values
            )


def agreed(item: Item, task: Task) -> str | None:
    """Return the answer that consists of a document's declared concepts.

    Return None if the task doesn't keep declared concepts, if there are none, or if one of them is not in the
    vocabulary. Declared concepts can break the rules for annotators' answers, such as the maximum number.
    """
    if not (task.keep_declared and item.declared) or unknown_concepts(item, task):
        return None
    return CONCEPTS.read(item.declared)


def unknown_concepts(item: Item, task: Task) -> list[str]:
    """Return a document's declared concepts that are not in the task's vocabulary."""
    names = names_in(version_of(task), "en")
    return [key for key in item.declared if key not in names]


def list_row(unit: Unit, answers: Iterable[str], code_name: Callable[[str], str]) -> list[str]:
    """Return the cells of the adjudication list: the language, and the chosen concepts with their vote counts."""
    votes = Counter(key for label in answers for key in CONCEPTS.facets(label))
    concepts = [f"{unit.task.kind.name(key, unit.item.language)} ({number})" for key, number in votes.most_common()]
    return [code_name(unit.item.language), "; ".join(concepts)]


def advise(unit: Unit, usual: Sequence[str] | None) -> dict[str, Any]:
    title = unit.item.fields[unit.task.kind.fields[0]]
    return {"searches": search_links(title, SEARCHES[1:])}


def with_concepts(kind: Kind, thesaurus: Thesaurus) -> Kind:
    """Return a copy of the kind whose answers are concepts from a vocabulary."""

    def agrees(answer: str, correct: str) -> bool:
        return CONCEPTS.agrees(answer, correct, thesaurus.right_from)

    kind = replace(kind, noun="document", thesaurus=thesaurus, options=OPTIONS, defaults={**kind.defaults, **DEFAULTS})
    return kind.with_parts(
        routing={"agreed": agreed},
        rules={"offered": lambda unit: [], "check_label": check_label, "check": check, "agrees": agrees},
        pages={
            "ask": lambda unit, permit: {},
            "advise": advise,
            "list_row": list_row,
            "code_name": lambda code: code,
            "question": "annotate/concepts.html",
            "adjudication": "annotate/bench_concepts.html",
        },
        publication={
            "card": "annotate/card_concepts.md",
            "columns": COLUMNS,
            "tallies": ("by_language", "by_split", "by_source", "by_votes"),
            "sections": SECTIONS,
        },
    )


# --- The answer form.


def parse_ways(posted: Any) -> dict[str, str]:
    """Read from the submitted form how the annotator found each concept: one of WAYS, or "" if unknown."""
    ways = dict(pair.partition(" ")[::2] for pair in posted.getlist("way"))
    return {key: way if (way := ways.get(key, "")) in WAYS else "" for key in posted.getlist("answer") if key}


class Concepts(Labels):
    """The answer form for sets of concepts. The table [vocabulary] of the kind's file names the vocabulary."""

    tables = ("vocabulary",)
    lists = False
    controls = ("concepts", "suggestions")
    preview = "annotate/_preview_concepts.html"
    keys = (
        ("F", gettext_lazy("search by beginnings of words")),
        ("S B", gettext_lazy("show suggestions, or browse the vocabulary")),
        ("1 – 9", gettext_lazy("choose or remove a listed concept")),
        ("↑ ↓", gettext_lazy("move through the list")),
        ("→ ←", gettext_lazy("open a concept, and go back up")),
        ("X", gettext_lazy("remove the last chosen concept")),
        ("M", gettext_lazy("confirm a concept together with a broader one")),
        (format_lazy("{} ↵", gettext_lazy("Ctrl")), gettext_lazy("finish, from anywhere on the page")),
    )
    bench_keys = (("V", gettext_lazy("show who chose what")),)

    def details(self, posted: Any) -> dict[str, Any]:
        return {"ways": parse_ways(posted), "is_sure": "is_sure" in posted}

    def vocabulary(self, kind: Kind) -> dict[str, Any]:
        thesaurus: Any = kind.thesaurus
        return {
            **{"name": thesaurus.version.name, "version": thesaurus.version.version},
            **{name: getattr(thesaurus, name) for name in ("least", "most", "beside_broader")},
        }

    def fault(self, labels: Sequence[str], task: Any) -> str:
        version = version_of(task)
        names = names_in(version, ENGLISH)
        unknown = [label for label in labels if label not in names]
        return f"{unknown[0]!r}, which is not a concept of {version}" if unknown else ""

    def answers(self, top: Table) -> Mapping[str, Any]:
        if extra_key := next((key for key in ("answers", "answers_from") if key in top.raw), ""):
            raise top.fault(extra_key, f"the answers are the concepts of the vocabulary. Remove {extra_key}.")
        return {}

    def of_file(self, top: Table, kind: Kind) -> Kind:
        thesaurus = _thesaurus(top.table("vocabulary"))
        top.check_layout(kind.layout)
        return with_concepts(kind, thesaurus)


CONCEPTS = register(Concepts())


def _thesaurus(table: Table) -> Thesaurus:
    """Read the table [vocabulary]."""
    table.check_keys(VOCABULARY_KEYS, "[vocabulary]")
    name = table.text("name", 'Add a table [vocabulary] with the name of an imported one, such as name = "eurovoc"')
    least, most = table.number("least", 1, MOST_CONCEPTS), table.take("most", int)
    if most is not None and not least <= most <= MOST_CONCEPTS:
        raise table.fault("most", f"most is {most}, but must be from {least}, which is least, to {MOST_CONCEPTS}.")
    policy = table.text("beside_broader") or ASK
    if policy not in BESIDE_BROADER:
        raise table.fault("beside_broader", f"{policy!r} is not a valid rule. {nearest(policy, BESIDE_BROADER)}")
    return Thesaurus(name, least, most, policy, table.share("right_from", RIGHT_FROM))
