"""The content of annotators' pages, built from database rows. Nothing in this module changes the database."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from unicodedata import east_asian_width

from django.http import QueryDict
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from markdown_it import MarkdownIt

from annotate.kinds import Kind
from annotate.kinds.kind import DOCUMENT, VEIL, Block
from annotate.models import Annotator, Change, Judgment, Lease, Task
from annotate.pages import concept_picker
from annotate.quality.guideline_versions import current
from annotate.work.flags import KINDS
from annotate.work.moves import labels_as_seen
from annotate.work.permit import Permit
from corpora.models import Item

# --- Paragraphs of long texts. Texts are split only on pages, not in the database, in exports or in the API.
#
# Many news collections store each article on a single line of up to 23,000 characters, which is hard to read. Pages
# split such a line at the ends of sentences, without adding or removing any characters.


# Lines longer than LONGEST are split into paragraphs of at least PART characters. Wide characters, such as Chinese
# characters, count twice. In a column of 65 characters, LONGEST is 20 lines and PART is 10 lines.
LONGEST = 1300
PART = 650
_EMPTY = re.compile(r"\n(?:[^\S\n]*\n)+")
# The end of a sentence, including the following space. A full stop after fewer than three letters doesn't match. It may
# belong to an abbreviation such as "Dr.".
_END = re.compile(r"""(?:(?<=\w\w\w)\.|[!?…؟۔।॥])["'”’»)\]]*\s+|[。！？]["'”’」』）]*\s*""")


def paragraphs(text: str) -> list[str]:
    """Return the lines of a text, including empty lines. Long lines are split into paragraphs."""
    return [part for line in text.splitlines() for part in _split_line(line)]


def split_at_empty_lines(text: str) -> list[str]:
    """Split a text, such as a law with articles, at empty lines. Empty parts are left out."""
    return [part for part in _EMPTY.split(text.strip("\n")) if part.strip()]


def _split_line(line: str) -> list[str]:
    if _width(line) <= LONGEST:
        return [line]
    parts, begin, ends = [], 0, [match.end() for match in _END.finditer(line)]
    for end in ends:
        # If a lowercase letter follows, the sentence has not ended.
        if not line[end : end + 1].islower() and _width(line[begin:end]) >= PART:
            parts.append(line[begin:end])
            begin = end
    return [*parts, line[begin:]] if begin < len(line) else parts


def _width(text: str) -> int:
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


# HTML in Markdown is shown as text, so that a manager's text can't run scripts.
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


def render_markdown(source: str) -> SafeString:
    html: str = _MARKDOWN.render(source)
    return mark_safe(html)  # noqa: S308 - rendered with HTML switched off


@lru_cache(maxsize=256)
def render_guidelines(source: str) -> SafeString:
    """Render guidelines as HTML. Published guidelines never change, so the result is cached."""
    return render_markdown(source)


def guidelines(task: Task, language: str = "") -> dict[str, str]:
    """Return the template context with a task's guidelines and their language; empty if the task has no guidelines.

    language: language of the record on the page, which determines the language of the guidelines
    """
    guidelines_text = current(task, language) if language else current(task)
    return (
        {"guidelines": render_guidelines(guidelines_text.text), "guidelines_language": guidelines_text.language}
        if guidelines_text
        else {}
    )


@dataclass(frozen=True)
class Field:
    """A field of a record.

    title_language: language of the title if it differs from the language of the page
    parts: the field's parts, each a list of paragraphs; a field has several only in documents with several zones
    """

    name: str
    title: str
    title_language: str
    parts: list[list[str]]
    language: str


def record(item: Item, kind: Kind, *, may_hurt: bool = False) -> dict[str, Any]:
    """Return the context of _record.html, which shows an item.

    A record's fields are arranged in its kind's blocks. Any other text is split into lines. Sensitive items are veiled.

    may_hurt: whether this item is sensitive even if its kind is not
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
    # Show only the zones of a document that are not empty.
    return [
        field(name, [paragraphs(part) for part in split_at_empty_lines(item.fields[name])])
        for name in block.fields
        if item.fields[name].strip()
    ]


def question(
    lease: Lease, permit: Permit, posted: QueryDict | None = None, on_page: str | None = None
) -> dict[str, Any]:
    """Return the template context that shows a unit in the queue: the text and the answer buttons.

    The context omits votes, the queue and other annotators, because the annotator must not see them.

    posted: submitted values of the unit's form if it is shown again
    on_page: digest of the long button lists on the current page; if they are unchanged, the page keeps them
    """
    kind = permit.task.kind
    context = kind.pages.ask(lease.unit, permit)
    if digest := context.get("digest"):
        context |= {"shown": digest, "is_on_page": digest == on_page}
    return {
        "lease": lease,
        "question": kind.pages.question,
        "flags": KINDS.items(),
        **record(lease.unit.item, kind),
        **context,
        **(concept_picker.unit_panel(lease.unit, permit, posted) if permit.task.vocabulary_id else {}),
        **{
            name: value
            for control in permit.task.hooks["beside"]
            for name, value in control.beside(lease.unit, permit.annotator).items()
        },
    }


def sheet(leases: list[Lease], permit: Permit) -> dict[str, Any]:
    """Return the template context that shows a sheet: its texts, and the question about each of them."""
    kind = permit.task.kind
    return {
        **kind.pages.ask(leases[0].unit, permit),
        "question": kind.pages.sheet,
        "posts": [(lease.pk, lease.unit.item.text.splitlines()) for lease in leases],
    }


def summaries(judgments: Sequence[Judgment], annotator: Annotator, kind: Kind, *, may_read: bool = True) -> list[str]:
    """Return a short description of each judgment.

    may_read: whether the descriptions may quote the units' texts
    """
    labels = labels_as_seen(annotator, [(judgment.unit, judgment.label) for judgment in judgments])
    return [_description(judgment, label, kind, may_read) for judgment, label in zip(judgments, labels, strict=True)]


def _description(judgment: Judgment, label: str, kind: Kind, may_read: bool) -> str:
    if judgment.kind == Judgment.FLAG:
        return _("Flagged as disturbing")
    if not label:
        return _("Skipped")
    unit = judgment.unit
    return kind.in_words(label, unit) if may_read else kind.name(label, unit.item.language)


def reason(judgment: Judgment | Change, kind: Kind) -> str:
    """Return the text of an answer's reason, which is predefined or the annotator's own."""
    return _(kind.undefined.reasons[judgment.reason]) if judgment.reason in kind.undefined.reasons else judgment.reason
