"""What annotators' pages show, put together from the rows; changes nothing and decides nothing."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from unicodedata import east_asian_width
from zlib import crc32

from django.contrib.humanize.templatetags.humanize import intcomma
from django.http import QueryDict
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy
from django.utils.translation import ngettext
from markdown_it import MarkdownIt

from annotate.controls.pair_order import Sides
from annotate.controls.qualification import FAILED, NONE_NEEDED, PASSED, Standing
from annotate.core.refusals import Refusal
from annotate.kinds import Kind
from annotate.kinds.control import QualityControl
from annotate.kinds.forms.pair import FIRST, SECOND
from annotate.kinds.kind import DOCUMENT, VEIL, Block
from annotate.kinds.record_kind import in_order
from annotate.models import Annotator, Judgment, Lease, Task, Unit
from annotate.pages import concept_picker
from annotate.quality.guideline_versions import current
from annotate.work.flags import KINDS
from annotate.work.moves import seen
from annotate.work.permit import Permit
from corpora.models import Item

# --- Paragraphs of a long text on a page. Stored, exported and API texts stay as they came.
#
# Many collections of news come with each article on one line, of up to 23,000 letters: a wall in which whoever
# scrolls loses the place. Such a line is parted at ends of sentences, and nothing is added to it or taken from it.


# Letters, of which wide ones, as in Chinese, count twice: a line of more is parted, into paragraphs of as many or
# a sentence more. In a column of 65 letters these are 20 lines and 10.
LONGEST = 1300
PART = 650
_EMPTY = re.compile(r"\n(?:[^\S\n]*\n)+")
# The end of a sentence, with the space behind it. A full stop after fewer than three letters may be that of "Dr.".
_END = re.compile(r"""(?:(?<=\w\w\w)\.|[!?…؟۔।॥])["'”’»)\]]*\s+|[。！？]["'”’」』）]*\s*""")


def paragraphs(text: str) -> list[str]:
    """The lines of a text, the empty ones too, and in place of each that is too long its parts."""
    return [part for line in text.splitlines() for part in _parted(line)]


def parted(text: str) -> list[str]:
    """What empty lines part, such as the articles of an act; without the empty lines."""
    return [part for part in _EMPTY.split(text.strip("\n")) if part.strip()]


def _parted(line: str) -> list[str]:
    if _width(line) <= LONGEST:
        return [line]
    parts, begin, ends = [], 0, [found.end() for found in _END.finditer(line)]
    for end in ends:
        # A small letter does not begin a sentence.
        if not line[end : end + 1].islower() and _width(line[begin:end]) >= PART:
            parts.append(line[begin:end])
            begin = end
    return [*parts, line[begin:]] if begin < len(line) else parts


def _width(text: str) -> int:
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


# HTML in the source is shown as text, so a manager's Markdown cannot carry a script.
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


def rendered(source: str) -> SafeString:
    return mark_safe(_MARKDOWN.render(source))  # noqa: S308 - rendered with HTML switched off


@lru_cache(maxsize=256)
def markdown(source: str) -> SafeString:
    """Each version of guidelines is rendered once in a process: it never changes."""
    return rendered(source)


def guidelines(task: Task, language: str = "") -> dict[str, str]:
    """The guidelines for the language of the record on the screen, and the language in which they are written."""
    found = current(task, language) if language else current(task)
    return {"guidelines": markdown(found.text), "guidelines_language": found.language} if found else {}


def question_about(task: Task) -> str:
    """What is asked of every unit of a task, for templates."""
    return task.kind.question(task)


def title_of(task: Task) -> str:
    """What a task is called, in the language of the page where it is the kind's own question."""
    return task.kind.titled(task)


@dataclass(frozen=True)
class Field:
    """title_language: if it is not that of the page. parts: its paragraphs, those of each part of a document of several
    zones by themselves.
    """

    name: str
    title: str
    title_language: str
    parts: list[list[str]]
    language: str


def record(item: Item, kind: Kind, *, may_hurt: bool = False) -> dict[str, Any]:
    """What _record.html shows: the fields of a record in the blocks of the kind, or a text's paragraphs; behind a veil
    where the kind's texts may hurt, or this one.
    """
    veiled = {"veiled": may_hurt or kind.sensitive is not None, "veil": VEIL}
    if not kind.layout:
        return {"paragraphs": item.text.splitlines(), **veiled}
    blocks = [(block.style, _fields(item, kind, block)) for block in kind.layout]
    zones = [field for style, fields in blocks if style == DOCUMENT and len(fields) > 1 for field in fields]
    fields = {field.name: field for _, fields in blocks for field in fields}
    return {"blocks": blocks, "fields": fields, "zones": zones, **veiled}


def _fields(item: Item, kind: Kind, block: Block) -> list[Field]:
    def field(name: str, parts: list[list[str]]) -> Field:
        return Field(name, kind.field_name(name), kind.field_name_language(name), parts, item.language)

    if block.style != DOCUMENT:
        return [field(name, [item.fields[name].splitlines()]) for name in block.fields]
    if len(block.fields) == 1:
        return [field(name, [paragraphs(item.fields[name])]) for name in block.fields]
    # The zones of a document, such as the articles of an act; those that it has.
    return [
        field(name, [paragraphs(part) for part in parted(item.fields[name])])
        for name in block.fields
        if item.fields[name].strip()
    ]


def sides_in(annotator: Annotator, units: Iterable[Unit]) -> dict[int, Sides]:
    """Unit -> how its two sets stand for a person, of those units that have two."""
    of_control: dict[QualityControl, list[Unit]] = {}
    for unit in units:
        for control in unit.task.controls:
            of_control.setdefault(control, []).append(unit)
    return {pk: sides for control, of in of_control.items() for pk, sides in control.sides_of(annotator, of).items()}


def sides_of(annotator: Annotator, unit: Unit) -> Sides | None:
    """The same of one unit; None if it has not two."""
    return sides_in(annotator, [unit]).get(unit.pk)


def sets(sides: Sides | None, item: Item, kind: Kind) -> dict[str, Any]:
    """What _record.html shows of two sets of replies, in the order in which they stand: the answer that means each, and
    the replies. Nothing where nothing stands side by side.
    """
    if sides is None:
        return {}
    options = {option.label: option for option in in_order(kind.answers, kind.answers, item.language)}
    named = zip((options[side] for side in (FIRST, SECOND)), sides.sets, strict=True)
    return {"sets": [(option, replies) for option, replies in named], "set_language": item.language}


def sets_answered(judgments: Iterable[Judgment], annotator: Annotator, kind: Kind) -> list[list[tuple]]:
    """Of each of a person's judgments the two sets as they stood: what means each, its replies, and whether the person
    chose it; nothing where nothing stood side by side.
    """
    listed = list(judgments)
    sides = sides_in(annotator, (each.unit for each in listed))
    return [_sets_answered(sides[each.unit_id], each, kind) if each.unit_id in sides else [] for each in listed]


def _sets_answered(sides: Sides, judgment: Judgment, kind: Kind) -> list[tuple]:
    chosen = sides.seen(judgment.label)
    told = sets(sides, judgment.unit.item, kind)["sets"]
    return [(option, replies, option.label == chosen) for option, replies in told]


def question(
    lease: Lease, permit: Permit, posted: QueryDict | None = None, on_page: str | None = None
) -> dict[str, Any]:
    """What the queue shows of a unit: the text and the buttons, nothing of votes, queue or other people.

    posted: what a form of this unit says, if it is shown again. on_page: by their digest, the long lists of buttons
    that the page has already, and keeps where these are the same.
    """
    kind = permit.task.kind
    asked = kind.pages.ask(lease.unit, permit)
    if "everything" in asked:
        listed = " ".join(choice.code for choice in (*asked["choices"], *asked["everything"]))
        shown = f"{crc32(listed.encode()):x}"
        asked |= {"shown": shown, "kept": shown == on_page}
    return {
        "lease": lease,
        "question": kind.pages.question,
        "flags": KINDS.items(),
        **record(lease.unit.item, kind),
        **sets(sides_of(permit.annotator, lease.unit), lease.unit.item, kind),
        **asked,
        **(concept_picker.of_unit(lease.unit, permit, posted) if permit.task.vocabulary_id else {}),
    }


def sheet(leases: list[Lease], permit: Permit) -> dict[str, Any]:
    """What a sheet shows: the texts, and one question about all of them."""
    kind = permit.task.kind
    return {
        **kind.pages.ask(leases[0].unit, permit),
        "question": kind.pages.sheet,
        "posts": [(lease.pk, lease.unit.item.text.splitlines()) for lease in leases],
    }


@dataclass(frozen=True)
class SheetOutcome:
    """How many answers of a sheet were saved, and why others were not: each sentence with its number of answers."""

    saved: int
    sent: int
    refusals: list[tuple[str, int]]


def sheet_outcome(sent: int, refused: list[Refusal]) -> SheetOutcome:
    return SheetOutcome(sent - len(refused), sent, Counter(map(str, refused)).most_common())


def tests_to_come(states: Iterable[Standing], waiting: dict[str, int]) -> list[str]:
    """What passing each test would open, and how many tries are left of a test that was not passed."""
    said = []
    for found in states:
        if found.step in (NONE_NEEDED, PASSED, FAILED):
            continue
        if count := waiting.get(found.language, 0):
            behind = ngettext(
                "%(number)s waits in %(language)s once you have passed.",
                "%(number)s wait in %(language)s once you have passed.",
                count,
            )
            said.append(behind % {"number": intcomma(count), "language": found.name})
        if found.last and found.tries_left:
            left = ngettext(
                "Test in %(language)s: you have %(number)s try left.",
                "Test in %(language)s: you have %(number)s tries left.",
                found.tries_left,
            )
            said.append(left % {"number": found.tries_left, "language": found.name})
    return said


def said(judgments: Iterable[Judgment | None], annotator: Annotator, kind: Kind) -> list[str]:
    """What each of an annotator's judgments was, in a word or two; nothing of none."""
    listed = list(judgments)
    labels = iter(seen(annotator, ((each.unit, each.label) for each in listed if each)))
    return [_said(each, next(labels), kind) if each else "" for each in listed]


def _said(judgment: Judgment, label: str, kind: Kind) -> str:
    if judgment.kind == Judgment.FLAG:
        return _("Passed on as disturbing")
    return kind.name(label, judgment.unit.item.language) if label else _("Skipped")


def reason(judgment: Judgment, kind: Kind) -> str:
    """The reason of an answer: one of the kind's reasons in words, or the person's own words."""
    return _(kind.undefined.reasons[judgment.reason]) if judgment.reason in kind.undefined.reasons else judgment.reason


# --- The keys of a page, which `?` shows and annotate/docs/reference/keys.md lists

Keys = list[tuple[object, object]]  # what is printed on the keys, and what they do

_CTRL_ENTER = format_lazy("{} ↵", _lazy("Ctrl"))
_EVERYWHERE: Keys = [
    ("G", _lazy("guidelines")),
    (_lazy("Esc"), _lazy("closes what is open")),
    ("?", _lazy("these keys")),
]
_ON_A_SHEET: Keys = [
    ("↑ ↓, J K", _lazy("go from post to post")),
    ("N", _lazy("marks No")),
    ("U", _lazy("marks Undefined")),
    ("S", _lazy("skips the post")),
    ("Y", _lazy("takes a mark back")),
    (_CTRL_ENTER, _lazy("submits the sheet")),
]
_OF_CONCEPTS: Keys = [
    ("F", _lazy("search, by beginnings of words")),
    ("S B", _lazy("suggestions, or browse the vocabulary")),
    ("1 – 9", _lazy("choose one that is shown, or take it away")),
    ("↑ ↓", _lazy("go through the list")),
    ("→ ←", _lazy("open a concept, and go back up")),
    ("X", _lazy("takes the last one away")),
    ("M", _lazy("a concept and a broader one are both meant")),
    (_CTRL_ENTER, _lazy("done, from anywhere")),
]
_OF_LANGUAGES: Keys = [("Q", _lazy("undefined; then why")), ("W", _lazy("any other language, by its name"))]
_AT_THE_BENCH: Keys = [
    ("⇧ 1 – 9", _lazy("how you know, by a reason on the page")),
    ("1 – 9", _lazy("settle it with one of the first answers")),
    ("0", _lazy("discards it")),
    (",  .", _lazy("the one before and the one after, without deciding")),
    ("T", _lazy("another case of the same text, if there is one")),
    ("Z", _lazy("takes the last decision back")),
    ("C", _lazy("comment")),
]


def of_queue(task: Task, *, on_sheet: bool = False) -> Keys:
    """Of the queue, one by one or as a sheet."""
    if on_sheet:
        return [*_ON_A_SHEET, *_EVERYWHERE]
    undo = [
        ("Z", _lazy("takes the last answer back")),
        ("C", _lazy("comment")),
        ("↵", _lazy("starts, and looks again")),
    ]
    flag = (
        "⇧ F" if task.kind.flag_needs_shift else "F",
        _lazy("tells the manager of it; then a digit says what it is"),
    )
    return [*_answers(task), flag, (_lazy(task.kind.skip_key.cap), _lazy("skips")), *undo, *_EVERYWHERE]


def of_test(task: Task) -> Keys:
    """Of practice and test, where nothing is skipped or taken back."""
    return [*_answers(task), ("↵", _lazy("goes on")), *_EVERYWHERE]


def of_bench(task: Task) -> Keys:
    """Of the adjudicator's page of one unit."""
    own = _OF_LANGUAGES if task.kind.routing.is_routed else []
    return [*_AT_THE_BENCH, *own, *([("V", _lazy("who chose which"))] if task.vocabulary_id else []), *_EVERYWHERE[1:]]


def _answers(task: Task) -> Keys:
    if task.vocabulary_id:
        return _OF_CONCEPTS
    return [
        ("1 – 9", _lazy("the answers, as their buttons say")),
        *(_OF_LANGUAGES if task.kind.routing.is_routed else []),
    ]
