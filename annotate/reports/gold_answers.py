"""Gold answers and tests: how well people do in them, and which gold answers may themselves be wrong. Tables for the
manager's pages.

The figures are those of work/statistics.py. called: the name of a label.
"""

from collections.abc import Callable, Iterable

from annotate.reports.numbers import NOT_MEASURED
from annotate.reports.progress import person
from annotate.reports.tables import (
    NUMBER,
    ONE_LANGUAGE,
    SENTENCE,
    SHORT,
    Cell,
    Column,
    Table,
    estimated,
    numbered,
    numbers,
    table,
    timed,
)

Called = Callable[[str], str]
SHOWN = 140  # characters of a record's text


def beginning(row: dict) -> Cell:
    """The beginning of a record's text, its fields one after the other."""
    words = " · ".join(row["text"].split("\n"))
    return Cell(words[:SHOWN] + ("…" if len(words) > SHOWN else ""), words)


TEXT = Column("text", "text", SENTENCE, beginning)

BY_LANGUAGE = (
    ONE_LANGUAGE,
    *numbers(
        {
            "took": "took it",
            "passed": "passed",
            "granted": "let in without it",
            "failed": "no try left",
            "tests": "tests",
        }
    ),
    estimated("share", "tests passed, 95% interval"),
)


def tested_table(rows: Iterable[dict], asked: str) -> Table:
    return table("Tests by language", BY_LANGUAGE, rows, slug="tested", asked=asked)


def trials_table(rows: Iterable[dict], asked: str, address: Callable[[int], str] | None = None) -> Table:
    """A row for each person and language. Without an address, the rows of one person, who is not named."""
    heads = (
        *([person(address)] if address else []),
        ONE_LANGUAGE,
        numbered("tries", "tries"),
        Column("score", "best score", NUMBER, _score),
        timed("last", "last"),
        Column("state", "now", SHORT, _standing),
    )
    return table("Tests by annotator", heads, rows, slug="tests", asked=asked)


def _score(row: dict) -> Cell:
    if row["right"] is None:
        return Cell(NOT_MEASURED)
    return Cell(f"{row['right']} of {row['asked']}", row["right"] / max(1, row["asked"]))


def _standing(row: dict) -> Cell:
    if row["qualified"]:
        return Cell("let in by a manager" if row["granted"] else "passed", 0)
    if row["open"]:
        return Cell("taking it", 1)
    return Cell(f"may try again ({row['left']})", 2) if row["left"] else Cell("no try left", 3)


def _agreeing(row: dict) -> Cell:
    if not row["asked"]:
        return Cell(NOT_MEASURED)
    return Cell(f"{row['right']:,} of {row['asked']:,}", row["right"] / row["asked"])


def known_table(rows: Iterable[dict], asked: str, called: Called) -> Table:
    heads = (
        Column("item", "record"),
        TEXT,
        ONE_LANGUAGE,
        Column("purpose", "for"),
        Column("label", "known answer", says=lambda row: called(row["label"])),
        Column("said", "others say", says=lambda row: called(row["said"])),
        numbered("asked", "asked"),
        Column("right", "agree with it", NUMBER, _agreeing),
    )
    return table("Known answers", heads, rows, slug="known", asked=asked)


def given_table(rows: Iterable[dict], asked: str, called: Called) -> Table:
    """The gold answers that one person was asked for."""

    def said(row: dict) -> Cell:
        name = called(row["said"])
        return Cell(name, name, note="voided" if row["voided"] else "")

    heads = (
        timed("at", "when"),
        TEXT,
        Column("label", "known answer", says=lambda row: called(row["label"])),
        Column("said", "theirs", says=said),
        Column("right", "right", says=lambda row: Cell("yes" if row["right"] else "no", row["right"])),
    )
    return table("Gold answers given", heads, rows, slug="given", asked=asked)
