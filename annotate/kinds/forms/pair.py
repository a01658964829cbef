"""Which of two systems did better, or neither.

The canonical text of an answer is the name of the system that is preferred, or `tie`. People are told of no system:
what they see are two sides, of which the one stands first, and that is what they send. SIDES are the words for it;
`from_side` and `to_side` go from the one to the other, once it is known which system stood first for the person.
"""

import re

from annotate.kinds.forms.choice import (
    AGGREGATIONS,
    SEVERAL,
    Measures,
    agrees,
    check,
    distances,
    facets,
    name,
    read,
    unlike,
    values,
)

__all__ = [
    "AGGREGATIONS",
    "CONTROLS",
    "SEVERAL",
    "SIDED",
    "Measures",
    "agrees",
    "check",
    "check_system",
    "distances",
    "facets",
    "from_side",
    "name",
    "read",
    "to_side",
    "unlike",
    "values",
]

SIDED = True
CONTROLS: tuple[str, ...] = ("sides",)
FIRST, SECOND, TIE = SIDES = ("first", "second", "tie")
# Names that say something else than a system: `none` is what numbers call units without a majority.
TAKEN = frozenset({*SIDES, "none"})
SYSTEM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}", re.ASCII)


def check_system(name: str) -> None:
    """ValueError, a sentence, if a system cannot be called so."""
    if name in TAKEN:
        raise ValueError(f"No system can be called {name}, which says something else here. Give it another name.")
    if not SYSTEM.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot be the name of a system. Write up to 40 letters a to z, digits, dots, _ and -, beginning "
            "with a letter or a digit."
        )


def from_side(sent: str, first: str, second: str) -> str:
    """The canonical text of what a person sent before whom the one system stood first and the other second; empty for
    nothing. ValueError, a sentence, if that is no side: whoever sends the name of a system learns nothing of it.
    """
    if not sent:
        return ""
    check(sent, SIDES)
    return {FIRST: first, SECOND: second, TIE: TIE}[sent]


def to_side(text: str, first: str) -> str:
    """The same the other way round; the empty text, which is no answer, stays."""
    return text if text in ("", TIE) else FIRST if text == first else SECOND
