"""Kinds that ask annotators to write and review texts. The table [text] of a kind's file has the rules."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotate.core import stages
from annotate.kinds.control import Permit, Unit
from annotate.kinds.file_sections import by_language
from annotate.kinds.forms import register
from annotate.kinds.forms.free_text import ACCEPTED, REJECTED, Text, Writing, differences, versions
from annotate.kinds.interface_language import best_language, interface_language
from annotate.kinds.kind import Answer, Kind
from annotate.kinds.options import ASKED
from annotate.kinds.toml_tables import Table, nearest
from corpora.core.languages import LANGUAGES

# One annotator writes the text. The `review` control then asks for the reviews.
DEFAULTS: Mapping[str, Any] = {"redundancy": 1, "rounds": 1, "skip_limit": 5, "on_conflict": stages.ADJUDICATION}
# Columns of an exported set, in order, as in record_kind.py. There are no posteriors, because nearly all texts differ.
COLUMNS = (
    *("id", "language", "split", "fields", "label", "agreement", "stage", "chance", "judged_as", "posted_at"),
    *("author", "url", "judgments", "transitions"),
)
SECTIONS = ("splits", "people", "agreement", "published")
MOST_CHARACTERS, MOST_REVIEWERS, MOST_QUESTION = 4_000, 9, 200
MOST_SHORT = 60  # maximum number of characters of a text in lists
_MARKS = {"accepted": ACCEPTED, "rejected": REJECTED}
# Help texts for the keys of the table [text], shown in the documentation.
TEXT_KEYS: Mapping[str, str] = {
    "least": "the minimum length (characters, default 1)",
    "most": f"the maximum length (default {Writing.most}, at most {MOST_CHARACTERS:,})",
    "start": "a field whose text the writer edits (default: the writer starts with an empty text)",
    "reviewers": f"the number of reviewers of each text (default {Writing.reviewers})",
    "review": "the question for reviewers, in English or by language",
}


class WrittenText(Text):
    """The answer form for texts, with the rules from the table [text] of the kind's file."""

    keys = (
        ("A", gettext_lazy("accept the text")),
        ("E", gettext_lazy("correct the text")),
        ("R", gettext_lazy("reject the text")),
        (format_lazy("{} ↵", gettext_lazy("Ctrl")), gettext_lazy("save what you have written")),
        (gettext_lazy("Esc"), gettext_lazy("leave the field, so that other keys work")),
    )

    def answers(self, top: Table) -> Mapping[str, Any]:
        if extra_key := next((key for key in ("answers", "answers_from") if key in top.raw), ""):
            raise top.fault(extra_key, f"the answers are free texts. Remove {extra_key}.")
        return {}

    def of_file(self, top: Table, kind: Kind) -> Kind:
        top.check_layout(kind.layout)
        return with_texts(kind, WrittenText(_writing(top.table("text"), kind)))


TEXT = register(WrittenText())


def _writing(table: Table, kind: Kind) -> Writing:
    """Read the table [text]."""
    table.check_keys(TEXT_KEYS, "[text]")
    least = table.number("least", Writing.least, MOST_CHARACTERS)
    most = table.number("most", max(least, Writing.most), MOST_CHARACTERS)
    if least > most:
        raise table.fault("least", f"least is {least}, but must be at most {most}, which is most.")
    start = table.text("start")
    if start and start not in kind.exported_fields:
        raise table.fault("start", f"{start!r} is not a field of the kind. {nearest(start, kind.exported_fields)}")
    reviewers = table.number("reviewers", Writing.reviewers, MOST_REVIEWERS)
    review = by_language(table, "review", MOST_QUESTION, LANGUAGES) if "review" in table.raw else {}
    return Writing(least, most, start, reviewers, review)


def with_texts(kind: Kind, form: Text) -> Kind:
    """Return a copy of the kind whose answers are texts that annotators write and review."""

    def check(answer: Answer, unit: Unit) -> None:
        if not answer.label:
            raise ValueError(_("No text was written. Write one, or skip."))
        form.check(answer.label)
        answer.check_no_reason()

    def ask(unit: Unit, permit: Permit) -> dict[str, Any]:
        written, last_answer = form.texts_for(unit, permit.annotator)
        start = last_answer or written or unit.item.fields.get(form.writing.start, "")
        texts = {"written": written, "start": written if start == REJECTED else start}
        return {"writing": form.writing, **_MARKS, **texts, **_review(form.writing)}

    def advise(unit: Unit, usual: Sequence[str] | None) -> dict[str, Any]:
        texts = versions(unit.judgments.live().answers().values_list("label", flat=True)) if usual is None else []
        return {
            "searches": [],
            "writing": form.writing,
            "versions": [(text, differences(texts[0], text)) for text in texts],
            **_MARKS,
        }

    kind = replace(kind, form=form, options=ASKED, defaults=DEFAULTS, designs=("records",), controls=())
    return kind.with_parts(
        rules={
            "offered": lambda unit: [],
            "check_label": lambda label, task: form.check(label),
            "check": check,
            "agrees": form.agrees,
            "faults": _faults,
            "refuses_imports": "asks for texts that others review, which a file of judgments does not show. Let people "
            "answer on the pages or through the API.",
        },
        pages={"ask": ask, "advise": advise, "list_row": _list_row, "code_name": _display_name, "short_name": _shorten},
        publication={
            "card": "annotate/card_texts.md",
            "columns": COLUMNS,
            "sections": SECTIONS,
            "category": "text-generation",
            "constants": {"text": {name: getattr(form.writing, name) for name in ("least", "most", "reviewers")}},
        },
    )


def _faults(options: Mapping[str, Any]) -> str:
    if options["redundancy"] == 1:
        return ""
    return (
        "--redundancy must be 1, because one person writes each text. The table [text] of the kind's file names the "
        "number of reviewers."
    )


def _review(writing: Writing) -> dict[str, str]:
    """Return template context with the question for reviewers, and its language if the page has another language.

    Like every question, it does not depend on the item's language. It is in the interface language if possible.
    """
    if not writing.review:
        return {"review": _("Would you keep this text?")}
    language = best_language(writing.review)
    return {"review": writing.review[language], "review_language": "" if language == interface_language() else language}


def _display_name(code: str) -> str:
    return _("Rejected") if code == REJECTED else code


def _shorten(label: str) -> str:
    text = _display_name(label)
    return text if len(text) <= MOST_SHORT else f"{text[: MOST_SHORT - 1]}…"


def _list_row(unit: Unit, answers: Iterable[str], code_name: Callable[[str], str]) -> list[str]:
    """Return the cells of the adjudication list: the language, and the distinct answers."""
    return [code_name(unit.item.language), "; ".join(dict.fromkeys(map(_shorten, answers)))]
