"""import_gold: a published gold file, as a gold set to evaluate against."""

from pathlib import Path
from typing import Any

from annotate.actions.action import FILE, MAX_REJECTS, Action, Outcome
from annotate.core.option import Option
from annotate.goldsets.gold_import import IMPORTED, REJECTS, TWO_LABELS, import_gold, unlisted
from annotate.goldsets.set_folder import GoldSetError
from annotate.kinds.language_labels import is_negative
from corpora.core.languages import UND

MANY = 100  # posts: the article counts the languages that have as many
SHOWN = 10  # spellings that are told; manifest.json has them all
CARD = "What the card says"
OPTIONS = (
    FILE,
    Option("out", Path, required=True, shown="FOLDER", help="the folder to write; it replaces an earlier import"),
    Option("design", choices=tuple(IMPORTED), required=True, help="how the posts were sampled"),
    Option("name", required=True, help="the name of the gold set, for reports"),
    Option("source", default="", help="the origin of the file, for the dataset card", group=CARD),
    Option("licence", default="", help="the licence of the file, for example CC0-1.0", group=CARD),
    MAX_REJECTS,
)


def run(values, progress) -> Outcome:
    told = {name: values[name] for name in ("design", "name", "source", "licence", "max_rejects")}
    manifest = import_gold(values["file"], values["out"], **told)
    counts, out = manifest["counts"], values["out"]
    labels = counts["by_label"]
    many = sum(posts >= MANY for label, posts in labels.items() if label != UND and not is_negative(label))
    written = (
        f"{counts['labelled']:,} of {counts['rows']:,} rows written to {out}, in {len(labels)} labels; "
        f"{many} languages have at least {MANY} posts, {UND} apart."
    )
    return Outcome([*_refused(counts, out / REJECTS), *_rewritten(counts), *_kept(counts), written], data=manifest)


def _refused(counts: dict[str, Any], listed: Path) -> list[str]:
    if not counts["refused"]:
        return []
    ids = {TWO_LABELS: f" ({counts['ids_with_two_labels']:,} ids)"}
    rows = [f"{rows:>9,}  {reason}{ids.get(reason, '')}" for reason, rows in counts["refused"].items()]
    return [f"Refused, and listed in {listed}:", *rows]


def _rewritten(counts: dict[str, Any]) -> list[str]:
    spellings = counts["rewritten"]
    if not spellings:
        return []
    named = ", ".join(f"{pair} ({posts:,})" for pair, posts in list(spellings.items())[:SHOWN])
    more = f" and {len(spellings) - SHOWN} more spellings" if len(spellings) > SHOWN else ""
    return [f"Labels rewritten in {sum(spellings.values()):,} rows: {named}{more}."]


def _kept(counts: dict[str, Any]) -> list[str]:
    others = unlisted(counts["by_label"])
    named = ", ".join(f"{label} ({posts:,})" for label, posts in others.items())
    return [f"Kept, though not among the languages known here: {named}."] if others else []


ACTION = Action(
    "import_gold",
    "Import a published gold file (label<TAB>id, no header, plain or compressed) as a gold set to evaluate against. "
    "Faulty rows are rejected and listed with their lines.",
    OPTIONS,
    run,
    (GoldSetError,),
    on_files=True,
)
