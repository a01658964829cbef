"""Kinds of questions about records, which TOML files define.

A record declares its language, and its unit is assigned to annotators who read that language.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _

from annotate.core import stages
from annotate.kinds.control import Routes, Task, Unit
from annotate.kinds.forms import Form
from annotate.kinds.interface_language import best_language, interface_language
from annotate.kinds.kind import (
    ENGLISH,
    Answer,
    Block,
    Kind,
    Named,
    Pages,
    Publication,
    Records,
    Routing,
    Rules,
    Statistics,
    Wording,
)
from annotate.kinds.language_questions import SEARCHES, search_links
from annotate.kinds.options import ASKED, OF_CROWDS, OF_DECLARED_AUDIT, OF_GOLD, OF_TEST
from corpora.core.languages import UND
from corpora.models import Item

# The procedure of the XGLUE data set: three annotators answer, and two of them must agree. Annotators must pass a test
# and are checked with gold answers. One in nine annotators who only guess passes the test, as do nine in ten
# annotators who are right 80% of the time (docs/explanation/pausing.md).
DEFAULTS = {"redundancy": 3, "rounds": 1, "skip_limit": 5, "on_conflict": stages.DISCARDED}
OPTIONS = (*ASKED, *OF_CROWDS, *OF_TEST, *OF_GOLD)
# Columns of an exported set, in order. An export replaces `fields` with one column for each field.
COLUMNS = (
    *("id", "language", "split", "fields", "label", "dawid_skene", "posterior", "soft_labels", "agreement"),
    *("stage", "chance", "judged_as", "posted_at", "author", "url", "judgments", "transitions"),
)
# Additional columns for documents in balanced sets:
# - set: the smallest set that contains the row
# - apart: values of the fields that keep rows in the same split
# - declared: the document's declared labels
# - audit_chance: probability that the declared label was audited
# - predicted: the predicted label that the document was drawn for
OF_SETS = ("set", "apart", "declared", "audit_chance", "predicted")
SECTIONS = ("splits", "people", "gold_answers", "honeypots", "agreement", "published")
_NO_RECORDS = Records()


@dataclass(frozen=True)
class Choice:
    """An answer button.

    label: code of the answer
    name, meaning: texts on the button
    key: physical key (KeyboardEvent.code); "" if there is none
    language: language of the name and the meaning; "" if it is the interface language
    """

    label: str
    name: str
    meaning: str = ""
    key: str = ""
    language: str = ""

    @property
    def cap(self) -> str:
        return self.key.removeprefix("Digit").removeprefix("Key")

    @property
    def is_letter(self) -> bool:
        """Whether the key is a letter key, which depends on the keyboard layout."""
        return self.key.startswith("Key")


def choices(codes: Iterable[str], answers: Mapping[str, Named], language: str = ENGLISH) -> list[Choice]:
    """Return the answer buttons in code order.

    An answer without its own key gets the digit of its position, up to 9.

    language: the record's language, used if an answer has no name in the interface language
    """
    listed = []
    for number, code in enumerate(codes, 1):
        key = f"Digit{number}" if number <= 9 else ""
        if answer := answers.get(code):
            text_language = best_language(answer.names, [language])
            name, meaning, key = answer.name(language), answer.means(language), answer.key or key
            listed.append(
                Choice(code, name, meaning, key, "" if text_language == interface_language() else text_language)
            )
        else:
            listed.append(Choice(code, code, key=key))
    return listed


def read_by(language: str, task: Task, routes: Routes) -> list[str]:
    """Return the queues for readers of a language.

    Each declared language has its own queue. Readers of zh-CN also work in the queue of the coarse language zh. Records
    without a language go to the readers who also get posts without a language.
    """
    codes = task.languages or task.labels
    undefined_queues = [routes.queue_of(UND)] if UND in codes else []
    return [
        code for code in codes if language in (code, *task.kind.finer(code), *(undefined_queues if code == UND else ()))
    ]


def advise(unit: Unit, usual: Sequence[str] | None) -> dict[str, Any]:
    kind, item = unit.task.kind, unit.item
    text = item.fields[kind.fields[0]] if kind.fields else item.text
    # Don't link to the dictionary, because a query or question is not a single word. Sensitive texts get no links,
    # because a link would contain the veiled text.
    return {
        "options": choices(unit.task.labels, kind.answers, item.language),
        "searches": [] if kind.sensitive else search_links(text, SEARCHES[1:]),
    }


def list_row(unit: Unit, answers: Sequence[str], code_name: Callable[[str], str]) -> list[str]:
    kind = unit.task.kind
    return [
        code_name(unit.item.language),
        ", ".join(kind.name(label) for label in sorted(answers, key=unit.task.labels.index)),
    ]


def faults(options: Mapping[str, Any]) -> str:
    if options["redundancy"] % 1:
        return "--redundancy must be a whole number. Only kinds about posts can have a fraction."
    if options["redundancy"] == 2 and options["on_conflict"] == stages.DISCARDED:
        return (
            "With 2 as --redundancy, every item with two different answers is discarded. Use 3 (with --stop-early, the "
            "third person is asked only if the first two differ), or send conflicts to an adjudicator with "
            "--on-conflict."
        )
    return ""


def declared_class(item: Item, task: Task) -> str | None:
    """Return a document's declared class; None if its labels include no class or several classes of the task."""
    classes = [label for label in item.declared if label in task.labels and label not in task.kind.answers]
    return classes[0] if len(classes) == 1 else None


def with_filter_audit(kind: Kind, filtered: str) -> Kind:
    """Return a copy of the kind that audits a filter.

    filtered: answer for items that the filter should drop
    """
    kind = replace(
        kind,
        designs=("filtered", "records", "compare"),
        controls=("audit of a filter", "gold answers", "test"),
        answers={code: replace(answer, is_filtered=code == filtered) for code, answer in kind.answers.items()},
    )
    return kind.with_parts(publication={"sections": ("filter_audit", *SECTIONS)})


def with_answers_from_draw(kind: Kind) -> Kind:
    """Return a copy of the kind whose possible answers are document classes. The draw determines the classes."""
    kind = replace(
        kind,
        designs=("balanced",),
        options=(*ASKED, *OF_CROWDS, *OF_DECLARED_AUDIT, *OF_TEST, *OF_GOLD),
        # Documents keep their declared labels, unless the task requests an audit.
        defaults={**DEFAULTS, "audit_share": 0.0, "audit_least": 0, "test_items": 0, "gold_share": 0.0},
        controls=("audit of declared labels", "gold answers", "test", "replenishment"),
    )
    return kind.with_parts(
        routing={"agreed": declared_class},
        statistics={"audit_strata": ("item__language", "agreed_label")},
        publication={
            "card": "annotate/card_documents.md",
            "columns": tuple(
                name for column in COLUMNS for name in ((column, *OF_SETS) if column == "split" else (column,))
            ),
            "sections": ("sets", "declared_audit", "people", "gold_answers", "honeypots", "agreement", "published"),
        },
    )


def kind(
    slug: str,
    title: str,
    form: Form,
    answers: Mapping[str, Named],
    layout: tuple[Block, ...] = (),
    records: Records = _NO_RECORDS,
) -> Kind:
    """Return a kind of question about records. If there is no layout, all answers are imported."""
    has_layout = bool(layout)
    return Kind(
        slug=slug,
        title=title,
        form=form,
        noun="record",
        answers=answers,
        labels=list(answers),
        layout=layout,
        records=records,
        # We may not know which question imported judgments answer, so pages show the task's title instead.
        wording=Wording(titled_by_task=not has_layout),
        # If all answers are imported, there can be no test and no gold answers.
        options=OPTIONS if has_layout else (*ASKED, *OF_CROWDS),
        defaults=DEFAULTS,
        designs=(("records",) if records.together else ("records", "compare")) if has_layout else (),
        controls=("gold answers", "test") if has_layout else (),
        routing=ROUTING,
        rules=_rules(form),
        pages=_pages(form, answers, has_layout),
        statistics=STATISTICS,
        publication=Publication(
            card="annotate/card_records.md" if has_layout else "annotate/card_judgments.md",
            columns=COLUMNS,
            tallies=("by_language", "by_split"),
            sections=SECTIONS,
            splits=True,
            tells_why=True,
        ),
    )


ROUTING = Routing(
    # Detectors don't vote on records, so they never agree.
    agreed=lambda item, task: None,
    candidates=lambda item, language, routes: [item.language],
    read_by=read_by,
    when_exhausted=lambda unit: unit.task.on_conflict,
    enters_by="asked",
    is_routed=False,
    waits=True,
)
STATISTICS = Statistics(
    compared=lambda task: list(task.labels),
    compared_as=lambda language, label: label,
    language_paths=("item__language",),
)


def _rules(form: Form) -> Rules:
    def check_label(label: str, task: Task) -> None:
        form.check(label, task.labels)

    def check(answer: Answer, unit: Unit) -> None:
        if not answer.label:
            raise ValueError(_("No answer was chosen. Choose one, or skip."))
        form.check(answer.label, unit.task.labels)
        answer.check_no_reason()

    return Rules(
        offered=lambda unit: unit.task.labels,
        check_label=check_label,
        check=check,
        agrees=form.agrees,
        faults=faults,
    )


def _pages(form: Form, answers: Mapping[str, Named], has_layout: bool) -> Pages:
    def code_name(code: str) -> str:
        return answers[code].name() if code in answers else code

    return Pages(
        ask=lambda unit, permit: {"options": choices(unit.task.labels, answers, unit.item.language)},
        advise=advise,
        list_heads=("language", "answers"),
        list_row=list_row,
        code_name=code_name,
        short_name=code_name,
        question=form.template if has_layout else "",
        adjudication=form.bench,
    )
