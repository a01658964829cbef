"""The parts of a kind of question. The engine delegates to the kind and never tests which kind it is.

A kind without code is a TOML file, which files.py converts to a Kind; `language` and `verify` are modules with their
own functions.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

from django.utils.translation import gettext

from annotate.kinds.control import CONTROLS, QualityControl
from annotate.kinds.designs import DESIGNS
from annotate.kinds.forms import Form
from annotate.kinds.interface_language import ENGLISH, interface_language, question_about, spoken
from corpora.core.languages import LANGUAGES, LISTED, Language
from corpora.models import Item, Vocabulary
from corpora.vocabulary.concept_index import names_in

# These types belong to the layer of models/; kinds receive objects and read their attributes.
Task = Unit = Any


@dataclass(frozen=True)
class Answer:
    """An annotator's answer.

    label: canonical text
    reason: why the answer is Undefined
    comment: free text
    """

    label: str
    reason: str = ""
    comment: str = ""
    # How each concept was reached (one of WAYS); whether the annotator has confirmed an unusual answer.
    ways: Mapping[str, str] = field(default_factory=dict)
    is_sure: bool = False


class Unsure(ValueError):
    """An answer that is accepted only if the annotator confirms it (Answer.is_sure)."""


# How a concept was reached; a suggested one also has a known rank.
SUGGESTED, SEARCHED, BROWSED = WAYS = ("suggested", "searched", "browsed")
# What happens if an answer has a concept and a broader one.
REFUSE, ASK, ALLOW = BESIDE_BROADER = ("refuse", "ask", "allow")


@dataclass(frozen=True)
class Thesaurus:
    """The vocabulary whose concepts are answers.

    least, most: bounds on the number of concepts in an answer; `most` is None for no limit
    beside_broader: what happens if an answer also has a broader concept, one of BESIDE_BROADER
    right_from: minimum F1 with a known answer at which an answer counts as correct
    version: the version that a task uses
    """

    name: str
    least: int
    most: int | None
    beside_broader: str
    right_from: float
    version: Vocabulary | None = None


@dataclass(frozen=True)
class Named:
    """An answer in a kind's file.

    names, meanings: text by language, always including English
    key: physical key (KeyboardEvent.code), or ""
    """

    names: Mapping[str, str]
    meanings: Mapping[str, str] = field(default_factory=dict)
    key: str = ""
    # In the audit of a filter: whether the filter should drop items with this answer.
    is_filtered: bool = False

    def name(self, language: str = ENGLISH) -> str:
        """Return the name in the interface language, else in the record's language, else in English."""
        return self.names[spoken(self.names, [language])]

    def means(self, language: str = ENGLISH) -> str:
        return self.meanings.get(spoken(self.meanings, [language]), "")

    @property
    def meaning(self) -> str:
        return self.means()


@dataclass(frozen=True)
class Sensitive:
    """Settings for texts that may hurt readers.

    warnings: text to which people must agree first, by language
    a_day: maximum number of units per person and day
    """

    warnings: Mapping[str, str]
    a_day: int

    def warning(self, languages: Iterable[str]) -> tuple[str, str]:
        """Return the language and text of the warning: interface language, else one of `languages`, else English."""
        found = spoken(self.warnings, languages)
        return found, self.warnings[found]


@dataclass(frozen=True)
class Block:
    """Fields that are shown together.

    style: one of STYLES
    """

    style: str
    fields: tuple[str, ...]


class Key(NamedTuple):
    """A key of the page.

    code: physical key (KeyboardEvent.code)
    cap: label on the key
    name: name in a sentence
    """

    code: str
    cap: str
    name: str


VEIL, FLAG = Key("KeyV", "V", "V"), Key("KeyF", "F", "F")
SPACE, NOUGHT = Key("Space", "space", "the space bar"), Key("Digit0", "0", "0")

# A unit stays reserved for twenty times the duration of an answer, at least ten minutes. People who take longer have
# probably left, and others wait for the unit.
LEASE_ANSWERS, LEAST_LEASE = 20, 10
# The style of a text that may be longer than the window.
DOCUMENT = "document"
# Styles of blocks of fields, with their purpose.
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
    """The names of a kind and its fields.

    titled_by_task: whether a task's title is the question rather than a name
    titled_by_languages: whether the default title of a task names its languages
    titles: question by language
    field_names: display name by language, by field
    """

    titled_by_task: bool = False
    titled_by_languages: bool = False
    titles: Mapping[str, str] = field(default_factory=dict)
    field_names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Undefined:
    """The answer that a unit has no label.

    reasons: text of the button by code
    """

    label: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Records:
    """Fields of records that affect draws and splits.

    together: records with equal values are drawn together
    apart: records with equal values stay in the same split
    kept: fields that are exported but not shown
    split: the field that names the split
    """

    together: str = ""
    apart: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    split: str = ""


@dataclass(frozen=True)
class Routing:
    """How units are assigned to people (work/routes.py).

    agreed: returns the label on which the detectors agree under the task's policy, or None
    candidates: returns languages whose readers may be asked, most likely first
    queue: returns the queue for a language
    read_by: returns the queues of a task for readers of a language
    when_exhausted: returns the stage of a unit if nobody else can be asked
    enters_by: event with which a unit that is not auto-labelled enters a queue
    is_routed: whether languages may share a queue, as the table of routes states
    waits: whether units wait indefinitely for people who may answer; otherwise they move on if there are too few
    named: returns the language that an answer names, whose readers can confirm it
    """

    agreed: Callable[[Item, Task], str | None]
    candidates: Callable[[Unit, Any], list[str]]
    queue: Callable[[str, Any], str]
    read_by: Callable[[str, Task, Any], list[str]]
    when_exhausted: Callable[[Unit], str]
    enters_by: str = "disputed"
    is_routed: bool = True
    waits: bool = False
    named: Callable[[str], str] = lambda label: ""


@dataclass(frozen=True)
class Rules:
    """Which answers are valid and which are correct.

    offered: returns the codes that are possible for a unit
    check_label: raises ValueError if a label is not possible in a task
    check: raises ValueError if an answer is not valid for a unit
    agrees: returns whether a label is correct, given the known one
    refuses_imports: why judgments cannot be imported for its tasks, or ""
    faults: returns why option values do not fit together, or ""
    """

    offered: Callable[[Unit], Sequence[str]]
    check_label: Callable[[str, Task], None]
    check: Callable[[Answer, Unit], None]
    agrees: Callable[[str, str], bool]
    refuses_imports: str = ""
    faults: Callable[[Mapping[str, Any]], str] = lambda options: ""


@dataclass(frozen=True)
class Pages:
    """What people see of a unit.

    Without a `question`, people answer elsewhere and the answers are imported.

    ask: returns the context of the question, from the unit and permit (work/permit.py). It may depend only on
        the task, the annotator and what is asked, never on votes, the queue or other people.
    advise: returns the additional context for an adjudicator; `blind` hides votes and answers
    list_heads, list_row: columns and cells of the adjudicators' list
    called: returns the name of a code
    short: returns the short name of a label, for adjudicators and the admin
    question: template of the question in the queue
    sheet: template for many units at once; "" if units are shown singly
    adjudication: template for adjudicators
    """

    ask: Callable[[Unit, Any], dict[str, Any]]
    advise: Callable[[Unit, bool], dict[str, Any]]
    list_heads: tuple[str, ...]
    list_row: Callable[[Unit, Sequence[str]], list[str]]
    called: Callable[[str], str]
    short: Callable[[str], str]
    question: str = ""
    sheet: str = ""
    adjudication: str = ""


@dataclass(frozen=True)
class Statistics:
    """How answers are counted.

    compared: returns the labels that agreement distinguishes
    compared_as: returns the label that an answer about `asked` counts as
    language_paths: paths from a unit to its language; the first with a value counts
    spoken_paths: the same for agreement in tasks that declare no languages; empty if the language is unknown
    counts_single: whether agreement counts units with one answer
    audit_strata: paths to the values that stratify the audit of auto-labelled units
    """

    compared: Callable[[Task], list[str]]
    compared_as: Callable[[str, str], str]
    language_paths: tuple[str, ...]
    spoken_paths: tuple[str, ...] = ()
    counts_single: bool = True
    audit_strata: tuple[str, ...] = ("agreed_label",)


@dataclass(frozen=True)
class Publication:
    """What is published.

    card: template of the card
    columns: columns of a row
    tallies: attributes by which the manifest counts rows
    sections: sections of the manifest, in addition to those of every set
    formats: settings by format (annotate/goldsets/formats/)
    splits: whether the set is split
    tells_why: whether left-out rows state why they have no label
    constants: figures that are the same in all tasks, for the manifest
    """

    card: str
    columns: tuple[str, ...]
    tallies: tuple[str, ...]
    sections: tuple[str, ...]
    formats: Mapping[str, Any] = field(default_factory=dict)
    splits: bool = False
    tells_why: bool = False
    constants: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Kind:
    """A kind of question: what it asks, and one object for each part of its behaviour."""

    slug: str
    # The question in one sentence, in English.
    title: str
    # The answer form (annotate/kinds/forms/).
    form: Form
    # The name of a unit in the singular: post, record.
    noun: str
    routing: Routing
    rules: Rules
    pages: Pages
    statistics: Statistics
    publication: Publication
    wording: Wording = Wording()
    # The fields of its records as shown; empty if it asks about a text.
    layout: tuple[Block, ...] = ()
    # Name, meaning and key of the answers by code, in order, best first; empty if the answers are languages or if
    # people answer elsewhere.
    answers: Mapping[str, Named] = field(default_factory=dict)
    # The default labels of a task.
    labels: Sequence[str] = ()
    undefined: Undefined = Undefined()
    records: Records = Records()
    # The vocabulary whose concepts are answers, if any.
    thesaurus: Thesaurus | None = None
    # Settings for sensitive texts, if any.
    sensitive: Sensitive | None = None
    # Initial guidelines of a task by language (Markdown).
    guidelines: Mapping[str, str] = field(default_factory=dict)
    # Names of the options of its tasks (options.OPTIONS), and the defaults that differ.
    options: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    # The sampling designs of its units, default first (designs.py).
    designs: tuple[str, ...] = ()
    # The names of its quality controls, in the order in which they act; those of its form follow.
    controls: tuple[str, ...] = ()
    # The assumed duration of an answer, for forecasts before there are answers (seconds).
    seconds: int = 12
    # Languages that its file adds, by code.
    languages: Mapping[str, Language] = field(default_factory=dict)
    # The text of its file, "" for a module.
    source: str = ""

    @property
    def digest(self) -> str:
        """The SHA-256 of its file, for the manifest; "" for a module."""
        return sha256(self.source.encode()).hexdigest() if self.source else ""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that people see, in the order in which they are shown and exported."""
        return tuple(name for block in self.layout for name in block.fields)

    @property
    def exported_fields(self) -> tuple[str, ...]:
        """The fields of exported sets, shown ones first."""
        return (*self.fields, *self.records.kept)

    @property
    def filtered(self) -> str:
        """In the audit of a filter, the answer that the filter should drop; else ""."""
        return next((code for code, answer in self.answers.items() if answer.is_filtered), "")

    @property
    def skip_key(self) -> Key:
        """The key that skips a unit. It is not the space bar if there is a document, which the space bar scrolls."""
        return NOUGHT if any(block.style == DOCUMENT for block in self.layout) else SPACE

    @property
    def flag_needs_shift(self) -> bool:
        """Whether flagging needs Shift+F, because F alone searches for concepts or gives an answer."""
        return self.thesaurus is not None or FLAG.code in {each.key for each in self.answers.values()}

    @cached_property
    def quality_controls(self) -> tuple[QualityControl, ...]:
        return tuple(CONTROLS[name] for name in (*self.controls, *self.form.controls))

    @cached_property
    def lease_minutes(self) -> int:
        """How long a unit stays reserved for the person who has it open (minutes)."""
        return max(LEAST_LEASE, LEASE_ANSWERS * self.seconds // 60)

    @property
    def reports(self) -> frozenset[str]:
        """The commands that report on its quality controls."""
        return frozenset(control.look_at for control in self.quality_controls)

    @property
    def audits_agreement(self) -> bool:
        return any(control.of_agreement for control in self.quality_controls)

    @property
    def answered_here(self) -> bool:
        """Whether people answer in Assay; otherwise answers are imported."""
        return bool(self.pages.question)

    @property
    def labels_are_languages(self) -> bool:
        return self.answered_here and self.form.lists and not (self.answers or self.answers_from_draw)

    @property
    def asks_if_sure(self) -> bool:
        """Whether some answers need a confirmation."""
        return self.thesaurus is not None and self.thesaurus.beside_broader == ASK

    @property
    def asks_each(self) -> bool:
        """Whether each language of a task has its own question, with every design."""
        return bool(self.designs) and all(DESIGNS[design].asks_each for design in self.designs)

    @property
    def answers_from_draw(self) -> bool:
        """Whether the draw determines the possible answers, as with classes of documents."""
        return any(DESIGNS[design].names_answers for design in self.designs)

    def with_parts(self, **parts: Mapping[str, Any]) -> "Kind":
        """Return the kind with other values in some of its objects, such as publication={"card": "…"}."""
        return replace(self, **{name: replace(getattr(self, name), **values) for name, values in parts.items()})

    def with_version(self, version: Vocabulary | None) -> "Kind":
        """Return the kind for a task that uses a version of the vocabulary."""
        if not self.thesaurus:
            return self
        found = replace(self, thesaurus=replace(self.thesaurus, version=version))
        return found.with_parts(pages={"short": found.name})  # ids of concepts mean nothing to readers

    def question(self, task: Task) -> str:
        """Return the question of a task, in the interface language."""
        return self.titled(task) if self.wording.titled_by_task else self._title()

    def titled(self, task: Task) -> str:
        """Return a task's title: as its manager wrote it, or the kind's question in the interface language."""
        if task.title == self.title:
            return self._title()
        if self.wording.titled_by_languages and task.title == question_about(task.labels):
            return question_about(task.labels, is_translated=True)
        return task.title

    def _title(self) -> str:
        return self.wording.titles.get(interface_language()) or gettext(self.title)

    def field_name(self, name: str) -> str:
        """Return the display name of a field."""
        names = self.wording.field_names.get(name, {ENGLISH: name.replace("_", " ")})
        return names[spoken(names)]

    def field_name_language(self, name: str) -> str:
        """Return the language of a field's display name, "" if it is the interface language."""
        language = spoken(self.wording.field_names.get(name, {ENGLISH: name}))
        return "" if language == interface_language() else language

    def name(self, label: str, language: str = ENGLISH) -> str:
        """Return the display name of a label: Good, Yes, Perfect; German, Not German, Undefined.

        language: the record's language, used for the names of answers that have none in the interface language
        """
        return self.form.name(label, lambda code: self.called_in(language, code))

    def called_in(self, language: str, code: str) -> str:
        """Return the name of a code in the interface language, else in the record's language, else in English."""
        if self.thesaurus and self.thesaurus.version:
            found = names_in(self.thesaurus.version, language).get(code)
            return found.text if found else code
        return self.answers[code].name(language) if code in self.answers else self.pages.called(code)

    def finer(self, code: str) -> tuple[str, ...]:
        """Return the labels that a coarse code covers, such as zh-CN and zh-TW for zh, with the file's additions."""
        listed = LANGUAGES.known.get(code)
        return (
            *(listed.labels if listed else ()),
            *(each.code for each in self.languages.values() if each.under == code),
        )

    def under(self, code: str) -> str:
        """Return the listed code that covers an added language, or ""."""
        return self.languages[code].under if code in self.languages else ""

    def known(self, code: str) -> bool:
        """Return whether a language code is listed or added by the kind's file, not by other files."""
        return code in LISTED or code in self.languages
