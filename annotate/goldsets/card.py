"""The dataset card of an exported set: what its template is given. Nothing is counted here: all is in the manifest.

The kind of question names the template. What the card says of a section is made only if the manifest has that section.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from annotate.controls import audit_report, checks, declared_audit, decoys, filter_precision
from annotate.controls.audit_report import whole_percent
from annotate.controls.concept_suggestions import suggestion_table
from annotate.controls.replenishment import remarks, standing_table
from annotate.core.aggregation.majority import at_first, needed
from annotate.core.draws.splits import SPLITS
from annotate.goldsets import form_extras, thread_report
from annotate.goldsets.exclusions import REASONS
from annotate.goldsets.export import Export
from annotate.goldsets.provenance import DETECTORS
from annotate.kinds import Kind
from annotate.kinds.options import OPTIONS, share
from annotate.quality import preference_report
from annotate.quality.agreement_report import agreement_table, doubts, label_table
from annotate.reports.markdown import in_yaml, parts
from annotate.reports.numbers import estimate
from annotate.reports.tables import LANGUAGE, beside, numbers, table
from corpora.core.languages import UND
from corpora.core.values import licence_key
from corpora.core.voters import VOTERS, in_words
from corpora.threads.pair_sets import SPLITS as PAIR_SPLITS

# Licences whose identifier on Hugging Face's cards is their name in lower case, and those with another identifier.
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


def head_of(title: str, licence: str, codes: Iterable[str], rows: int, digests: Iterable[str]) -> Context:
    """What the header of every card has. codes: of the languages; digests: of the files with the rows.

    version: other rows have another version. datasets.load_dataset keeps what it has read under the folder's name and
    this version, and looks at nothing else. Without it, a set would be read as another one that was once loaded from a
    folder of the same name.
    """
    return {
        "licence": CARD_LICENCES.get(licence_key(licence)),
        "quoted": {"title": in_yaml(title), "licence": in_yaml(licence)},
        "languages": sorted({code.split("-")[0] for code in codes}),
        "size": next((name for limit, name in SIZES if rows < limit), "100M<n<1B"),
        "version": f"0.0.{int(hashlib.sha256(' '.join(digests).encode()).hexdigest()[:15], 16)}",
    }


def card_of(export: Export, manifest: dict, names: Mapping[str, Any]) -> Context:
    """names: the files' names, in the terms of exporter.py."""
    kind, task, licence = export.kind, manifest["task"], manifest["corpus"]["licence"]
    digests = [manifest["files"][name] for name in names["splits"].values()]
    context = {
        **head_of(task["title"], licence, _languages(kind, manifest), manifest["counts"]["labelled"], digests),
        "manifest": manifest,
        "names": names,
        "design": export.design,
        "voters": _voters(manifest["detectors"]),
        "draw": manifest["draws"][0],
        # In what people said elsewhere nothing was left to chance here.
        "lots": manifest["lots"] if kind.answered_here else {},
        "noun": f"{kind.noun}s",
        "one": kind.noun,
        "needed": needed(task["redundancy"]),
        "shares": {
            name: whole_percent(task[name])
            for name in kind.options
            if OPTIONS[name].read is share and task[name] is not None
        },
        **_counts(kind, manifest),
    }
    for section, made in SECTIONS.items():
        if manifest.get(section):
            context |= made(kind, manifest)
    # The kind's own card has words for the sections that the kind names.
    others = [control for control in kind.quality_controls if control.manifest_key not in kind.publication.sections]
    panels = [panel for control in others if control.manifest_key and (panel := control.panel(export.task))]
    return context | {"panels": [(panel, [parts(table) for table in panel.tables]) for panel in panels]}


def _voters(panels: Sequence[Mapping[str, str]]) -> Context:
    """The detectors that voted. panels: of each draw, detector -> version."""
    voted = {name for panel in panels for name in panel} or set(VOTERS)
    # In the order in which they are registered, whatever a database makes of that.
    names = [*(name for name in VOTERS if name in voted), *sorted(voted.difference(VOTERS))]
    titles = (VOTERS[name].title if name in VOTERS else name for name in names)
    return {"number": in_words(len(names)), "titles": ", ".join(titles)}


def _languages(kind: Kind, manifest: dict) -> list[str]:
    """The declared languages; if the labels are languages, those that were asked about, or else answered."""
    if not kind.labels_are_languages:
        return manifest["task"]["languages"]
    asked = [draw["language"] for draw in manifest["draws"] if draw["language"]]
    return asked or [label for label in manifest["counts"]["by_label"] if label != UND]


def _counts(kind: Kind, manifest: dict) -> Context:
    counts = manifest["counts"]
    agreed_by = counts.get("agreed_by", {})
    by_machine = agreed_by.get(DETECTORS, 0)
    reused = counts.get("reused", {})
    return {
        "total": counts[f"{kind.noun}s"],
        "by_machine": by_machine,
        "by_people": counts["labelled"] - by_machine,
        "agreed_by_people": sum(agreed_by.values()) - by_machine,
        # What may be answered, and what was.
        "labels": [
            (label, *_named(kind, label), counts["by_label"].get(label, 0)) for label in manifest["task"]["labels"]
        ],
        "given": [(label, kind.name(label), number) for label, number in counts["by_label"].items()],
        "reused": reused,
        "reused_total": sum(reused.values()),
        "left_out": [(REASONS[reason], number) for reason, number in counts["left_out"].items()],
        "drawn": [
            (draw, beside(draw["language"]), counts["by_label"].get(draw["language"], 0)) for draw in manifest["draws"]
        ],
        "fewer": [draw["language"] for draw in manifest["draws"] if draw["size"] < draw["asked"]],
        "told": [(key.replace("_", " "), _told(value)) for key, value in _shared(manifest["draws"]).items()],
    }


def _named(kind: Kind, label: str) -> tuple[str, str]:
    return (kind.answers[label].name(), kind.answers[label].meaning) if label in kind.answers else ("", "")


def _shared(draws: list[dict]) -> dict:
    """The parameters that all draws of a set share, without those that say what each of them found."""
    first, *others = (draw["parameters"] for draw in draws)
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}


def _told(value) -> str:
    """A parameter of a draw; a window as two moments, midnights as days."""
    ends = [str(end).removesuffix("T00:00:00+00:00") for end in value] if isinstance(value, list) else [str(value)]
    return " to ".join(ends)


def pair_card(manifest: dict[str, Any]) -> Context:
    """The same for a set of message-reply pairs (formats/mrs.py)."""
    corpus, languages, declared = manifest["corpus"], manifest["languages"], manifest["threads"]["declared"]
    total = sum(row[split] for row in languages for split in PAIR_SPLITS)
    # A split that a card names but that has no rows cannot be loaded.
    there = {split: f"pairs.{split}.parquet" for split in PAIR_SPLITS if any(row[split] for row in languages)}
    rows = json.dumps([manifest["seed"], manifest["splits"], languages, manifest["filter"]])
    steps = [*thread_report.steps_of(manifest["threads"]), *thread_report.filter_steps(manifest)]
    heads = numbers({**{split: split for split in PAIR_SPLITS}, "responses": "response set"})
    title, codes = f"{corpus['name']}: pairs of message and reply", [row["language"] for row in languages]
    return {
        **head_of(title, corpus["licence"], codes, total, [rows]),
        "manifest": manifest,
        "total": total,
        "splits": {"validation" if split == "valid" else split: file for split, file in there.items()},
        "steps": parts(thread_report.steps_table(steps)),
        "by_language": parts(table("Languages", (*LANGUAGE, *heads), languages)),
        "declared": parts(thread_report.disagreement_table(declared)) if declared else None,
        "called_out": thread_report.called_out(declared),
        "responses": sum(row["responses"] for row in languages),
    }


# --- sections of the manifest


def _audit(kind: Kind, manifest: dict) -> Context:
    audit = manifest["audit"]
    return {
        "contested": [row["language"] for row in audit["languages"] if row["contested"]],
        "audited": parts(audit_report.audit_table(audit)),
        "audit_words": audit_report.audit_words(audit),
    }


def _declared_audit(kind: Kind, manifest: dict) -> Context:
    audit = manifest["declared_audit"]
    tables = (declared_audit.class_table, declared_audit.language_table, declared_audit.found_table)
    return {
        "audit_words": declared_audit.declared_words(audit),
        "audit_tables": [parts(made(audit)) for made in tables],
    }


def _filter_audit(kind: Kind, manifest: dict) -> Context:
    audit = manifest["filter_audit"]
    return {
        "filter_words": filter_precision.filter_words(audit),
        "filter_table": parts(filter_precision.figures_table(audit)),
    }


def _decoys(kind: Kind, manifest: dict) -> Context:
    found = manifest["decoys"]
    return {
        "decoys": parts(decoys.decoy_table(found)),
        "decoy_words": decoys.decoy_words(found),
    }


def _checks(kind: Kind, manifest: dict) -> Context:
    found = manifest["checks"]
    return {
        "check_words": [*checks.reader_words(found), *checks.adjudicator_words(found)],
        "checks": parts(checks.check_table(found)),
    }


def _sets(kind: Kind, manifest: dict) -> Context:
    languages = manifest["sets"]["languages"]
    standing = manifest["sets"]["standing"]
    return {
        "standing": parts(standing_table(standing)) if standing else None,
        **{name: any(told[name] for told in languages.values()) for name in ("published", "short", "faults")},
        "remarks": [remark for language, told in languages.items() for remark in remarks(language, told)],
    }


def _splits(kind: Kind, manifest: dict) -> Context:
    counts = manifest["counts"]
    rows = [
        (code, beside(code), *(counts["by_split"].get(f"{code}.{split}", 0) for split in SPLITS))
        for code in counts["by_language"]
    ]
    return {"splits": rows, "apart": kind.records.apart}


def _concepts(kind: Kind, manifest: dict) -> Context:
    found, counts = manifest["concepts"], manifest["counts"]
    return {
        **{
            name: parts(made(found))
            for name, made in (
                ("by_split", form_extras.split_table),
                ("buckets", form_extras.bucket_table),
                ("label_shares", form_extras.apart_table),
            )
        },
        "votes": parts(form_extras.vote_table(counts["by_votes"])) if counts["by_votes"] else None,
        # Names are of a file.
        "frequent": parts(form_extras.label_table(counts["by_label"], kind.name)),
    }


def _systems(kind: Kind, manifest: dict) -> Context:
    """The systems with what is told of them, and how many messages all of them have replies for."""
    found = manifest["systems"]
    rows = [(name, ", ".join(told["files"]), told["lines"], told["lacking"]) for name, told in found["systems"].items()]
    return {"systems": rows, "compared": found}


def _honeypots(kind: Kind, manifest: dict) -> Context:
    pots = manifest["honeypots"]
    return {"right": estimate(pots["accuracy"]) if pots["asked"] else ""}


def _agreement(kind: Kind, manifest: dict) -> Context:
    headings = {
        "units_of_two": f"{kind.noun}s",
        "observed": "observed agreement",
        "masi": "alpha (MASI)",
        "jaccard": "alpha (Jaccard)",
        "nominal": "alpha",
        "ordinal": "alpha of the grades",
        "ac1": "AC1",
    }
    found = manifest["agreement"]
    labels = label_table(found)
    return {
        "agreed": parts(agreement_table(found, headings)),
        "agreed_by_label": parts(labels) if labels else None,
        "agreement_doubts": doubts(found),
        "asked_first": _asked_first(manifest["task"]),
    }


def _asked_first(task: dict) -> int | None:
    """How many answers to a unit agreement counts, if others may be asked for later; None if it counts all."""
    return at_first(task["redundancy"], stop_early=True) if task.get("stop_early") else None


def _preferences(kind: Kind, manifest: dict) -> Context:
    found = manifest["preferences"]
    if found is None:
        return {"preferred": None}
    return {
        "preferred": [parts(made) for made in preference_report.tables(found)],
        "preferred_words": preference_report.words(found),
    }


SECTIONS: Mapping[str, Callable[[Kind, dict], Context]] = {
    "audit": _audit,
    "declared_audit": _declared_audit,
    "filter_audit": _filter_audit,
    "decoys": _decoys,
    "checks": _checks,
    "splits": _splits,
    "sets": _sets,
    "systems": _systems,
    "concepts": _concepts,
    "suggestions": lambda kind, manifest: {"suggested": parts(suggestion_table(manifest["suggestions"]))},
    "people": lambda kind, manifest: {"crowd": manifest["people"]},
    "honeypots": _honeypots,
    "agreement": _agreement,
    "preferences": _preferences,
}
