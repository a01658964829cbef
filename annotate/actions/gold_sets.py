"""The actions `export_gold`, `import_gold` and `verify_lots`, which write, import and verify gold sets."""

from pathlib import Path
from typing import Any

from annotate.actions.action import FILE, MAX_REJECTS, TASK, Outcome, Progress, Values, action, task_named
from annotate.actions.opening_summary import lacking
from annotate.controls.audit_report import contested_waiting
from annotate.core.draws.committed_draws import PURPOSES
from annotate.core.draws.splits import FREQUENT_OVER
from annotate.core.option import Option, flag, whole_number
from annotate.figures import overview_report, task_overview
from annotate.goldsets.exporter import SPLITS, ExportError, export
from annotate.goldsets.gold_import import IMPORTED, REJECTS, TWO_LABELS, import_gold, unlisted
from annotate.goldsets.set_folder import GoldSetError
from annotate.goldsets.verification import verify
from annotate.kinds.interface_language import is_negative
from annotate.reports.table_formats import as_lines
from annotate.reports.tables import NOTE, Column, many, numbers, table
from annotate.work import closure
from corpora.core.languages import UND

OF_RECORDS = "The splits of records"


@action(
    "export_gold",
    "Write a task's gold set: files of a published format, JSONL, Parquet, manifest and dataset card.",
    TASK,
    Option(
        "out",
        Path,
        required=True,
        shown="FOLDER",
        help="the folder to write; it replaces an earlier export, but never a finished set by an unfinished one",
    ),
    Option(
        "splits",
        default="",
        shown="SHARES",
        help=f"for records: the shares of their splits; by default those of the kind's split field, or {SPLITS}; train "
        "is in English only, and other languages have dev and test",
        group=OF_RECORDS,
    ),
    Option("seed", default="", help="the seed of the splits; by default the draw's", group=OF_RECORDS),
    Option(
        "frequent_over",
        whole_number,
        least=1,
        help="for documents with several labels: a label in more train documents is frequent, by default "
        f"{FREQUENT_OVER}",
        group=OF_RECORDS,
    ),
    Option(
        "tell_secret",
        flag,
        False,
        help="disclose the secret of a closed task's random draws in the set, so that verify_lots can repeat them; "
        "the task can never be reopened",
    ),
    refuses=(ExportError,),
)
def export_gold_action(values: Values, progress: Progress) -> Outcome:
    task, out = task_named(values["task"]), values["out"]
    given = {name: values[name] for name in ("splits", "seed", "frequent_over", "tell_secret")}
    if values["tell_secret"]:
        closure.tell_secret(task)
    closure.fix_outcomes(task)
    manifest = export(task, out, **given)
    counts, noun = manifest["counts"], f"{task.kind.noun}s"
    warned = [overview_report.undecidable(task_overview.undecidable(task))]
    if not manifest["finished"]:
        left = counts["unfinished"]
        waits = f"{many(left, task.kind.noun)} still {'waits' if left == 1 else 'wait'}"
        waiting = f"Unfinished: {waits} for people. The files are named accordingly."
        contested = overview_report.contested(contested_waiting().get(task.pk, {}))
        warned = [waiting, contested, *lacking(task), *warned]
    if not manifest["corpus"]["text_may_leave"]:
        warned.append("The licence keeps the text here: the files hold ids and labels only.")
    # Warn about splits only if the user chose them or a published format has them. Otherwise only the card does.
    if values["splits"] or manifest.get("published"):
        warned += [f"Note: {sentence}" for sentence in manifest.get("splits", {}).get("off", {}).values()]
    warned.append((manifest.get("published") or {}).get("refused", ""))
    labels = many(len(counts["by_label"]), "label")
    written = f"{counts['labelled']:,} of {counts[noun]:,} {noun} written to {out}, in {labels}."
    return Outcome([written], [sentence for sentence in warned if sentence], manifest)


# --- A published file

FREQUENT = 100  # minimum number of posts of a frequent language; the article counts these languages
SPELLINGS = 10  # maximum number of spellings shown; manifest.json lists all of them
CARD = "What the card says"


@action(
    "import_gold",
    "Import a published gold file (label<TAB>id, no header, plain or compressed) as a gold set to evaluate against. "
    "Faulty rows are rejected and listed with their lines.",
    FILE,
    Option("out", Path, required=True, shown="FOLDER", help="the folder to write; it replaces an earlier import"),
    Option("design", choices=tuple(IMPORTED), required=True, help="how the posts were sampled"),
    Option("name", required=True, help="the name of the gold set, for reports"),
    Option("source", default="", help="the origin of the file, for the dataset card", group=CARD),
    Option("licence", default="", help="the licence of the file, for example CC0-1.0", group=CARD),
    MAX_REJECTS,
    refuses=(GoldSetError,),
    on_files=True,
)
def import_gold_action(values: Values, progress: Progress) -> Outcome:
    told = {name: values[name] for name in ("design", "name", "source", "licence", "max_rejects")}
    manifest = import_gold(values["file"], values["out"], **told)
    counts, out = manifest["counts"], values["out"]
    labels = counts["by_label"]
    frequent = sum(posts >= FREQUENT for label, posts in labels.items() if label != UND and not is_negative(label))
    written = (
        f"{counts['labelled']:,} of {counts['rows']:,} rows written to {out}, in {len(labels)} labels; "
        f"{frequent} languages have at least {FREQUENT} posts, {UND} apart."
    )
    said = []
    if counts["refused"]:
        ids = {TWO_LABELS: f" ({counts['ids_with_two_labels']:,} ids)"}
        said.append(f"Refused, and listed in {out / REJECTS}:")
        said += [f"{rows:>9,}  {reason}{ids.get(reason, '')}" for reason, rows in counts["refused"].items()]
    if spellings := counts["rewritten"]:
        named = ", ".join(f"{pair} ({posts:,})" for pair, posts in list(spellings.items())[:SPELLINGS])
        more = f" and {len(spellings) - SPELLINGS} more spellings" if len(spellings) > SPELLINGS else ""
        said.append(f"Labels rewritten in {sum(spellings.values()):,} rows: {named}{more}.")
    if others := unlisted(labels):
        named = ", ".join(f"{label} ({posts:,})" for label, posts in others.items())
        said.append(f"Kept, though not among the languages known here: {named}.")
    return Outcome([*said, written], data=manifest)


# --- Random draws

DRAWS = (
    Column("lot", "lot"),
    Column("decides", "decides", says=lambda row: PURPOSES[row["lot"]][0]),
    *numbers({"checked": "checked", "differ": "differ"}),
    Column("first", "", NOTE, lambda row: f"The first that differs: {row['first']}." if row["first"] else ""),
)


def verdict(found: dict[str, Any]) -> str:
    checked = sum(row["checked"] for row in found["lots"])
    if found["unknown"]:
        return f"No: the set does not have the published digest {found['unknown'][0]}, so it was changed since."
    if not found["secret_fits"]:
        return "No: the secret is not that whose SHA-256 the manifest has, so nothing can be drawn by it."
    if not checked:
        return f"No lot decided anything in {found['task']}."
    if found["differ"]:
        return f"No: {found['differ']:,} of {many(checked, 'decision')} are not what the secret's lots say."
    return f"Yes: all of {many(checked, 'decision')} are what the secret's lots say."


@action(
    "verify_lots",
    "Repeat the random draws of a set whose secret was disclosed: gold answers and their places, audits, checks, "
    "decoys, tests and sides. Exits with status 1 if anything differs.",
    Option("folder", Path, required=True, argument=True, help="a set that export_gold has written with --tell-secret"),
    Option(
        "published",
        several=True,
        in_a_row=True,
        shown="DIGEST",
        help="digests published earlier, of the secret or of the outcomes at the close",
    ),
    refuses=(GoldSetError,),
    on_files=True,
)
def verify_lots_action(values: Values, progress: Progress) -> Outcome:
    found = verify(values["folder"], values["published"] or ())
    said = [as_lines(table("Lots", DRAWS, found["lots"]))] if found["lots"] else []
    if not values["published"]:
        digests = found["digests"]
        said.append(f"Compare with what was published before: SHA-256 of the secret {digests['secret']}.")
        if fixed := digests["outcomes"]:
            said.append(f"Outcomes, fixed at {fixed['at']}: {fixed['digest']}.")
    return Outcome([*said, verdict(found)], data=found, status=1 if found["differ"] or found["unknown"] else 0)
