"""The template context for an exported set's dataset card.

All figures come from the manifest. Each kind of question has its own card template. A section of the card is built only
if the manifest has that section.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from annotate.controls.audit_report import whole_percent
from annotate.controls.replenishment import class_progress_table, remarks
from annotate.core.aggregation.answer_table import at_first, needed
from annotate.core.draws.splits import SPLITS
from annotate.goldsets import form_extras
from annotate.goldsets.export import DETECTORS, KNOWN_AS, REASONS, Export
from annotate.kinds import Kind
from annotate.kinds.options import OPTIONS, share
from annotate.quality import preference_report
from annotate.quality.agreement_report import agreement_table, doubts, label_table
from annotate.reports.numbers import coefficient, estimate
from annotate.reports.plots import bars_in_text
from annotate.reports.table_formats import parts, quote_yaml
from annotate.reports.tables import beside, many
from corpora.core.languages import UND
from corpora.core.values import licence_key
from corpora.core.voters import DEFAULT, VOTERS, in_words

# Hugging Face's licence identifiers. Most are the SPDX identifier in lower case.
_SAME = """APACHE-2.0 MIT CC0-1.0 CC-BY-4.0 CC-BY-3.0 CC-BY-2.0 CC-BY-SA-4.0 CC-BY-SA-3.0 CC-BY-NC-4.0 CC-BY-NC-SA-4.0
    ODC-BY ODBL PDDL"""
CARD_LICENCES = {name: name.lower() for name in _SAME.split()} | {
    "CC0": "cc0-1.0",
    "ODC-BY-1.0": "odc-by",
    "ODBL-1.0": "odbl",
    "PDDL-1.0": "pddl",
    "PUBLIC-DOMAIN": "unknown",
}
SIZES = (
    (10**3, "n<1K"),
    (10**4, "1K<n<10K"),
    (10**5, "10K<n<100K"),
    (10**6, "100K<n<1M"),
    (10**7, "1M<n<10M"),
    (10**8, "10M<n<100M"),
)
Context = dict[str, Any]
Section = Mapping[str, Any]


def head_of(title: str, licence: str, codes: Iterable[str], rows: int, digests: Iterable[str]) -> Context:
    """Return the context for the header of a dataset card.

    codes: language codes of the set.
    rows: number of rows in the set.
    digests: digests of the files that hold the rows.

    The version is derived from the digests, because `datasets.load_dataset` identifies a cached set only by folder name
    and version. If all sets had the same version, it could return cached rows of another set in a folder with the same
    name.
    """
    return {
        "licence": CARD_LICENCES.get(licence_key(licence)),
        "quoted": {"title": quote_yaml(title), "licence": quote_yaml(licence)},
        "languages": sorted({code.split("-")[0] for code in codes}),
        "size": next((name for limit, name in SIZES if rows < limit), "100M<n<1B"),
        "version": f"1.0.{int(hashlib.sha256(' '.join(digests).encode()).hexdigest()[:6], 16)}",
    }


def card_of(export: Export, manifest: dict[str, Any], names: Mapping[str, Any]) -> Context:
    """Return the context for the dataset card of an export.

    names: file names by purpose, as built in `exporter.py`.
    """
    kind, task, counts = export.kind, manifest["task"], manifest["counts"]
    # A split without rows can't be loaded, so the card omits it.
    splits = {KNOWN_AS.get(part, part): file for part, file in names["parquet"].items() if file in manifest["files"]}
    # If the labels are languages, list the languages that the draws ask about. If they ask about none, list the labels.
    # For other labels, list the declared languages.
    languages = task["languages"]
    if kind.labels_are_languages:
        draw_languages = [draw["language"] for draw in manifest["draws"] if draw["language"]]
        languages = draw_languages or [label for label in counts["by_label"] if label != UND]
    # List the detectors in registration order. Their order in the database may differ.
    voted = {name for panel in manifest["detectors"] for name in panel} or {*DEFAULT.voters}
    voters = {name: VOTERS[name].title for name in VOTERS if name in voted}
    voters |= {name: name for name in sorted(voted.difference(VOTERS))}
    digests = (manifest["files"][name] for name in splits.values())
    context = {
        **head_of(task["title"], manifest["corpus"]["licence"], languages, counts["labelled"], digests),
        "manifest": manifest,
        "names": {**names, "splits": splits},
        "design": export.design,
        "voters": {"number": in_words(len(voters)), "titles": ", ".join(voters.values())},
        "draw": manifest["draws"][0],
        # Kinds whose answers are imported have no random draws to disclose.
        "lots": manifest["lots"] if kind.answered_here else {},
        **{"noun": f"{kind.noun}s", "one": kind.noun, "category": kind.publication.category},
        "needed": needed(task["redundancy"]),
        "shares": {
            name: whole_percent(task[name])
            for name in kind.options
            if OPTIONS[name].read is share and task[name] is not None
        },
        **_counts(kind, manifest),
    }
    for name, section_context in SECTIONS.items():
        if manifest.get(name):
            context |= section_context(manifest[name], kind, manifest)
    return context | _panels(export, manifest) | _summary(context)


def _summary(context: Context) -> Context:
    """Return the card's first sentence, which counts the labels by source, and a plot of the labels."""
    counts, noun = context["manifest"]["counts"], context["one"]
    sources = [f"{context['by_people']:,} from annotators" * bool(context["by_people"])]
    who = "voters" if context["manifest"]["task"].get("voters") else "detectors"
    sources += [f"{context['by_machine']:,} that the {who} agree on" * bool(context["by_machine"])]
    origin = ", ".join(filter(None, sources))
    label = "has a label" if context["total"] == 1 else "have a label"
    agreement = context["manifest"].get("agreement") or {}
    observed = (agreement.get("all") or {}).get("observed")
    agreed = f"; observed agreement {coefficient(observed)}" if observed and observed["value"] is not None else ""
    whole = many(context["total"], noun)
    return {
        "sentence": f"{counts['labelled']:,} of {whole} {label}{f': {origin}' if origin else ''}{agreed}.",
        "plot": "\n".join(bars_in_text((name or label, number) for label, name, number in context["label_counts"])),
    }


def _panels(export: Export, manifest: dict[str, Any]) -> Context:
    """Return the panels of the quality controls.

    If the kind's card template has text about a control, the control's panel is stored under its manifest key. All
    other panels are listed under `panels`.
    """
    context: Context = {"panels": []}
    for control in export.kind.hooks["panel"]:
        section = manifest.get(control.manifest_key)
        if panel := section and control.panel(export.task, section):
            entry: dict[str, Any] = {"heading": panel.heading, "words": panel.words or [panel.empty]}
            entry["tables"] = [parts(table) for table in panel.tables]
            if control.manifest_key in export.kind.publication.sections:
                context[control.manifest_key] = entry if panel.words else {}
            else:
                context["panels"].append(entry)
    return context


def _counts(kind: Kind, manifest: dict[str, Any]) -> Context:
    counts, draws = manifest["counts"], manifest["draws"]
    by_label, agreed_by, reused = counts["by_label"], counts.get("agreed_by", {}), counts.get("reused", {})
    by_machine = agreed_by.get(DETECTORS, 0)
    first, *others = (draw["parameters"] for draw in draws)
    # Show only parameters that are the same in all draws. Show a time window as its start and end, without the time of
    # day if it is midnight.
    shared = {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}
    return {
        "total": counts[f"{kind.noun}s"],
        "by_machine": by_machine,
        "by_people": counts["labelled"] - by_machine,
        "agreed_by_people": sum(agreed_by.values()) - by_machine,
        # Each possible label with its name, meaning and number of rows.
        "labels": [
            (label, answer.name() if answer else "", answer.meaning if answer else "", by_label.get(label, 0))
            for label in manifest["task"]["labels"]
            for answer in [kind.answers.get(label)]
        ],
        "label_counts": [(label, kind.name(label), number) for label, number in by_label.items()],
        "reused": reused,
        "reused_total": sum(reused.values()),
        "left_out": [(REASONS[reason], number) for reason, number in counts["left_out"].items()],
        "drawn": [(draw, beside(draw["language"]), by_label.get(draw["language"], 0)) for draw in draws],
        "fewer": [draw["language"] for draw in draws if draw["size"] < draw["asked"]],
        "parameters": [
            (key.replace("_", " "), " to ".join(str(end).removesuffix("T00:00:00+00:00") for end in ends))
            for key, value in shared.items()
            for ends in [value if isinstance(value, list) else [value]]
        ],
    }


# --- Sections of the manifest

# Agreement statistic -> its name on a card.
AGREEMENT = {
    "observed": "observed agreement",
    "masi": "alpha (MASI)",
    "jaccard": "alpha (Jaccard)",
    "unitizing": "alpha (characters of spans)",
    "nominal": "alpha",
    "ordinal": "alpha of the grades",
    "ac1": "AC1",
}


def _agreement(section: Section, kind: Kind, manifest: dict[str, Any]) -> Context:
    labels, task = label_table(section), manifest["task"]
    return {
        "agreed": parts(agreement_table(section, {"units_of_two": f"{kind.noun}s"} | AGREEMENT)),
        "agreed_by_label": parts(labels) if labels else None,
        "agreement_doubts": doubts(section),
        # With early stopping, only this many answers per unit are compared. None: no limit.
        "asked_first": at_first(task["redundancy"], stop_early=True) if task.get("stop_early") else None,
    }


def _concepts(section: Section, kind: Kind, manifest: dict[str, Any]) -> Context:
    counts = manifest["counts"]
    return {
        "by_split": parts(form_extras.split_table(section)),
        "by_zone": parts(form_extras.word_table(section)) if section["words"] else None,
        "buckets": parts(form_extras.bucket_table(section)),
        "label_shares": parts(form_extras.apart_table(section)),
        "votes": parts(form_extras.vote_table(counts["by_votes"])) if counts["by_votes"] else None,
        "frequent": parts(form_extras.label_table(counts["by_label"], kind.name)),
    }


def _sets(section: Section, kind: Kind, manifest: dict[str, Any]) -> Context:
    languages, standing = section["languages"], section["standing"]
    return {
        "standing": parts(class_progress_table(standing)) if standing else None,
        **{name: any(draw[name] for draw in languages.values()) for name in ("published", "short", "faults")},
        "remarks": [remark for language, draw in languages.items() for remark in remarks(language, draw)],
    }


def _splits(section: Section, kind: Kind, manifest: dict[str, Any]) -> Context:
    by_split = manifest["counts"]["by_split"]
    rows = [
        (code, beside(code), *(by_split.get(f"{code}.{split}", 0) for split in SPLITS))
        for code in manifest["counts"]["by_language"]
    ]
    return {"splits": rows, "apart": kind.records.apart}


# Section of the manifest -> function that returns its part of the context.
SECTIONS: Mapping[str, Callable[[Section, Kind, dict[str, Any]], Context]] = {
    "audit": lambda section, kind, manifest: {
        "contested": [row["language"] for row in section["languages"] if row["contested"]],
    },
    "splits": _splits,
    "sets": _sets,
    # Each system with its files, its number of lines, and the number of records without a reply.
    "systems": lambda section, kind, manifest: {
        "systems": [
            (name, ", ".join(system["files"]), system["lines"], system["lacking"])
            for name, system in section["systems"].items()
        ],
        "compared": section,
    },
    "concepts": _concepts,
    "people": lambda section, kind, manifest: {"crowd": section},
    "honeypots": lambda section, kind, manifest: {"right": estimate(section["accuracy"]) if section["asked"] else ""},
    "agreement": _agreement,
    "preferences": lambda section, kind, manifest: {
        "preferred": [parts(table) for table in preference_report.tables(section)],
        "preferred_words": preference_report.words(section),
    },
}
