"""The card of a set of message-reply pairs. Nothing is counted here: all is in the manifest of pairs.py.

A room that knows more of a corpus of pairs, such as what people found in an audit of its filter, adds a section: a name
and a function in SECTIONS.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.template.loader import render_to_string

from annotate.goldsets.card import CARD_LICENCES, SIZES, cache_version
from annotate.models import Task
from annotate.quality import filter_audits
from annotate.reports import markdown
from annotate.reports.tables import LANGUAGE, Cell, Column, Table, many, numbers, ratio, table
from corpora.core.language_codes import code_of
from corpora.core.records import unknown_code
from corpora.core.values import licence_key
from corpora.draws.part_draws import SIDES
from corpora.threads.messages import NO_PAIR, REASONS
from corpora.threads.pair_sets import SPLITS

# --- what became of threads on their way to pairs


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
    """From the pairs of a corpus to those of an exported set. manifest: as goldsets/pairs.py has it."""
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


@dataclass(frozen=True)
class Section:
    """A part of the card, and what the manifest says under the section's name. told: paragraphs without markup, each
    with the table that it is about."""

    heading: str
    told: list[tuple[str, Table]]
    data: Mapping[str, Any] = field(default_factory=dict)


def _filter_audits(corpus_name: str) -> Section | None:
    """What people found of the filter, in each task that was drawn from both of its sides and in which they read."""
    tasks = Task.objects.filter(draws__corpus__name=corpus_name, draws__design="filtered").distinct().order_by("pk")
    found = {task.name: audit for task in tasks if (audit := filter_audits.report(task)) and _is_read(audit)}
    if not found:
        return None
    told = [
        (f"Task {name}: {' '.join(filter_audits.filter_words(audit))}", filter_audits.figures_table(audit))
        for name, audit in found.items()
    ]
    return Section("What people found of the filter", told, {"audits": found})


def _is_read(audit: Mapping[str, Any]) -> bool:
    return any(audit[part]["read"] for part in SIDES)


# Name in the manifest -> the section of a corpus, None where there is nothing to tell.
SECTIONS: Mapping[str, Callable[[str], Section | None]] = {"filter_audits": _filter_audits}


def sections_of(corpus_name: str) -> dict[str, Any]:
    """What the sections say, as the manifest keeps it and the card is made of."""
    found = {name: made(corpus_name) for name, made in SECTIONS.items()}
    return {
        name: {
            "heading": section.heading,
            "told": [{"words": words, "table": markdown.parts(each)} for words, each in section.told],
            **section.data,
        }
        for name, section in found.items()
        if section
    }


def card_of(manifest: Mapping[str, Any]) -> str:
    licence, languages = manifest["corpus"]["licence"], manifest["languages"]
    total = sum(row[split] for row in languages for split in SPLITS)
    threads, declared = manifest["threads"], manifest["threads"]["declared"]
    # A split that a card names but that has no rows cannot be loaded.
    there = {split: f"pairs.{split}.parquet" for split in SPLITS if any(row[split] for row in languages)}
    context = {
        "manifest": manifest,
        "title": markdown.in_yaml(f"{manifest['corpus']['name']}: pairs of message and reply"),
        "licence": CARD_LICENCES.get(licence_key(licence)),
        "licence_name": markdown.in_yaml(licence),
        "size": next((name for limit, name in SIZES if total < limit), "100M<n<1B"),
        "total": total,
        "codes": sorted({row["language"].split("-")[0] for row in languages}),
        "splits": {"validation" if split == "valid" else split: file for split, file in there.items()},
        "version": cache_version([json.dumps([manifest["seed"], manifest["splits"], languages, manifest["filter"]])]),
        "steps": markdown.parts(steps_table([*steps_of(threads), *filter_steps(manifest)])),
        "languages": markdown.parts(_language_table(languages)),
        "declared": markdown.parts(disagreement_table(declared)) if declared else None,
        "called_out": called_out(declared),
        "responses": sum(row["responses"] for row in languages),
    }
    return render_to_string("annotate/card_pairs.md", context)


def _language_table(rows: list[dict[str, Any]]) -> Table:
    heads = numbers({**{split: split for split in SPLITS}, "responses": "response set"})
    return table("Languages", (*LANGUAGE, *heads), rows)
