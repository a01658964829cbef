"""The dataset card of an exported set: what its template is given. Counts nothing: all is in the manifest."""

import json

from annotate.core.aggregation import at_first, needed
from annotate.core.labels import label_name
from annotate.core.splits import SPLITS
from annotate.goldsets.survey import REASONS
from annotate.kinds import TASK_TYPES
from annotate.reports import checks
from annotate.reports.agreement_tables import agreement_table
from annotate.reports.numbers import coefficient, count, estimate
from annotate.reports.predictor_report import NUMBER, Table, name_of
from corpora.core.languages import LANGUAGES, UND
from corpora.ingest import licence_key

IMPORTED = "imported"  # the task type of judgments made elsewhere
# Licences whose identifier on Hugging Face's cards is their name in lower case, and those where it is another.
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


def _of_any(manifest: dict, names: dict, codes: list[str]) -> dict:
    """What every card says. codes: of the languages."""
    licence = manifest["corpus"]["licence"]
    return {
        "manifest": manifest,
        "names": names,
        "licence": CARD_LICENCES.get(licence_key(licence)),
        # A JSON string is one of YAML too.
        "quoted": {"title": _quoted(manifest["task"]["title"]), "licence": _quoted(licence)},
        "languages": sorted({code.split("-")[0] for code in codes}),
        "size": next((name for limit, name in SIZES if manifest["counts"]["labelled"] < limit), "100M<n<1B"),
        "draw": manifest["draws"][0],
    }


def _quoted(words: str) -> str:
    return json.dumps(words, ensure_ascii=False)


# --- posts


def of_posts(manifest: dict, names: dict) -> tuple[str, dict]:
    """The template of a set of posts, and its context."""
    counts, draws = manifest["counts"], manifest["draws"]
    by_label, by_stratum = counts["by_label"], counts["by_stratum"]
    asked = [draw["language"] for draw in draws if draw["language"]]
    context = _of_any(manifest, names, asked or [label for label in by_label if label != UND]) | {
        "noun": "posts",
        "people": "expert-generated",
        "total": counts["posts"],
        "by_machine": by_stratum.get("agreed", 0),
        "by_people": counts["labelled"] - by_stratum.get("agreed", 0),
        "labels": [(label, label_name(label), count) for label, count in by_label.items()],
        "reused": counts["reused"],
        "reused_total": sum(counts["reused"].values()),
    }
    if manifest["agreement"]:
        context["agreed"] = _agreement_table(manifest["agreement"], "posts")
    if audit := manifest["audit"]:
        shares = {
            knob: checks.whole_percent(manifest["task"][knob])
            for knob in ("audit_share", "audit_recheck", "audit_limit")
        }
        contested = [row["language"] for row in audit["languages"] if row["contested"]]
        context |= {
            "shares": shares,
            "contested": contested,
            "found": _table(checks.audit_table(audit)),
            "found_words": checks.audit_words(audit),
        }
    if decoys := manifest["decoys"]:
        context |= {
            "told": [(key.replace("_", " "), _told(value)) for key, value in _shared(draws).items()],
            "drawn": [(draw, LANGUAGES[draw["language"]].name, by_label.get(draw["language"], 0)) for draw in draws],
            "fewer": [draw["language"] for draw in draws if draw["size"] < draw["asked"]],
            "found": _table(checks.decoy_table(decoys)),
            "found_words": checks.decoy_words(decoys),
        }
    return "annotate/card_posts.md", context


def _shared(draws: list[dict]) -> dict:
    """The parameters that all draws of a set have alike, and not those that say what each of them found."""
    first, *others = (draw["parameters"] for draw in draws)
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}


def _told(value) -> str:
    """A parameter of a draw; a window as two moments, midnights as days."""
    ends = [str(end).removesuffix("T00:00:00+00:00") for end in value] if isinstance(value, list) else [str(value)]
    return " to ".join(ends)


# --- records


def of_records(manifest: dict, names: dict) -> tuple[str, dict]:
    """The template of a set of records, and its context."""
    counts, task, crowd = manifest["counts"], manifest["task"], manifest["people"]
    kind = TASK_TYPES[task["type"]]
    pots = manifest["honeypots"]
    context = _of_any(manifest, names, task["languages"]) | {
        "noun": "records",
        "people": "crowdsourced",
        "total": counts["records"],
        "by_machine": 0,
        "by_people": counts["labelled"],
        "labels": [
            (label, *kind.answers.get(label, ("", "")), counts["by_label"].get(label, 0)) for label in task["labels"]
        ],
        "splits": [_split_row(code, counts["by_split"]) for code in counts["by_language"]],
        "apart": kind.apart,
        "needed": needed(task["redundancy"]),
        "asked_first": _asked_first(task),
        "numbers": {knob: checks.whole_percent(task[knob]) for knob in ("pass_mark", "gold_share")},
        "crowd": crowd,
        "right": estimate(pots["accuracy"]) if pots["asked"] else "",
        "left_out": [(REASONS[reason], count) for reason, count in counts["left_out"].items()],
        "agreed": _agreement_table(manifest["agreement"], "records") if manifest["agreement"] else None,
    }
    return f"annotate/{'card_judgments' if task['type'] == IMPORTED else 'card_records'}.md", context


def _asked_first(task: dict) -> int | None:
    """How many answers to a record agreement counts, where others may be asked for later; None where it counts all."""
    if not (task["stop_early"] or task["extra_answers"]):
        return None
    return at_first(task["redundancy"], stop_early=task["stop_early"])


def _split_row(code: str, by_split: dict) -> tuple:
    return (code, name_of(code), *(by_split.get(f"{code}.{split}", 0) for split in SPLITS))


def _agreement_table(found: dict, noun: str) -> dict:
    """noun: what people agree on."""
    columns = (
        (noun, lambda part: count(part["units_of_two"])),
        ("observed agreement", lambda part: coefficient(part["observed"])),
        ("alpha", lambda part: coefficient(part["nominal"])),
    )
    return _table(agreement_table(found, columns, ordinal="alpha of the grades"))


def _table(table: Table) -> dict:
    return {
        "heads": [heading for heading, _ in table.columns],
        "rules": ["---:" if kind == NUMBER else "---" for _, kind in table.columns],
        "rows": table.rows,
    }
