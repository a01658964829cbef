"""The card of a set of message-reply pairs. Nothing is counted here: all is in the manifest of pairs.py.

A room that knows more of a corpus of pairs, such as what people found in an audit of its filter, adds a section: a name
and a function in SECTIONS.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.template.loader import render_to_string

from annotate.goldsets.card import CARD_LICENCES, SIZES, cache_version
from annotate.models import Task
from annotate.quality import filter_audits
from annotate.reports import filter_audits as of_filter
from annotate.reports import markdown
from annotate.reports import pairs as told
from annotate.reports.tables import LANGUAGE, Table, numbers, table
from corpora.core.values import licence_key
from corpora.draws.part_draws import SIDES
from corpora.threads.pair_sets import SPLITS


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
        (f"Task {name}: {' '.join(of_filter.words(audit))}", of_filter.figures_table(audit))
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
        "steps": markdown.parts(told.steps_table([*told.steps_of(threads), *told.filter_steps(manifest)])),
        "languages": markdown.parts(_language_table(languages)),
        "declared": markdown.parts(told.disagreement_table(declared)) if declared else None,
        "called_out": told.called_out(declared),
        "responses": sum(row["responses"] for row in languages),
    }
    return render_to_string("annotate/card_pairs.md", context)


def _language_table(rows: list[dict[str, Any]]) -> Table:
    heads = numbers({**{split: split for split in SPLITS}, "responses": "response set"})
    return table("Languages", (*LANGUAGE, *heads), rows)
