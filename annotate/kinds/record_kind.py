"""What kinds made of a TOML file do: all their units go to people who read the record's declared language, and a
person who cannot tell skips.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _

from annotate.core import stages
from annotate.kinds.forms import Form
from annotate.kinds.interface_language import interface_language, spoken
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
from annotate.kinds.language_questions import SEARCHES, searches
from annotate.kinds.options import ASKED, OF_CROWDS, OF_DECLARED_AUDIT, OF_GOLD, OF_TEST
from corpora.core.languages import UND

# As XGLUE's authors had it: three people, of whom two must agree, each tested, and watched by gold answers. One in
# nine people who guess passes the test, and nine in ten of those who are right in 80% (docs/explanation/pausing.md).
DEFAULTS = {"redundancy": 3, "rounds": 1, "skip_limit": 5, "on_conflict": stages.DISCARDED}
OPTIONS = (*ASKED, *OF_CROWDS, *OF_TEST, *OF_GOLD)
# What a row of an exported set has, in this order; `fields` stands for each field by its name.
COLUMNS = (
    *("id", "language", "split", "fields", "label", "dawid_skene", "posterior", "soft_labels", "agreement"),
    *("stage", "chance", "judged_as", "posted_at", "author", "url", "judgments", "transitions"),
)
# Of documents in balanced sets, besides: the smallest set that has a row, what keeps it in its split, the labels that
# came with it, the chance that people audited these, and the label by which a predictor found it for people.
OF_SETS = ("set", "apart", "declared", "audit_chance", "predicted")
SECTIONS = ("splits", "people", "gold_answers", "honeypots", "agreement", "published")
_NO_RECORDS = Records()


@dataclass(frozen=True)
class Choice:
    """An answer as it is shown: its code, its name and meaning, their language if it is not that of the pages, and the
    physical key, or empty.
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
        """Whether keyboards print different letters on its key."""
        return self.key.startswith("Key")


def choices(task, answers: Mapping[str, Named], language: str = ENGLISH) -> list[Choice]:
    """The answers in the task's order, best first: the first has the key 1, so that keys lie as the buttons do.

    language: the record's, in which answers may have their own names where they have none in the pages'.
    """
    return in_order(task.labels, answers, language)


def choices_of(kind: Kind) -> list[Choice]:
    """The same in English, before there is a task."""
    return in_order(kind.labels, kind.answers, ENGLISH)


def in_order(codes: Iterable[str], answers: Mapping[str, Named], language: str) -> list[Choice]:
    """The same of these codes, which need not be the task's."""
    return [
        _choice(code, answers[code], number, language) if code in answers else Choice(code, code, key=_key(number))
        for number, code in enumerate(codes, 1)
    ]


def _choice(code: str, answer: Named, number: int, language: str) -> Choice:
    said_in = spoken(answer.names, [language])
    own = said_in if said_in != interface_language() else ""
    return Choice(code, answer.name(language), answer.means(language), answer.key or _key(number), own)


def _key(number: int) -> str:
    """The key of an answer for which the file gives none, by its place."""
    return f"Digit{number}" if number <= 9 else ""


def read_by(language: str, task, routes) -> list[str]:
    """Records say exactly which language they are in, so each language has its own queue. Records in a coarse one go
    to the readers of what it stands for, and records in none go to the readers of posts in none.
    """
    codes = task.languages or task.labels
    none = [routes.queue_of(UND)] if UND in codes else []
    return [code for code in codes if language in (code, *task.kind.finer(code), *(none if code == UND else ()))]


def advise(unit, blind: bool) -> dict[str, Any]:
    kind, item = unit.task.kind, unit.item
    words = item.fields[kind.fields[0]] if kind.fields else item.text
    # A query or a question is not a word to look up in a dictionary.
    # What may hurt stays behind its veil.
    return {
        "options": choices(unit.task, kind.answers, item.language),
        "searches": [] if kind.sensitive else searches(words, SEARCHES[1:]),
    }


def list_row(unit, answers) -> list[str]:
    kind = unit.task.kind
    return [unit.item.language, ", ".join(kind.name(label) for label in sorted(answers, key=unit.task.labels.index))]


def faults(options: Mapping[str, Any]) -> str:
    if options["redundancy"] % 1:
        return "Only of posts a share can be read by one more person; make redundancy a whole number."
    if options["redundancy"] == 2 and options["on_conflict"] == stages.DISCARDED:
        return (
            "If two answers differ, neither is a majority, so a redundancy of 2 loses every such unit; ask 3, and with "
            "stop_early the third only if the first two differ, or send conflicts to an adjudicator."
        )
    return ""


def declared_class(item, task) -> str | None:
    """The class that a document is declared to be of, if it is one of the task's and no other is."""
    found = [label for label in item.declared if label in task.labels and label not in task.kind.answers]
    return found[0] if len(found) == 1 else None


def audit_of_filter(kind: Kind, filtered: str) -> Kind:
    """The kind where people audit a filter. filtered: the answer of what it is meant to drop."""
    kind = replace(
        kind,
        designs=("filtered", "records", "compare"),
        controls=("audit of a filter", "gold answers", "test"),
        answers={code: replace(answer, is_filtered=code == filtered) for code, answer in kind.answers.items()},
    )
    return kind.with_parts(publication={"sections": ("filter_audit", *SECTIONS)})


def answered_from_draw(kind: Kind) -> Kind:
    """The kind where the answers are named with the draw, as classes are."""
    kind = replace(
        kind,
        designs=("balanced",),
        options=(*ASKED, *OF_CROWDS, *OF_DECLARED_AUDIT, *OF_TEST, *OF_GOLD),
        # Declared labels stand, unless people are asked to audit them.
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
    """A kind of question about records. Without a layout, people answer it elsewhere."""
    asked = bool(layout)
    return Kind(
        slug=slug,
        title=title,
        form=form,
        noun="record",
        answers=answers,
        labels=list(answers),
        layout=layout,
        records=records,
        # A person who imports judgments does not know the question either.
        wording=Wording(titled_by_task=not asked),
        # Where people answer elsewhere, nobody is tested.
        options=OPTIONS if asked else (*ASKED, *OF_CROWDS),
        defaults=DEFAULTS,
        designs=(("records",) if records.together else ("records", "compare")) if asked else (),
        controls=("gold answers", "test") if asked else (),
        routing=ROUTING,
        rules=_rules(form),
        pages=_pages(form, answers, asked),
        statistics=STATISTICS,
        publication=Publication(
            card="annotate/card_records.md" if asked else "annotate/card_judgments.md",
            columns=COLUMNS,
            tallies=("by_language", "by_split"),
            sections=SECTIONS,
            splits=True,
            tells_why=True,
        ),
    )


ROUTING = Routing(
    # Detectors do not agree on anything here.
    agreed=lambda item, task: None,
    candidates=lambda unit, routes: [unit.item.language],
    queue=lambda language, routes: language,
    read_by=read_by,
    when_exhausted=lambda unit: unit.task.on_conflict,
    enters_by="asked",
    is_routed=False,
    waits=True,
)
STATISTICS = Statistics(
    compared=lambda task: list(task.labels),
    compared_as=lambda asked, label: label,
    language_paths=("item__language",),
)


def _rules(form: Form) -> Rules:
    def check_label(label: str, task) -> None:
        form.check(label, task.labels)

    def check(answer: Answer, unit) -> None:
        if not answer.label:
            raise ValueError(_("No answer was chosen. Choose one, or skip."))
        form.check(answer.label, unit.task.labels)
        if answer.reason:
            raise ValueError(_("An answer here has no reason. Write what you want to say in the comment."))

    return Rules(
        offered=lambda unit: unit.task.labels,
        check_label=check_label,
        check=check,
        agrees=form.agrees,
        faults=faults,
    )


def _pages(form: Form, answers: Mapping[str, Named], asked: bool) -> Pages:
    def called(code: str) -> str:
        return answers[code].name() if code in answers else code

    return Pages(
        ask=lambda unit, permit: {"options": choices(unit.task, answers, unit.item.language)},
        advise=advise,
        list_heads=("language", "answers"),
        list_row=list_row,
        called=called,
        short=called,
        question=form.template if asked else "",
        adjudication=form.bench,
    )
