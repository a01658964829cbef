"""What a kind of question consists of. The engine asks a kind to act, and never asks which kind it is.

A kind that needs no code is a TOML file (files.py makes it a Kind); `language` and `verify` are modules, which supply
their own functions.
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

# These belong to models/, which stands above: kinds are handed them and read their attributes.
Task = Unit = Any


@dataclass(frozen=True)
class Answer:
    """What an annotator says of a unit. label: the canonical text of their answer; reason: why it is undefined;
    comment: free text.
    """

    label: str
    reason: str = ""
    comment: str = ""
    # Concept -> what led to it, one of WAYS; and whether they have been asked if they mean what seems too much.
    ways: Mapping[str, str] = field(default_factory=dict)
    is_sure: bool = False


class Unsure(ValueError):
    """An answer that is taken from somebody who says that they are sure of it (Answer.is_sure)."""


# What leads to a concept; the first of its rank is known.
SUGGESTED, SEARCHED, BROWSED = WAYS = ("suggested", "searched", "browsed")
# What is done about a concept beside one that is broader.
REFUSE, ASK, ALLOW = BESIDE_BROADER = ("refuse", "ask", "allow")


@dataclass(frozen=True)
class Thesaurus:
    """The vocabulary whose concepts are answers. least, most: how many an answer has, None for any number;
    right_from: the F1 with a known answer from which on one is right. version: the one that a task keeps.
    """

    name: str
    least: int
    most: int | None
    beside_broader: str
    right_from: float
    version: Vocabulary | None = None


@dataclass(frozen=True)
class Named:
    """An answer of a kind's file: its names and meanings, by language or in English alone, and its physical key
    (KeyboardEvent.code), if the file gives one.
    """

    names: Mapping[str, str]
    meanings: Mapping[str, str] = field(default_factory=dict)
    key: str = ""
    # Whether a filter is meant to drop what people answer this to, where they audit one.
    is_filtered: bool = False

    def name(self, language: str = ENGLISH) -> str:
        """In the language of the pages; else in this one, that of the record; else in English."""
        return self.names[spoken(self.names, [language])]

    def means(self, language: str = ENGLISH) -> str:
        return self.meanings.get(spoken(self.meanings, [language]), "")

    @property
    def meaning(self) -> str:
        return self.means()


@dataclass(frozen=True)
class Sensitive:
    """Work that may hurt whoever reads it. warnings: what they are told before they agree to it, by language or in
    English alone; a_day: after how many units a person is given no more on a day.
    """

    warnings: Mapping[str, str]
    a_day: int

    def warning(self, languages: Iterable[str]) -> tuple[str, str]:
        """(language, words): in that of the pages, else in the first of these in which there are any, else in
        English.
        """
        found = spoken(self.warnings, languages)
        return found, self.warnings[found]


@dataclass(frozen=True)
class Block:
    """Fields that stand together on the page, and their look, one of STYLES."""

    style: str
    fields: tuple[str, ...]


class Key(NamedTuple):
    """A key of the page: its place on the keyboard (KeyboardEvent.code), what is printed on it, and its name in
    a sentence.
    """

    code: str
    cap: str
    name: str


VEIL, FLAG = Key("KeyV", "V", "V"), Key("KeyF", "F", "F")
SPACE, NOUGHT = Key("Space", "space", "the space bar"), Key("Digit0", "0", "0")

# A unit stays reserved for twenty times as long as an answer takes, and for ten minutes at least: who takes longer has
# most likely gone away, and others wait for the unit.
LEASE_ANSWERS, LEAST_LEASE = 20, 10
# The style of a text that is longer than a window.
DOCUMENT = "document"
# How a block of fields looks, and what it is for.
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
    """How a kind is called. titled_by_task: whether a task's title is the question, and not a name beside it;
    titled_by_languages: whether the default title of a task names the languages that it asks about. titles: the
    question by language; field_names: the names of fields, each by language; where its file gives them.
    """

    titled_by_task: bool = False
    titled_by_languages: bool = False
    titles: Mapping[str, str] = field(default_factory=dict)
    field_names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Undefined:
    """The answer that a unit has no answer, and why: the code that is sent -> the words on its button."""

    label: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Records:
    """Fields of records that decide about draws and splits. together: by whose value they are drawn together; apart:
    whose equal values no split separates; kept: that people do not see and sets have; split: that names the split.
    """

    together: str = ""
    apart: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    split: str = ""


@dataclass(frozen=True)
class Routing:
    """Whom a unit goes to. routes: work/routes.py.

    agreed: the label on which machines agree by the task's policy, or None. enters_by: the event by which a unit that
    machines do not label comes to people. candidates: languages whose readers may be asked, the most likely first.
    queue: where texts of a language wait; read_by: the queues of a task that need readers of a language. is_routed:
    whether languages may share a queue, as the table of routes says. waits: whether units wait for people who may
    answer, however long; otherwise they are sent on if there are too few. named: the language that an answer names,
    whose readers can confirm it. when_exhausted: where a unit goes if nobody else can be asked about it.
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
    """Which answers count, and which are right.

    offered: the codes that may be answered to a unit. check_label: raises ValueError with a sentence if a label cannot
    be answered in a task; check: the same if an answer does not suit a unit. agrees: whether a label is right, if the
    answer is known. refuses_imports: why judgments cannot be imported for its tasks, in a sentence; empty if they can.
    faults: why these values of options do not fit together, in a sentence; empty if they do.
    """

    offered: Callable[[Unit], Sequence[str]]
    check_label: Callable[[str, Task], None]
    check: Callable[[Answer, Unit], None]
    agrees: Callable[[str, str], bool]
    refuses_imports: str = ""
    faults: Callable[[Mapping[str, Any]], str] = lambda options: ""


@dataclass(frozen=True)
class Pages:
    """What people see of a unit. question, sheet, adjudication: templates: in the queue, of many units at once (empty:
    they come one by one), and for adjudicators. Without a question people answer elsewhere, and it is imported.

    ask: what is shown besides the text, for the question; permit: work/permit.py. It may depend only on the task, the
    annotator and what is asked, never on votes, the queue or other people. advise: what else an adjudicator is shown;
    blind: nothing of what detectors and people said. list_heads, list_row: the columns and the cells of the
    adjudicators' list; answers: what people said. called: the name of a code; short: that of a label where codes are
    shown, as to adjudicators and in the admin.
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
    """How answers are counted. compared: the labels that agreement tells apart; compared_as: what an answer to a
    question about `asked` counts as among them. counts_single: whether agreement counts units with one answer.

    language_paths: where to find the language that a unit counts under: paths from a unit, the first that has one.
    spoken_paths: the same for agreement if the task declares no languages; none if the language is not known.
    audit_strata: paths to the values by each of which a share of the units that machines label is audited.
    """

    compared: Callable[[Task], list[str]]
    compared_as: Callable[[str, str], str]
    language_paths: tuple[str, ...]
    spoken_paths: tuple[str, ...] = ()
    counts_single: bool = True
    audit_strata: tuple[str, ...] = ("agreed_label",)


@dataclass(frozen=True)
class Publication:
    """What is published. card: its template. columns: of a row; tallies: by what the rows in a set are counted;
    sections: of the manifest, besides those of every set. formats: formats/ of goldsets/ -> what each needs to know.
    splits: whether the set is split. tells_why: whether left-out rows say what became of one without a label.
    constants: figures that are the same in all tasks, and that the manifest states.
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
    """A kind of question: what it asks, and one object for each part of the work that it decides about."""

    slug: str
    # The question in one sentence, in English.
    title: str
    # What an answer is: a module of forms/.
    form: Form
    # What its units are called, in the singular: post, record.
    noun: str
    routing: Routing
    rules: Rules
    pages: Pages
    statistics: Statistics
    publication: Publication
    wording: Wording = Wording()
    # The fields of its records as they stand on the page; none if it asks about a text.
    layout: tuple[Block, ...] = ()
    # Code -> name, meaning and key of the answers, in their order, best first; none if the answers are languages, or
    # if people do not answer here.
    answers: Mapping[str, Named] = field(default_factory=dict)
    # The labels of a task that names none.
    labels: Sequence[str] = ()
    undefined: Undefined = Undefined()
    records: Records = Records()
    # Where the answers are concepts of a vocabulary: which, and how many.
    thesaurus: Thesaurus | None = None
    # Where what people read may hurt them: what they must agree to first.
    sensitive: Sensitive | None = None
    # Language -> the Markdown with which a new task's guidelines begin.
    guidelines: Mapping[str, str] = field(default_factory=dict)
    # Names of options.OPTIONS that its tasks have, and those whose defaults differ.
    options: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    # The designs by which its units may be drawn, the default first (designs.py).
    designs: tuple[str, ...] = ()
    # The quality controls of its tasks by name, in the order in which they act; those of its form come after them.
    controls: tuple[str, ...] = ()
    # How many seconds an answer takes, for forecasts made before people have answered.
    seconds: int = 12
    # Languages that a task's file adds to the list, by code.
    languages: Mapping[str, Language] = field(default_factory=dict)
    # The text of its file; empty for a module.
    source: str = ""

    @property
    def digest(self) -> str:
        """The SHA-256 of its file, for the manifest; empty for a module."""
        return sha256(self.source.encode()).hexdigest() if self.source else ""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of its records that people see, in the order in which they are shown and exported."""
        return tuple(name for block in self.layout for name in block.fields)

    @property
    def exported_fields(self) -> tuple[str, ...]:
        """The fields that its sets have, those that people see first."""
        return (*self.fields, *self.records.kept)

    @property
    def filtered(self) -> str:
        """The answer of what a filter is meant to drop, where people audit a filter; empty elsewhere."""
        return next((code for code, answer in self.answers.items() if answer.is_filtered), "")

    @property
    def skip_key(self) -> Key:
        """The key that skips a unit. Beside a document the space bar scrolls, as it does wherever people read: whoever
        reads on by it must not skip.
        """
        return NOUGHT if any(block.style == DOCUMENT for block in self.layout) else SPACE

    @property
    def flag_needs_shift(self) -> bool:
        """Whether the key that flags a unit is Shift and F, since F alone finds concepts or gives an answer."""
        return self.thesaurus is not None or FLAG.code in {each.key for each in self.answers.values()}

    @cached_property
    def quality_controls(self) -> tuple[QualityControl, ...]:
        return tuple(CONTROLS[name] for name in (*self.controls, *self.form.controls))

    @cached_property
    def lease_minutes(self) -> int:
        """How long a unit stays reserved for the person who has it open."""
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
        """Whether people answer it here; if not, answers given elsewhere are imported."""
        return bool(self.pages.question)

    @property
    def labels_are_languages(self) -> bool:
        return self.answered_here and self.form.lists and not (self.answers or self.answers_from_draw)

    @property
    def asks_if_sure(self) -> bool:
        """Whether some answers are only taken from somebody who says that they are sure."""
        return self.thesaurus is not None and self.thesaurus.beside_broader == ASK

    @property
    def asks_each(self) -> bool:
        """Whether each language of a task has its own question, by whichever design its units are drawn."""
        return bool(self.designs) and all(DESIGNS[design].asks_each for design in self.designs)

    @property
    def answers_from_draw(self) -> bool:
        """Whether what may be answered is named with the draw, as the classes of documents are."""
        return any(DESIGNS[design].names_answers for design in self.designs)

    def with_parts(self, **parts: Mapping[str, Any]) -> "Kind":
        """The kind with other values in these of its objects, such as publication={"card": "annotate/card_x.md"}."""
        return replace(self, **{name: replace(getattr(self, name), **values) for name, values in parts.items()})

    def with_version(self, version: Vocabulary | None) -> "Kind":
        """The kind as a task has it that keeps a version of the vocabulary."""
        if not self.thesaurus:
            return self
        found = replace(self, thesaurus=replace(self.thesaurus, version=version))
        return found.with_parts(pages={"short": found.name})  # ids of concepts say nothing to anybody

    def question(self, task: Task) -> str:
        """What is asked of every unit of a task, in the language of the pages."""
        return self.titled(task) if self.wording.titled_by_task else self._title()

    def titled(self, task: Task) -> str:
        """What a task is called: as its manager has typed it, or the kind's own question in the language of the
        pages.
        """
        if task.title == self.title:
            return self._title()
        if self.wording.titled_by_languages and task.title == question_about(task.labels):
            return question_about(task.labels, is_translated=True)
        return task.title

    def _title(self) -> str:
        return self.wording.titles.get(interface_language()) or gettext(self.title)

    def field_name(self, name: str) -> str:
        """What a field is called on the page."""
        names = self.wording.field_names.get(name, {ENGLISH: name.replace("_", " ")})
        return names[spoken(names)]

    def field_name_language(self, name: str) -> str:
        """The language of a field's name, if it is not that of the page."""
        language = spoken(self.wording.field_names.get(name, {ENGLISH: name}))
        return "" if language == interface_language() else language

    def name(self, label: str, language: str = ENGLISH) -> str:
        """What a label is called wherever it is shown: Good, Yes, Perfect; German, Not German, Undefined.

        language: that of the text on the screen, in which answers may have their own names, where they have none in
        the language of the pages.
        """
        return self.form.name(label, lambda code: self.called_in(language, code))

    def called_in(self, language: str, code: str) -> str:
        """The name of a code beside a record in a language: its name in that of the pages if it has one, else in that
        of the record, else in English.
        """
        if self.thesaurus and self.thesaurus.version:
            found = names_in(self.thesaurus.version, language).get(code)
            return found.text if found else code
        return self.answers[code].name(language) if code in self.answers else self.pages.called(code)

    def finer(self, code: str) -> tuple[str, ...]:
        """The labels that a coarse code stands for, as zh does for zh-CN and zh-TW; those that the file adds are
        included.
        """
        listed = LANGUAGES.known.get(code)
        return (
            *(listed.labels if listed else ()),
            *(each.code for each in self.languages.values() if each.under == code),
        )

    def under(self, code: str) -> str:
        """The listed code under which the file puts a language that it adds; empty for every other code."""
        return self.languages[code].under if code in self.languages else ""

    def known(self, code: str) -> bool:
        """Whether a code is on the list of languages or added by the file; languages that other files add do
        not count.
        """
        return code in LISTED or code in self.languages
