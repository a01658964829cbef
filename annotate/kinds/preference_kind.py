"""Kinds that ask which of two systems makes better suggestions.

Annotators see two sides and choose the better one. annotate/controls/pair_order.py converts the side to the stored
label, which is the system's name or `tie`. A task can compare more than two systems, but each unit compares only two.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

from annotate.kinds import record_kind
from annotate.kinds.control import Unit
from annotate.kinds.forms import register
from annotate.kinds.forms.choice import SIDES, TIE, Pair
from annotate.kinds.kind import Kind
from annotate.kinds.options import ASKED, OF_CROWDS, OF_GOLD, OF_TEST
from annotate.kinds.toml_tables import Table

# Separator in the ids of imported comparisons, such as MESSAGE|SYSTEM|SYSTEM, with systems in alphabetical order.
BETWEEN = "|"
# The procedure of the MRS data set (Zhang et al. 2021): three annotators answer, and two of them must agree. Otherwise,
# there is no preference, and nobody else is asked.
DEFAULTS: Mapping[str, Any] = {**record_kind.DEFAULTS, "test_items": 0, "gold_share": 0.0}
# Columns of an exported set, in order, as in record_kind.py. There are no posteriors, because the possible labels
# differ between units.
COLUMNS = (
    *("id", "language", "fields", "systems", "replies", "label", "preferred", "stage", "chance", "judged_as"),
    *("posted_at", "author", "url", "judgments", "transitions"),
)


def with_imported_comparisons(kind: Kind) -> Kind:
    """Return a copy of the kind whose comparisons are imported."""
    columns = (
        name
        for column in record_kind.COLUMNS
        for name in (("systems", column, "preferred") if column == "label" else (column,))
    )
    return kind.with_parts(publication={"columns": tuple(columns), "sections": (*record_kind.SECTIONS, "preferences")})


def pair_suffix(first: str, second: str) -> str:
    """Return the end of an imported comparison's id, which names the two systems."""
    return BETWEEN.join(("", first, second))


class Compared(NamedTuple):
    """Two systems in alphabetical order, and the suggestions of each, best first."""

    system_a: str
    system_b: str
    replies_a: list[str]
    replies_b: list[str]


def compared(suggested: Mapping[str, list[str]]) -> Iterator[Compared]:
    """Yield each pair of systems with their suggestions.

    suggested: system -> replies, best first
    """
    for a, b in combinations(sorted(suggested), 2):
        yield Compared(a, b, suggested[a], suggested[b])


def agreed(comparison: Compared) -> str:
    """Return TIE if both systems suggest the same replies; otherwise "".

    Annotators are asked which set has more replies that they would send. The order of the replies does not matter,
    but a repeated reply counts each time.
    """
    return TIE if sorted(comparison.replies_a) == sorted(comparison.replies_b) else ""


def labels_of(systems: Sequence[str]) -> list[str]:
    """Return the possible labels in a task that compares these systems: their names, and TIE."""
    return [*systems, TIE]


def list_row(unit: Unit, answers: Sequence[str], code_name: Callable[[str], str]) -> list[str]:
    """Return the cells of the adjudication list: the language, and how many annotators chose each side.

    answers: annotators' answers, as sides in the order that the adjudicator sees them
    """
    kind = unit.task.kind
    counts = (f"{kind.name(side)} {answers.count(side)}" for side in SIDES if side in answers)
    return [code_name(unit.item.language), ", ".join(counts)]


def with_comparisons(kind: Kind) -> Kind:
    """Return a copy of the kind whose comparisons are made in Assay."""

    def shown(unit: Unit) -> list[record_kind.Choice]:
        return record_kind.choices(kind.answers, kind.answers, unit.item.language)

    kind = replace(
        kind,
        noun="comparison",
        designs=("systems",),
        options=(*ASKED, *OF_CROWDS, *OF_TEST, *OF_GOLD),
        defaults=DEFAULTS,
    )
    return kind.with_parts(
        # Answers are sides in the API too.
        rules={
            "offered": lambda unit: list(kind.answers),
            "refuses_imports": "asks which of two sets people prefer, but a file does not show which set was first. "
            "Let people answer on the pages or through the API.",
        },
        pages={
            "ask": lambda unit, permit: {"options": shown(unit)},
            # Adjudicators get no search links, because a conversation cannot be looked up.
            "advise": lambda unit, usual: {**record_kind.advise(unit, usual), "searches": [], "options": shown(unit)},
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


# --- The answer form.


class Preference(Pair):
    """The answer form for preferences. If a kind's file has neither a layout nor answers, comparisons are imported."""

    def of_file(self, top: Table, kind: Kind) -> Kind:
        if not (kind.layout or kind.answers or "answers_from" in top.raw):
            return with_imported_comparisons(kind)
        if "answers_from" in top.raw:
            raise top.fault(
                "answers_from", "people prefer one of two sides, which a draw cannot name. Remove answers_from."
            )
        top.check_layout(kind.layout)
        if sorted(kind.answers) != sorted(SIDES):
            *sides, last = SIDES
            raise top.fault(
                "answers",
                f"the answers must be {', '.join(sides)} and {last}. Add [[answers]] with each of these codes.",
            )
        return with_comparisons(kind)


PAIR = register(Preference())
