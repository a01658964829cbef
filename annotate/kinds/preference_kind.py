"""What kinds do that ask which of two systems people prefer, by what each of them suggests.

What is stored is the name of a system, or tie; what people see and send are sides (controls/pair_order.py translates).
A task has two systems or more, and a unit two of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from annotate.core import stages
from annotate.kinds import record_kind
from annotate.kinds.forms import pair, register
from annotate.kinds.kind import Answer, Kind
from annotate.kinds.options import ASKED, OF_CROWDS, OF_GOLD, OF_TEST
from annotate.kinds.toml_tables import Table

BETWEEN = "|"  # in the ids of imported comparisons, MESSAGE|SYSTEM|SYSTEM, by the alphabet
# As MRS's authors had it: three people, of whom two must agree; otherwise nobody is preferred, and nobody is asked on.
DEFAULTS: Mapping[str, Any] = {
    "redundancy": 3,
    "rounds": 1,
    "skip_limit": 5,
    "on_conflict": stages.DISCARDED,
    "test_items": 0,
    "gold_share": 0.0,
}
# What a row of an exported set has, in this order, as in record_kind.py. No model of annotators tells more than the
# majority here: what is a label of one unit is none of another.
COLUMNS = (
    *("id", "language", "fields", "systems", "replies", "label", "preferred", "stage", "chance", "judged_as"),
    *("posted_at", "author", "url", "judgments", "transitions"),
)


def compared_elsewhere(kind: Kind) -> Kind:
    """The kind where people have compared the systems elsewhere, and only what they said is imported."""
    columns = (
        name
        for column in record_kind.COLUMNS
        for name in (("systems", column, "preferred") if column == "label" else (column,))
    )
    return kind.with_parts(publication={"columns": tuple(columns), "sections": (*record_kind.SECTIONS, "preferences")})


def between(first: str, second: str) -> str:
    """How the id of an imported comparison ends."""
    return BETWEEN.join(("", first, second))


class Compared(NamedTuple):
    """Two systems in the order of their names, and what each suggests, the best first."""

    system_a: str
    system_b: str
    replies_a: list[str]
    replies_b: list[str]


def compared(suggested: Mapping[str, list[str]]) -> Iterator[Compared]:
    """Each two of the systems. suggested: system -> replies."""
    for a, b in combinations(sorted(suggested), 2):
        yield Compared(a, b, suggested[a], suggested[b])


def agreed(found: Compared) -> str:
    """The label on which two systems agree: a tie where both suggest the same; else empty.

    The order does not count, since people are asked which set has more replies that they would send; a reply that one
    system suggests twice does.
    """
    return pair.TIE if sorted(found.replies_a) == sorted(found.replies_b) else ""


def labels_of(systems: Sequence[str]) -> list[str]:
    """What may be said in a task with these systems."""
    return [*systems, pair.TIE]


def check(answer: Answer, unit) -> None:
    if not answer.label:
        raise ValueError(_("No answer was chosen. Choose one, or skip."))
    PAIR.check(answer.label, unit.task.labels)
    if answer.reason:
        raise ValueError(_("An answer here has no reason. Write what you want to say in the comment."))


def list_row(unit, answers: Sequence[str]) -> list[str]:
    """answers: sides, as they stand for whom the list is."""
    kind = unit.task.kind
    told = (f"{kind.name(side)} {answers.count(side)}" for side in pair.SIDES if side in answers)
    return [unit.item.language, ", ".join(told)]


def compared_here(kind: Kind) -> Kind:
    """The kind where people compare two systems by what is shown."""

    def shown(unit) -> list[record_kind.Choice]:
        return record_kind.in_order(kind.answers, kind.answers, unit.item.language)

    kind = replace(
        kind,
        noun="comparison",
        designs=("systems",),
        options=(*ASKED, *OF_CROWDS, *OF_TEST, *OF_GOLD),
        defaults=DEFAULTS,
    )
    return kind.with_parts(
        # To a program too the answers are sides.
        rules={
            "offered": lambda unit: list(kind.answers),
            "check": check,
            "refuses_imports": "asks which of two sets people would rather send, and no file says which of them stood "
            "first; let people answer it by the pages or the API.",
        },
        pages={
            "ask": lambda unit, permit: {"options": shown(unit)},
            # Nobody looks up what somebody said to somebody.
            "advise": lambda unit, blind: {**record_kind.advise(unit, blind), "searches": [], "options": shown(unit)},
            "list_row": list_row,
        },
        publication={
            "card": "annotate/card_preferences.md",
            "columns": COLUMNS,
            "tallies": ("by_language",),
            "sections": ("systems", "people", "gold_answers", "honeypots", "agreement", "preferences", "published"),
            "splits": False,
        },
    )


# --- the form of answers


class Preference(pair.Pair):
    """Which of two systems is preferred; without anything to show, people compare them elsewhere."""

    def of_file(self, top: Table, kind: Kind) -> Kind:
        if not (kind.layout or kind.answers or "answers_from" in top.raw):
            return compared_elsewhere(kind)
        if "answers_from" in top.raw:
            raise top.fault(
                "answers_from", "which of two is preferred is a side, and not named by a draw; leave it out."
            )
        if not kind.layout:
            raise top.fault("form", "nobody is shown anything; add a [[layout]] with a style and fields.")
        if sorted(kind.answers) != sorted(pair.SIDES):
            *others, last = pair.SIDES
            raise top.fault(
                "answers",
                f"the answers to which of two are {', '.join(others)} and {last}; give each an [[answers]] with that "
                "code.",
            )
        return compared_here(kind)


PAIR = register(Preference())
