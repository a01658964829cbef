"""The measures and dimensions of reports on evaluations: their names, and a sentence on each measure that needs one.

They stand in measures.toml; forms from outside bring their own.
"""

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from annotate.kinds.forms import FORMS


class Measure(NamedTuple):
    """name: at the head of a column. about: what it is, a sentence. is_share: whether it is written in percent.
    is_exact: whether it was counted or is a plain mean, and so has no interval; a number if it is no share.
    is_difference: whether it is written in points, with its sign."""

    name: str
    about: str = ""
    is_share: bool = True
    is_exact: bool = False
    is_difference: bool = False


class Names(dict[str, Measure]):
    """Measure -> its name; forms from outside name their own measures."""

    def __missing__(self, measure: str) -> Measure:
        return {name: Measure(*words) for form in FORMS.values() for name, words in form.measures.items()}[measure]


_DECLARED = tomllib.loads(Path(__file__).with_name("measures.toml").read_text(encoding="utf-8"))
MEASURES = Names({name: Measure(**of) for name, of in _DECLARED["measures"].items()})
DIMENSIONS: Mapping[str, str] = _DECLARED["dimensions"]
# Row of the table in docs/explanation/measuring.md -> the measures that it explains.
METHODS: Mapping[str, Collection[str]] = {row: measures.split() for row, measures in _DECLARED["methods"].items()}
DIFFERENCE = "Difference of two systems"  # the row of all of them
# Row of that table -> its anchor, as pages of the documentation have it.
ANCHORS = {row: f"row-{row.lower().replace(' ', '-')}" for row in (*METHODS, DIFFERENCE)}


def method(measure: str, form: str) -> str:
    """The row that explains a measure. form: of the report."""
    rows = [row for row, measures in METHODS.items() if measure in measures] or ["One label per unit"]
    return rows[0] if form == "posts" else rows[-1]
