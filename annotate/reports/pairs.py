"""What became of threads on their way to pairs, in sentences and tables: for commands and cards."""

from collections.abc import Iterable, Mapping
from typing import Any

from annotate.reports.tables import LANGUAGE, Cell, Column, Table, many, numbers, ratio, table
from corpora.core.pairs import NO_PAIR, REASONS

# A step on the way: what it is, and how many messages, replies or pairs.
Step = tuple[str, int]


def steps(messages: int, replies: int, left_out: Mapping[str, int]) -> list[Step]:
    """From messages to pairs. left_out: reason of core/pairs.py -> replies."""
    begin = messages - replies
    unpaired = [(f"{REASONS[reason]}, and so is no pair", left_out[reason]) for reason in NO_PAIR if reason in left_out]
    pairs = replies - sum(number for _, number in unpaired)
    others = [(REASONS[reason], number) for reason, number in left_out.items() if reason not in NO_PAIR]
    return [
        ("messages", messages),
        ("begins a thread", begin),
        *unpaired,
        ("pairs", pairs),
        *others,
        ("pairs of the corpus", pairs - sum(number for _, number in others)),
    ]


def steps_table(found: Iterable[Step]) -> Table:
    return table("Steps", (Column("step", "step", says=lambda row: row[0]), _count("count", "count")), found)


def _count(key: str, heading: str) -> Column:
    return Column(key, heading, "number", lambda row: Cell(f"{row[1]:,}", row[1]))


def disagreement_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """rows: import_threads.Disagreement as a mapping each."""
    heads = (
        *LANGUAGE,
        *numbers({"pairs": "pairs", "agreed": "found in it"}),
        Column("share", "share", "number", lambda row: ratio(row["agreed"], row["pairs"])),
        Column("most", "else mostly", says=lambda row: _most(*row["most"])),
    )
    return table("Languages that the files name", heads, rows)


def _most(language: str, pairs: int) -> str:
    return f"{language} {pairs:,}" if pairs else ""


def called_out(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """A sentence on each language that the files name and that most of its pairs are not in."""
    return [
        f"Of {many(row['pairs'], 'pair')} that the files name as {row['language']}, "
        f"{row['pairs'] - row['agreed']:,} are in other languages, {row['most'][1]:,} of them in {row['most'][0]}."
        for row in rows
        if 2 * row["agreed"] < row["pairs"]
    ]
