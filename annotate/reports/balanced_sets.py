"""Balanced sets in words and tables: what is short, what is wrong with published lists, and how far people are who
label the documents. For pages, commands and the dataset card.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from annotate.reports.numbers import count
from annotate.reports.tables import LANGUAGE, NOTE, NUMBER, Column, Table, many, numbered, table

SHOWN = 3  # ids that a sentence names


def remarks(language: str, told: Mapping[str, Any]) -> list[str]:
    """told: of a language, `short` and `faults` as a balanced draw has them (kinds/balanced_draw.py), and of an
    exported set `taken_out`."""
    return [
        *(_taken_out(language, number) for number in [told.get("taken_out", 0)] if number),
        *(_short(language, short) for short in told["short"]),
        *(_fault(language, fault) for fault in told["faults"]),
    ]


def standing_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """rows: of quality/classes.standing, a class in a language each."""
    columns = (
        *LANGUAGE,
        Column("class", "class"),
        Column("labelled", "labelled", NUMBER, lambda row: f"{count(row['labelled'])} of {count(row['needed'])}"),
        numbered("drawn", "drawn"),
        numbered("right", "as predicted"),
        numbered("waiting", "with people"),
        numbered("left", "left to draw"),
        Column("note", "", NOTE, lambda row: "stays short: nothing is left to draw" if row["over"] else ""),
    )
    return table("Classes, as the sets need them and as people found them", columns, rows)


def _taken_out(language: str, number: int) -> str:
    return (
        f"{language}: {many(number, 'document')} that were drawn {'is' if number == 1 else 'are'} in no set, since "
        "people found none of the classes in them, or could not settle which."
    )


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
