"""Tables and sentences about threads and message-reply pairs, and the dataset card of an exported set of pairs."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from annotate.controls import filter_precision
from annotate.goldsets.card import head_of
from annotate.models import Task
from annotate.reports.markdown import parts
from annotate.reports.tables import LANGUAGE, Cell, Column, Table, many, numbers, ratio, table
from corpora.core.language_codes import code_of
from corpora.core.records import unknown_code
from corpora.draws.part_draws import SIDES
from corpora.threads.messages import NO_PAIR, REASONS
from corpora.threads.pair_sets import SPLITS

# A step of the derivation: a description, and a number of messages, replies or pairs.
Step = tuple[str, int]


def steps_of(threads: Mapping[str, Any]) -> list[Step]:
    """Return the steps that lead from a corpus's messages to its pairs.

    threads: result of `corpora.threads.thread_import.told_of`.
    """
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
    """Return the steps that lead from a corpus's pairs to the pairs of an exported set.

    manifest: manifest of the set, see `goldsets/formats/mrs.py`.
    """
    found = manifest["filter"]
    above = [(f"{each['name']} has a score above {each['threshold']:g}", each["dropped"]) for each in found["scorers"]]
    # Several scorers may drop the same pair, so their counts are shown as parts of one step.
    each_alone = [(f"of these: {step}", number) for step, number in above]
    dropped = above if len(above) < 2 else [("a scorer has a score above its threshold", found["dropped"]), *each_alone]
    small = manifest["small_languages"]
    few = [(f"in a language with fewer than {manifest['least_pairs']:,} pairs", small)] if small else []
    return [*dropped, *few, ("pairs of this set", found["pairs"] - found["dropped"] - small)]


def steps_table(found: Iterable[Step]) -> Table:
    count = Column("count", "count", "number", lambda row: Cell(f"{row[1]:,}", row[1]))
    return table("Steps", (Column("step", "step", says=lambda row: row[0]), count), found)


def disagreement_table(rows: Iterable[Mapping[str, Any]]) -> Table:
    """Return the table that compares the declared languages with the detected languages.

    rows: `corpora.threads.thread_import.Disagreement` as mappings.
    """
    heads = (
        *LANGUAGE,
        *numbers({"pairs": "pairs", "agreed": "found in it"}),
        Column("share", "share", "number", lambda row: ratio(row["agreed"], row["pairs"])),
        Column("most", "else mostly", says=lambda row: "{} {:,}".format(*row["most"]) if row["most"][1] else ""),
    )
    return table("Languages that the files name", heads, rows)


def called_out(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each doubtful declared language.

    A declared language is doubtful if it has no code, or if most of its pairs are in a different language.
    """
    said = []
    for row in rows:
        named, pairs = row["language"], many(row["pairs"], "pair")
        others, (language, most) = row["pairs"] - row["agreed"], row["most"]
        if not code_of(named):
            said.append(f"The language {named[:40]!r} of {pairs} {unknown_code(named)}.")
        elif 2 * row["agreed"] < row["pairs"]:
            are = f"{others:,} are in other languages, {most:,} of them in {language}"
            one = f"1 is in another language, {language}"
            said.append(f"Of {pairs} that the files name as {named}, {one if others == 1 else are}.")
    return said


# --- An exported set


def pair_card(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the template context for the dataset card of a set of message-reply pairs."""
    corpus, languages, declared = manifest["corpus"], manifest["languages"], manifest["threads"]["declared"]
    total = sum(row[split] for row in languages for split in SPLITS)
    # A split without rows cannot be loaded, so the card omits it.
    there = {split: f"pairs.{split}.parquet" for split in SPLITS if any(row[split] for row in languages)}
    rows = json.dumps([manifest["seed"], manifest["splits"], languages, manifest["filter"]])
    steps = [*steps_of(manifest["threads"]), *filter_steps(manifest)]
    heads = numbers({**{split: split for split in SPLITS}, "responses": "response set"})
    title, codes = f"{corpus['name']}: pairs of message and reply", [row["language"] for row in languages]
    return {
        **head_of(title, corpus["licence"], codes, total, [rows]),
        "manifest": manifest,
        "total": total,
        "splits": {"validation" if split == "valid" else split: file for split, file in there.items()},
        "steps": parts(steps_table(steps)),
        "by_language": parts(table("Languages", (*LANGUAGE, *heads), languages)),
        "declared": parts(disagreement_table(declared)) if declared else None,
        "called_out": called_out(declared),
        "responses": sum(row["responses"] for row in languages),
    }


def pair_sections(corpus_name: str) -> dict[str, Any]:
    """Return the manifest's section on the filter audit.

    The section has the results of each task whose units were drawn from both sides of the filter. Tasks without
    labelled units are omitted. If no task is left, the result is empty.
    """
    tasks = Task.objects.filter(draws__corpus__name=corpus_name, draws__design="filtered").distinct().order_by("pk")
    reports = {task.name: filter_precision.report(task) for task in tasks}
    audits = {name: audit for name, audit in reports.items() if audit and any(audit[side]["read"] for side in SIDES)}
    if not audits:
        return {}
    told = [
        {
            "words": f"Task {name}: {' '.join(filter_precision.filter_words(audit))}",
            "table": parts(filter_precision.figures_table(audit)),
        }
        for name, audit in audits.items()
    ]
    return {"filter_audits": {"heading": "What people found of the filter", "told": told, "audits": audits}}
