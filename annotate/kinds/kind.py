"""The class Kind, which describes a kind of question, and the classes for the parts of a kind.

The engine calls the functions of a task's kind, and never tests which kind it is. Most kinds are TOML files, which
files.py converts to Kind objects. The `language` and `verify` kinds are modules.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from django.utils.translation import gettext

from annotate.kinds.control import CONTROLS, Permit, QualityControl, Routes, Task, Unit
from annotate.kinds.designs import CLASSES, DESIGNS
from annotate.kinds.forms import Form
from annotate.kinds.interface_language import ENGLISH, best_language, interface_language
from corpora.core.languages import LANGUAGES, Language, is_standard
from corpora.models import Item, Vocabulary
from corpora.vocabulary.concept_index import names_in


@dataclass(frozen=True)
class Answer:
    """An annotator's answer.

    label: canonical text of the answer
    reason: why the annotator answered Undefined; "" for other answers
    comment: free text
    ways: how the annotator found each concept (one of WAYS)
    is_sure: whether the annotator has confirmed an unusual answer
    """

    label: str
    reason: str = ""
    comment: str = ""
    ways: Mapping[str, str] = field(default_factory=dict)
    is_sure: bool = False

    def check_no_reason(self) -> None:
        """Raise ValueError if the answer has a reason. Kinds whose answers have no reasons call it."""
        if self.reason:
            raise ValueError(gettext("Answers to this question take no reason. Use the comment instead."))


# Keyboard shortcuts: pairs (labels of the keys, action).
Shortcuts: TypeAlias = Sequence[tuple[object, object]]


class Unsure(ValueError):
    """Raised for an answer that is only accepted if the annotator confirms it (Answer.is_sure)."""


# How an annotator can find a concept. For a suggested concept, we also store its rank.
SUGGESTED, SEARCHED, BROWSED = WAYS = ("suggested", "searched", "browsed")
# What happens if an answer contains both a concept and a broader concept.
REFUSE, ASK, ALLOW = BESIDE_BROADER = ("refuse", "ask", "allow")


@dataclass(frozen=True)
class Thesaurus:
    """The vocabulary that answers choose concepts from, with the rules for answers.

    name: name of the vocabulary
    least: minimum number of concepts in an answer
    most: maximum number of concepts in an answer; None for no limit
    beside_broader: what happens if an answer contains both a concept and a broader one (one of BESIDE_BROADER)
    right_from: an answer is correct if its F1 with the known answer is at least this number
    version: version of the vocabulary that a task uses; None for a kind without a task
    """

    name: str
    least: int
    most: int | None
    beside_broader: str
    right_from: float
    version: Vocabulary | None = None


@dataclass(frozen=True)
class Named:
    """A possible answer, as described in a kind's file.

    names: name by language, always including English
    meanings: explanation by language, including English; empty if there is none
    key: physical key (KeyboardEvent.code); "" for the default key of the answer's position
    is_filtered: whether a filter should drop items with this answer (only in audits of filters)
    """

    names: Mapping[str, str]
    meanings: Mapping[str, str] = field(default_factory=dict)
    key: str = ""
    is_filtered: bool = False

    def name(self, language: str = ENGLISH) -> str:
        """Return the name in the interface language. If there is none, fall back to the record's language or English.

        language: the record's language
        """
        return self.names[best_language(self.names, [language])]

    def means(self, language: str = ENGLISH) -> str:
        return self.meanings.get(best_language(self.meanings, [language]), "")

    @property
    def meaning(self) -> str:
        return self.means()


@dataclass(frozen=True)
class Sensitive:
    """Settings for texts that may distress readers.

    warnings: warning that annotators must accept before they see any text, by language
    a_day: maximum number of units per annotator and day
    """

    warnings: Mapping[str, str]
    a_day: int

    def warning(self, languages: Iterable[str]) -> tuple[str, str]:
        """Return the language and the text of the warning, preferably in the interface language.

        languages: languages to try next, before English
        """
        language = best_language(self.warnings, languages)
        return language, self.warnings[language]


@dataclass(frozen=True)
class Block:
    """A group of record fields that the page shows as one block.

    style: style of the block (one of STYLES)
    fields: names of the fields, in order
    """

    style: str
    fields: tuple[str, ...]


class Key(NamedTuple):
    """A keyboard key that the page handles.

    code: physical key (KeyboardEvent.code)
    cap: label on the key
    name: name of the key in a sentence
    """

    code: str
    cap: str
    name: str


VEIL, FLAG = Key("KeyV", "V", "V"), Key("KeyF", "F", "F")
SPACE, ZERO = Key("Space", "space", "the space bar"), Key("Digit0", "0", "0")

# A lease lasts twenty times as long as an answer usually takes, but at least ten minutes. After that, the annotator
# has probably left, so someone else can get the unit.
LEASE_ANSWERS, LEAST_LEASE = 20, 10
# The style of a text that may be longer than the window.
DOCUMENT = "document"
# The styles of blocks, with their purposes.
STYLES: Mapping[str, str] = {
    "typed": "what somebody typed or wants",
    "found": "what was found for it",
    "found ad": "an ad, in a frame",
    "question": "a question",
    "passage": "a text to read",
    "headline": "the headline of a document",
    DOCUMENT: "a long text, in a column to read",
    "message": "a message to which somebody replies",
}


@dataclass(frozen=True)
class Wording:
    """A kind's wording: its question and the names of its fields.

    titled_by_task: whether each task's title is its question; if not, all tasks of the kind ask the same question
    about: function that makes a task's default title from its language codes, in English unless `is_translated`; None
        if all tasks have the kind's title
    titles: the kind's question, by language
    field_names: display names, as a mapping from field to language to name
    """

    titled_by_task: bool = False
    about: Callable[..., str] | None = None
    titles: Mapping[str, str] = field(default_factory=dict)
    field_names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Undefined:
    """The answer Undefined, which means that no single label applies.

    label: label that is stored; "" if the kind has no such answer
    reasons: code of each reason -> text of its button
    """

    label: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Records:
    """The roles of a record's fields in draws, splits and exports.

    together: field that groups records in draws: all records with the same value are drawn together
    apart: fields that group records in splits: records with the same value are always in the same split
    kept: fields that are exported, but not shown to annotators
    split: field with the name of each record's split; "" if splits are random
    """

    together: str = ""
    apart: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    split: str = ""


@dataclass(frozen=True)
class Routing:
    """How units are assigned to annotators (work/routes.py).

    agreed: function that returns a unit's automatic label, such as the label that the detectors agree on. It returns
        None if annotators must label the unit.
    candidates: function that returns the languages whose readers can label an item, most likely first. It takes the
        item, the language in the question, and the routes.
    read_by: function that returns a task's queues for the readers of a language
    when_exhausted: function that returns a unit's next stage if no other annotator can be asked
    enters_by: event that queues a unit without an automatic label
    is_routed: whether the table of routes can make languages share a queue
    waits: whether a unit stays queued if too few annotators can answer it. Otherwise, it moves on.
    named: function that returns the language that an answer names. Readers of this language can confirm it.
    """

    agreed: Callable[[Item, Task], str | None]
    candidates: Callable[[Item, str, Routes], Sequence[str]]
    read_by: Callable[[str, Task, Routes], list[str]]
    when_exhausted: Callable[[Unit], str]
    enters_by: str = "disputed"
    is_routed: bool = True
    waits: bool = False
    named: Callable[[str], str] = lambda label: ""


@dataclass(frozen=True)
class Rules:
    """Rules that decide whether answers are valid, and whether they are correct.

    offered: function that returns the codes of a unit's possible answers
    check_label: function that raises ValueError if a label is not possible in a task
    check: function that raises ValueError if an answer to a unit is not valid
    agrees: function that compares an answer with the known answer, and returns whether it is correct
    refuses_imports: why judgments cannot be imported into tasks of the kind; "" if they can
    faults: function that returns why the values of a task's options are incompatible; "" if they are compatible
    """

    offered: Callable[[Unit], Sequence[str]]
    check_label: Callable[[str, Task], None]
    check: Callable[[Answer, Unit], None]
    agrees: Callable[[str, str], bool]
    refuses_imports: str = ""
    faults: Callable[[Mapping[str, Any]], str] = lambda options: ""


@dataclass(frozen=True)
class Pages:
    """How pages show units, questions and answers.

    ask: function that takes the unit and the annotator's permit, and returns the template context of the question. The
        context must depend only on the task, the annotator and the question, so that it doesn't reveal the detectors'
        votes, the queue or others' answers.
    advise: function that takes the unit and `usual`, and returns additional context for an adjudicator. A blind review
        must hide votes and answers, so `usual` lists languages to offer that do not depend on the unit. In other
        reviews, `usual` is None.
    list_heads: column headings of the adjudication list
    list_row: function that returns a unit's cells in that list. It takes the unit, its answers, and a function that
        returns the display name of a language code.
    code_name: function that returns the display name of a code
    short_name: function that returns a short name of a label, for managers and the admin
    describe: function that takes a label and its unit, and describes the answer; None to show the names of the label's
        codes. The description can quote the unit's text, so only show it to people who are allowed to read the text.
    keys: function that returns the question's shortcuts, except the digits that choose answers. It takes the
        annotator's permit, or None for the adjudication view.
    question: template of the question in the queue; "" if all answers are imported
    sheet: template that shows many units at once; "" if units are shown one at a time
    adjudication: template of the adjudication view
    """

    ask: Callable[[Unit, Permit], dict[str, Any]]
    advise: Callable[[Unit, Sequence[str] | None], dict[str, Any]]
    list_heads: tuple[str, ...]
    list_row: Callable[[Unit, Sequence[str], Callable[[str], str]], list[str]]
    code_name: Callable[[str], str]
    short_name: Callable[[str], str]
    question: str = ""
    sheet: str = ""
    adjudication: str = ""
    describe: Callable[[str, Unit], str] | None = None
    keys: Callable[[Permit | None], Shortcuts] = lambda permit: ()


@dataclass(frozen=True)
class Statistics:
    """How answers are counted in statistics.

    compared: function that returns the categories for measuring a task's agreement
    compared_as: function that takes the language in the question and the label, and returns the answer's category
    language_paths: field paths from a unit to its language; the first path with a value is used
    spoken_paths: field paths from an answer to its language; empty if the language is unknown. They are used to
        measure agreement by language in tasks that do not declare their languages.
    counts_single: whether agreement reports count units with only one answer
    audit_strata: field paths from a unit to the values that define its stratum in the audit of auto-labelled units
    """

    compared: Callable[[Task], list[str]]
    compared_as: Callable[[str, str], str]
    language_paths: tuple[str, ...]
    spoken_paths: tuple[str, ...] = ()
    counts_single: bool = True
    audit_strata: tuple[str, ...] = ("agreed_label",)


@dataclass(frozen=True)
class Publication:
    """The contents of an exported set.

    card: template of the card
    columns: names of the columns, in order
    tallies: attributes by which the manifest counts rows
    sections: sections of the manifest, in addition to the sections that every set has
    formats: settings for each format in which the set is published (annotate/goldsets/formats/)
    splits: whether the set is split into train, dev and test
    tells_why: whether each row without a label states why it has none
    constants: numbers for the manifest that are the same in all tasks
    marked: the field in which annotators mark spans; "" if answers are not spans
    category: Hugging Face's name of the task category, for the card
    """

    card: str
    columns: tuple[str, ...]
    tallies: tuple[str, ...]
    sections: tuple[str, ...]
    formats: Mapping[str, Any] = field(default_factory=dict)
    splits: bool = False
    tells_why: bool = False
    constants: Mapping[str, Any] = field(default_factory=dict)
    marked: str = ""
    category: str = "text-classification"


@dataclass(frozen=True)
class Kind:
    """A kind of question. Separate objects, such as `routing`, define the parts of its behaviour."""

    slug: str
    # The question in one sentence, in English.
    title: str
    # The answer form (annotate/kinds/forms/).
    form: Form
    # The noun for a unit, in the singular, such as post or record.
    noun: str
    routing: Routing
    rules: Rules
    pages: Pages
    statistics: Statistics
    publication: Publication
    wording: Wording = Wording()
    # The blocks of fields that show a record; empty if units are plain texts.
    layout: tuple[Block, ...] = ()
    # The answers by code, in button order. Empty if the answers are languages or concepts, or if they are
    # imported.
    answers: Mapping[str, Named] = field(default_factory=dict)
    # The default labels of a task.
    labels: Sequence[str] = ()
    # Whether the question is about the language of posts, so that labels are languages.
    labels_are_languages: bool = False
    undefined: Undefined = Undefined()
    records: Records = Records()
    # The vocabulary of concepts; None if answers are not concepts.
    thesaurus: Thesaurus | None = None
    # Settings for sensitive texts; None if the texts are not sensitive.
    sensitive: Sensitive | None = None
    # A task's initial guidelines, by language (Markdown).
    guidelines: Mapping[str, str] = field(default_factory=dict)
    # The names of a task's options (see options.OPTIONS). The kind can override their defaults.
    options: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    # The names of the possible sampling designs (designs.py); the first is the default.
    designs: tuple[str, ...] = ()
    # The names of the quality controls, in the order that they act. The form's controls act after them.
    controls: tuple[str, ...] = ()
    # How long an answer is assumed to take (seconds). Forecasts use this number until there are answers.
    seconds: int = 12
    # Languages that the kind's file adds, by code.
    languages: Mapping[str, Language] = field(default_factory=dict)
    # The text of the kind's file; "" if the kind is a module.
    source: str = ""

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that annotators see, in the order on the page and in exports."""
        return tuple(name for block in self.layout for name in block.fields)

    @cached_property
    def exported_fields(self) -> tuple[str, ...]:
        """The names of the fields in exported sets: the fields that annotators see, then the others in `kept`."""
        return (*self.fields, *self.records.kept)

    @property
    def filtered(self) -> str:
        """The answer for items that a filter should drop; "" if the kind does not audit a filter."""
        return next((code for code, answer in self.answers.items() if answer.is_filtered), "")

    @property
    def skip_key(self) -> Key:
        """The key that skips a unit: the space bar, or 0 if the space bar is needed to scroll a document."""
        return ZERO if any(block.style == DOCUMENT for block in self.layout) else SPACE

    @property
    def flag_needs_shift(self) -> bool:
        """Whether Shift+F flags a unit, because F alone searches for concepts or gives an answer."""
        return self.thesaurus is not None or FLAG.code in {answer.key for answer in self.answers.values()}

    @cached_property
    def quality_controls(self) -> tuple[QualityControl, ...]:
        return tuple(CONTROLS[name] for name in (*self.controls, *self.form.controls))

    @cached_property
    def hooks(self) -> Mapping[str, list[QualityControl]]:
        """The quality controls that implement each hook, in the order that they act."""
        hooks: dict[str, list[QualityControl]] = defaultdict(list)
        for control in self.quality_controls:
            for name in control.hooks:
                hooks[name].append(control)
        return hooks

    @cached_property
    def lease_minutes(self) -> int:
        """How long a lease lasts (minutes)."""
        return max(LEAST_LEASE, LEASE_ANSWERS * self.seconds // 60)

    @property
    def reports(self) -> frozenset[str]:
        """The names of the commands that report on the quality controls."""
        return frozenset(control.look_at for control in self.quality_controls)

    @property
    def audits_agreement(self) -> bool:
        return any(control.of_agreement for control in self.quality_controls)

    @property
    def answered_here(self) -> bool:
        """Whether annotators answer in Assay. Otherwise, all answers are imported."""
        return bool(self.pages.question)

    @property
    def asks_if_sure(self) -> bool:
        """Whether annotators must confirm answers that contain both a concept and a broader one."""
        return self.thesaurus is not None and self.thesaurus.beside_broader == ASK

    @property
    def asks_each(self) -> bool:
        """Whether each of a task's languages has its own question, whichever design draws the task."""
        return bool(self.designs) and all(DESIGNS[design].asks_each for design in self.designs)

    @property
    def answers_from_draw(self) -> bool:
        """Whether the draw determines the possible answers, such as the classes of documents."""
        return any(DESIGNS[design].answers_from == CLASSES for design in self.designs)

    def with_parts(self, **parts: Mapping[str, Any]) -> "Kind":
        """Return a copy of the kind with changed values in some parts, such as publication={"card": "…"}."""
        return replace(self, **{name: replace(getattr(self, name), **values) for name, values in parts.items()})

    def with_version(self, version: Vocabulary | None) -> "Kind":
        """Return the kind of a task whose answers are from this version of the vocabulary."""
        if not self.thesaurus:
            return self
        kind = replace(self, thesaurus=replace(self.thesaurus, version=version))
        return kind.with_parts(pages={"short_name": kind.name})  # people don't recognize concepts by their ids

    def title_about(self, languages: Sequence[str]) -> str:
        """Return the default title of a task that asks about these languages."""
        return self.wording.about(languages) if self.wording.about else self.title

    def question(self, task: Task) -> str:
        """Return the question of a task, in the interface language."""
        return self.titled(task) if self.wording.titled_by_task else self._title()

    def titled(self, task: Task) -> str:
        """Return a task's title: the default title in the interface language, or the manager's own title."""
        if task.title == self.title:
            return self._title()
        if self.wording.about and task.title == self.wording.about(task.labels):
            return self.wording.about(task.labels, is_translated=True)
        return str(task.title)

    def _title(self) -> str:
        return self.wording.titles.get(interface_language()) or gettext(self.title)

    def field_name(self, name: str) -> str:
        """Return the display name of a field."""
        names = self.wording.field_names.get(name, {ENGLISH: name.replace("_", " ")})
        return names[best_language(names)]

    def field_name_language(self, name: str) -> str:
        """Return the language of a field's display name; "" if it is the interface language."""
        language = best_language(self.wording.field_names.get(name, {ENGLISH: name}))
        return "" if language == interface_language() else language

    def name(self, label: str, language: str = ENGLISH) -> str:
        """Return the display name of a label, such as Good, Yes, German, Not German or Undefined.

        If an answer consists of several labels, semicolons separate their names, because names of concepts can contain
        commas.

        language: the record's language, used if the answer has no name in the interface language
        """
        return "; ".join(self.name_in(language, code) for code in self.form.facets(label))

    def in_words(self, label: str, unit: Unit) -> str:
        """Return an answer to a unit as readable text: the words that it marks, or the names of its codes.

        The result can quote the unit's text, so only show it to people who are allowed to read the text.
        """
        describe = self.pages.describe
        return describe(label, unit) if describe and label else self.name(label, unit.item.language)

    def name_in(self, language: str, code: str) -> str:
        """Return the name of one code, such as an answer, a concept or a language.

        language: the record's language, for concepts and for answers without a name in the interface language
        """
        if self.thesaurus and self.thesaurus.version:
            name = names_in(self.thesaurus.version, language).get(code)
            return name.text if name else code
        return self.answers[code].name(language) if code in self.answers else self.pages.code_name(code)

    def finer(self, code: str) -> tuple[str, ...]:
        """Return the labels that a coarse language code covers, such as zh-CN and zh-TW for zh.

        Languages that the kind's file adds under the code are included.
        """
        listed = LANGUAGES.data.get(code)
        labels = tuple(listed.labels) if listed else ()
        if not self.languages:
            return labels
        return (*labels, *(language.code for language in self.languages.values() if language.under == code))

    def knows(self, code: str) -> bool:
        """Return whether a language is standard or added by this kind's file. Other kinds' languages don't count."""
        return code in self.languages or is_standard(code)
