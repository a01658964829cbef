"""Tables and sentences on threads: how many of their messages became pairs, and the languages that the files name."""

from collections.abc import Iterable, Mapping
from typing import Any

from annotate.reports.tables import LANGUAGE, Cell, Column, Table, many, numbers, ratio, table
from corpora.core.language_codes import code_of
from corpora.core.records import unknown_code
from corpora.threads.messages import NO_PAIR, REASONS

# A step on the way: what it is, and how many messages, replies or pairs.
Step = tuple[str, int]


def steps_of(threads: Mapping[str, Any]) -> list[Step]:
    """From messages to the pairs of a corpus. threads: as import_threads.told_of has it."""
    replies, left_out = threads["replies"], threads["left_out"]
    unpaired = [(f"{REASONS[reason]}, and so is no pair", left_out[reason]) for reason in NO_PAIR if reason in left_out]
    pairs = replies - sum(number for _, number in unpaired)
    others = [(REASONS[reason], number) for reason, number in left_out.items() if reason not in NO_PAIR]
    return [
        ("messages", threads["messages"]),
        ("begins a thread", threads["messages"] - replies),
        *unpaired,
        ("pairs", pairs),
        *others,
        ("pairs of the corpus", pairs - sum(number for _, number in others)),
    ]


def filter_steps(manifest: Mapping[str, Any]) -> list[Step]:
    """From the pairs of a corpus to those of an exported set. manifest: as goldsets/formats/mrs.py has it."""
    found = manifest["filter"]
    above = [(f"{each['name']} has a score above {each['threshold']:g}", each["dropped"]) for each in found["scorers"]]
    # Several may drop one pair, so what each drops is part of the step and no step of its own.
    each_alone = [(f"of these: {step}", number) for step, number in above]
    dropped = above if len(above) < 2 else [("a scorer has a score above its threshold", found["dropped"]), *each_alone]
    small = manifest["small_languages"]
    few = [(f"in a language with fewer than {manifest['least_pairs']:,} pairs", small)] if small else []
    return [*dropped, *few, ("pairs of this set", found["pairs"] - found["dropped"] - small)]


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
    """A sentence on each language that the files name and that is no code, or that most of its pairs are not in."""
    return [
        _misnamed(row) if code_of(row["language"]) else _unknown(row)
        for row in rows
        if 2 * row["agreed"] < row["pairs"] or not code_of(row["language"])
    ]


def _unknown(row: Mapping[str, Any]) -> str:
    language = row["language"]
    return f"The language {language[:40]!r} of {many(row['pairs'], 'pair')} {unknown_code(language)}."


def _misnamed(row: Mapping[str, Any]) -> str:
    named, (language, most) = f"Of {many(row['pairs'], 'pair')} that the files name as {row['language']}", row["most"]
    others = row["pairs"] - row["agreed"]
    if others == 1:
        return f"{named}, 1 is in another language, {language}."
    return f"{named}, {others:,} are in other languages, {most:,} of them in {language}."
