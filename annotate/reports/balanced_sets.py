"""What is short in balanced sets, and wrong with published lists, in words: for the command and the dataset card."""

from collections.abc import Mapping
from typing import Any

from annotate.reports.tables import many

SHOWN = 3  # ids that a sentence names


def remarks(language: str, told: Mapping[str, Any]) -> list[str]:
    """told: of a language, `short` and `faults` as a balanced draw has them (kinds/balanced_draw.py)."""
    return [
        *(_short(language, short) for short in told["short"]),
        *(_fault(language, fault) for fault in told["faults"]),
    ]


def _short(language: str, short: Mapping[str, Any]) -> str:
    return (
        f"{language}, {short['set']}: of {short['label']} there are {short['there']:,} documents and not "
        f"{short['wanted']:,}."
    )


def _fault(language: str, fault: Mapping[str, Any]) -> str:
    ids, first, second = fault["ids"], fault["first"], fault["second"]
    named = ", ".join(ids[:SHOWN]) + (" …" if len(ids) > SHOWN else "")
    if first == second:
        found = f"{many(len(ids), 'line')} too many in {first}, whose ids it has before"
    elif first.startswith("train") and second.startswith("train"):
        found = f"{many(len(ids), 'id')} of {first} that {second} lacks"
    else:
        found = f"{many(len(ids), 'id')} in both {first} and {second}"
    return f"the lists in {language} have {found} ({named})."
