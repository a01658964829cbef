"""What kinds made of a TOML file do: all their units go to people who read the record's declared language, and a
person who cannot tell skips.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from django.utils.translation import gettext as _

from annotate.core import stages
from annotate.kinds.kind import ENGLISH, Answer, Kind, Named
from annotate.kinds.languages import SEARCHES, searches
from annotate.kinds.options import ASKED, OF_CROWDS, OF_DECLARED_AUDIT, OF_GOLD, OF_TEST
from annotate.kinds.tongues import spoken, tongue
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
    own = said_in if said_in != tongue() else ""
    return Choice(code, answer.name(language), answer.means(language), answer.key or _key(number), own)


def _key(number: int) -> str:
    """The key of an answer for which the file gives none, by its place."""
    return f"Digit{number}" if number <= 9 else ""


def read_by(language: str, task, routes) -> list[str]:
    """Records say exactly which language they are in, so each language has its own queue. Records in a coarse one go
    to the readers of what it stands for, and records in none go to the readers of posts in none.
    """
    none = [routes.queue_of(UND)] if UND in task.read_in else []
    return [code for code in task.read_in if language in (code, *task.kind.finer(code), *(none if code == UND else ()))]


def advise(unit, blind: bool) -> dict[str, Any]:
    kind, item = unit.task.kind, unit.item
    words = item.fields[kind.fields[0]] if kind.fields else item.text
    # A query or a question is not a word to look up in a dictionary.
    # Nobody looks up what somebody said to somebody, and what may hurt stays behind its veil.
    is_talk = kind.sensitive or kind.form.SIDED
    return {
        "options": choices(unit.task, kind.answers, item.language),
        "searches": [] if is_talk else searches(words, SEARCHES[1:]),
    }


def list_row(unit, answers) -> list[str]:
    kind = unit.task.kind
    return [unit.item.language, ", ".join(kind.name(label) for label in sorted(answers, key=unit.task.labels.index))]


def faults(options: Mapping[str, Any]) -> str:
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


# What differs where people audit a filter.
OF_FILTER: Mapping[str, Any] = {
    "designs": ("filtered", "records", "compare"),
    "controls": ("audit of a filter", "gold answers", "test"),
    "sections": ("filter_audit", *SECTIONS),
}
# What differs where the answers are named with the draw, as classes are.
FROM_DRAW: Mapping[str, Any] = {
    "designs": ("balanced",),
    "columns": tuple(name for column in COLUMNS for name in ((column, *OF_SETS) if column == "split" else (column,))),
    "options": (*ASKED, *OF_CROWDS, *OF_DECLARED_AUDIT, *OF_TEST, *OF_GOLD),
    # Declared labels stand, unless people are asked to audit them.
    "defaults": {"audit_share": 0.0, "audit_least": 0, "test_items": 0, "gold_share": 0.0},
    "controls": ("audit of declared labels", "gold answers", "test", "replenishment"),
    "audit_strata": ("item__language", "agreed_label"),
    "sections": ("sets", "declared_audit", "people", "gold_answers", "honeypots", "agreement", "published"),
    "card": "annotate/card_documents.md",
    "agreed": declared_class,
}


def kind(*, slug: str, title: str, form: ModuleType, answers: Mapping[str, Named], **values: Any) -> Kind:
    """A kind of question about records; values: fields of Kind. Without a layout, people answer it elsewhere."""

    def check_label(label: str, task) -> None:
        form.check(label, task.labels)

    def check(answer: Answer, unit) -> None:
        if not answer.label:
            raise ValueError(_("No answer was chosen. Choose one, or skip."))
        form.check(answer.label, unit.task.labels)
        if answer.reason:
            raise ValueError(_("An answer here has no reason. Write what you want to say in the comment."))

    def called(code: str) -> str:
        return answers[code].name() if code in answers else code

    asked = bool(values.get("layout"))
    built = {
        # A person who imports judgments does not know the question either.
        "titled_by_task": not asked,
        "noun": "record",
        "labels": list(answers),
        "template": "annotate/_question.html" if asked else "",
        "bench": "annotate/bench_declared.html",
        "options": OPTIONS,
        "designs": (("records",) if values.get("together") else ("records", "compare")) if asked else (),
        "controls": ("gold answers", "test") if asked else (),
        "waits": True,
        "is_routed": False,
        "enters_by": "asked",
        "language_paths": ("item__language",),
        "columns": COLUMNS,
        "tallies": ("by_language", "by_split"),
        "sections": SECTIONS,
        "splits": True,
        "tells_why": True,
        "card": "annotate/card_records.md" if asked else "annotate/card_judgments.md",
        "candidates": lambda unit, routes: [unit.item.language],
        "queue": lambda language, routes: language,
        "read_by": read_by,
        # Detectors do not agree on anything here.
        "agreed": lambda item, task: None,
        "when_exhausted": lambda unit: unit.task.on_conflict,
        "offered": lambda unit: unit.task.labels,
        "check_label": check_label,
        "agrees": form.agrees,
        "check": check,
        "ask": lambda unit, permit: {"options": choices(unit.task, answers, unit.item.language)},
        "advise": advise,
        "list_heads": ("language", "answers"),
        "list_row": list_row,
        "called": called,
        "short": called,
        "compared": lambda task: list(task.labels),
        "compared_as": lambda asked, label: label,
        "faults": faults,
    }
    defaults = {**DEFAULTS, **values.pop("defaults", {})}
    return Kind(slug=slug, title=title, form=form, answers=answers, defaults=defaults, **(built | values))
