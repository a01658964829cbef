"""Kinds that ask annotators to mark spans of a text. The table [spans] of a kind's file has the rules."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy

from annotate.core import stages
from annotate.kinds import record_kind
from annotate.kinds.control import Permit, Task, Unit
from annotate.kinds.forms import register
from annotate.kinds.forms.labels import RIGHT_FROM
from annotate.kinds.forms.spans import NOTHING, Span, Spans, check_marks, spans_in
from annotate.kinds.kind import Answer, Kind, Named
from annotate.kinds.toml_tables import Table, nearest

DEFAULTS: Mapping[str, Any] = {
    **record_kind.DEFAULTS,
    **{"on_conflict": stages.ADJUDICATION, "test_items": 0, "gold_share": 0.0},
}
# Columns of an exported set, in order, as in record_kind.py. There are no posteriors, as for sets of concepts.
COLUMNS = (
    *("id", "language", "split", "fields", "label", "spans", "agreement", "stage", "chance", "judged_as"),
    *("posted_at", "author", "url", "judgments", "transitions"),
)
# Classes of the stylesheet spans.css, in the order that labels get them.
COLOURS = ("blue", "gold", "green", "red", "violet", "teal", "orange", "grey")
MOST_SHOWN = 40  # maximum number of characters of a span to quote outside of its text
# The label of a kind that lists no answers.
ANSWER = {
    "answer": Named(
        {"en": "Answer", "de": "Antwort", "fr": "Réponse", "es": "Respuesta", "ar": "الإجابة", "he": "תשובה"}
    )
}
# Help texts for the keys of the table [spans], shown in the documentation.
SPANS_KEYS: Mapping[str, str] = {
    "field": "the field to mark spans in (default: the last field of the layout)",
    "overlap": "whether spans can overlap (default false)",
    "one": "whether an answer has only one span, such as the answer to a question (default false)",
    "nothing": "whether annotators can answer that there is nothing to mark (default true)",
    "tokens": "a kept field with the tokens of the text, separated by spaces, for CoNLL files (default: "
    "words, and single other characters)",
    "colours": f"a table from label to colour: {', '.join(COLOURS)} (default: in this order)",
    "right_from": "the minimum F1 of the marked characters with the known answer for an answer to count as correct "
    f"(default {RIGHT_FROM})",
}


class MarkedSpans(Spans):
    """The answer form for spans, whose labels are the kind's [[answers]]."""

    keys = (
        ("← →", _lazy("choose the next or previous word")),
        ("↑ ↓", _lazy("choose a word in the next or previous line")),
        ("⇧ ← →", _lazy("choose more words or fewer")),
        (format_lazy("{} ← →", _lazy("Ctrl")), _lazy("move the end of what is chosen by a character")),
        (format_lazy("{} ⇧ ← →", _lazy("Ctrl")), _lazy("move its start by a character")),
        (_lazy("Alt"), _lazy("while you select with the mouse: choose parts of words")),
        ("1 – 9", _lazy("mark what is chosen with a label")),
        ("⌫", _lazy("remove the mark")),
        (format_lazy("{} Z", _lazy("Ctrl")), _lazy("undo the last mark")),
        ("N", _lazy("answer that there is nothing to mark")),
    )
    about = ("Annotators mark spans of a text with the mouse, by touch or with the arrow keys.",)

    def answers(self, top: Table) -> Mapping[str, Any]:
        return {} if "answers_from" in top.raw else ANSWER

    def of_file(self, top: Table, kind: Kind) -> Kind:
        if "answers_from" in top.raw:
            raise top.fault("answers_from", "a draw cannot name the labels of spans. Remove answers_from.")
        top.check_layout(kind.layout)
        if clash := next((code for code in kind.answers if code == NOTHING), ""):
            raise top.fault("answers", f"{clash} means that nothing is marked. Choose another code.")
        return with_spans(kind, _marking(top.table("spans"), kind))


SPANS = register(MarkedSpans())


def _marking(table: Table, kind: Kind) -> dict[str, Any]:
    """Read the table [spans]."""
    table.check_keys(SPANS_KEYS, "[spans]")
    field = table.text("field") or kind.fields[-1]
    if field not in kind.fields:
        raise table.fault("field", f"{field!r} is not a field of the layout. {nearest(field, kind.fields)}")
    tokens = table.text("tokens")
    if tokens and tokens not in kind.exported_fields:
        raise table.fault("tokens", f'{tokens!r} is not a field of the kind. Add kept = ["{tokens}"].')
    colours = table.table("colours")
    colours.check_keys(kind.answers, "[spans.colours]")
    for code in colours.raw:
        if (colour := colours.text(code)) not in COLOURS:
            raise colours.fault(code, f"{colour!r} is not a colour. {nearest(colour, COLOURS)}")
    by_place = {code: COLOURS[number % len(COLOURS)] for number, code in enumerate(kind.answers)}
    return {
        **{"field": field, "tokens": tokens, "right_from": table.share("right_from", RIGHT_FROM)},
        **{name: table.take(name, bool, name == "nothing") for name in ("overlap", "one", "nothing")},
        "colours": {code: colours.raw.get(code, colour) for code, colour in by_place.items()},
    }


def with_spans(kind: Kind, marking: Mapping[str, Any]) -> Kind:
    """Return a copy of the kind whose answers are marked spans.

    marking: values of the `[spans]` table
    """

    def shown(unit: Unit) -> dict[str, Any]:
        choices = record_kind.choices(unit.task.labels, kind.answers, unit.item.language)
        options = [(choice, marking["colours"].get(choice.label, COLOURS[-1])) for choice in choices]
        return {"options": options, "marking": marking, "marked": json.dumps(unit.item.fields[marking["field"]])}

    def code_name(code: str) -> str:
        return _display_name(code, kind, one=marking["one"])

    def describe(label: str, unit: Unit) -> str:
        if kind.sensitive or unit.disturbing or label == NOTHING:
            return kind.name(label)
        text = unit.item.fields[marking["field"]]
        return "; ".join(_quote(span, text, kind) for span in spans_in(label))

    kind = replace(kind, defaults=DEFAULTS)
    return kind.with_parts(
        rules=_rules(marking),
        pages={
            "ask": lambda unit, permit: {**shown(unit), "taken_back": _withdrawn_answer(unit, permit)},
            "advise": lambda unit, usual: {**record_kind.advise(unit, usual), **shown(unit)},
            "list_row": _list_row,
            "code_name": code_name,
            "describe": describe,
            "short_name": kind.name,
        },
        publication={
            "card": "annotate/card_spans.md",
            "category": "question-answering" if marking["one"] else "token-classification",
            "columns": COLUMNS,
            "formats": _formats(kind, marking),
            "constants": {"marking": dict(marking)},
            "marked": marking["field"],
        },
    )


def _rules(marking: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rules that check marked spans.

    marking: values of the `[spans]` table
    """
    one, overlap = marking["one"], marking["overlap"]

    def check_label(label: str, task: Task) -> None:
        SPANS.check(label, task.labels)
        if label == NOTHING and not marking["nothing"]:
            raise ValueError(_("Nothing is marked. Mark something, or skip."))

    def check(answer: Answer, unit: Unit) -> None:
        if not answer.label:
            raise ValueError(_("Nothing is marked. Mark something, or say that there is nothing to mark."))
        check_label(answer.label, unit.task)
        check_marks(answer.label, unit.item.fields[marking["field"]], overlap=overlap, one=one)
        answer.check_no_reason()

    def faults(options: Mapping[str, Any]) -> str:
        if options.get("aggregation") == "characters" and (one or overlap):
            return "--aggregation characters requires several spans without overlaps. Use majority."
        return record_kind.faults(options)

    return {
        "offered": lambda unit: [],
        "check_label": check_label,
        "check": check,
        "agrees": lambda answer, correct: SPANS.agrees(answer, correct, marking["right_from"]),
        "faults": faults,
    }


def _withdrawn_answer(unit: Unit, permit: Permit) -> str:
    """Return the annotator's most recent undone answer to a unit; "" if there is none."""
    if not unit.pk:  # the unit of a preview
        return ""
    judgments = unit.judgments.answers().filter(annotator=permit.annotator, voided_at__isnull=False, voided_by=None)
    return judgments.order_by("pk").values_list("label", flat=True).last() or ""


def _formats(kind: Kind, marking: Mapping[str, Any]) -> dict[str, Any]:
    """Return the format to publish: SQuAD if spans answer a question, otherwise CoNLL."""
    other_fields = [field for field in kind.fields if field != marking["field"]]
    if marking["one"] and other_fields:
        return {"squad": {"context": marking["field"], "question": other_fields[0]}}
    return {"conll": kind.slug}


def _display_name(code: str, kind: Kind, *, one: bool) -> str:
    """Return the display name of a span or of NOTHING."""
    if code == NOTHING:
        return _("No answer in the text") if one else _("Nothing to mark")
    try:
        [span] = spans_in(code)
    except ValueError:
        return code
    name = kind.answers[span.label].name() if span.label in kind.answers else span.label
    return f"{name} {span.start}–{span.end}"


def _quote(span: Span, text: str, kind: Kind) -> str:
    """Quote a span's words and label. Each is in a directional isolate, because their writing directions can differ."""
    words, name = text[span.start : span.end], kind.answers[span.label].name() if span.label in kind.answers else ""
    cut = words if len(words) <= MOST_SHOWN else f"{words[:MOST_SHOWN]}…"
    return f"\u2068“{cut}”\u2069 \u2068{name or span.label}\u2069"


def _list_row(unit: Unit, answers: Sequence[str], code_name: Callable[[str], str]) -> list[str]:
    """Return the cells of the adjudication list: the language, and the distinct answers."""
    kind = unit.task.kind
    return [code_name(unit.item.language), " | ".join(dict.fromkeys(kind.in_words(label, unit) for label in answers))]
