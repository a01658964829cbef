"""The actions that export, import, hydrate, verify, document and publish gold sets."""

import re
from pathlib import Path
from typing import Any

from annotate.actions.action import (
    FILE,
    FORMAT,
    MAX_REJECTS,
    TASK,
    ActionError,
    Outcome,
    Progress,
    Values,
    action,
    column,
)
from annotate.actions.opening_summary import reader_warnings
from annotate.controls.audit_report import contested_waiting
from annotate.core import stages
from annotate.core.draws.committed_draws import PURPOSES
from annotate.core.draws.splits import FREQUENT_OVER
from annotate.core.measures.generated_texts import MissingExtra
from annotate.core.option import Option, flag, whole_number
from annotate.exchange.tool_files import WRITERS
from annotate.figures import overview_report, task_overview
from annotate.goldsets.exporter import SPLITS, ExportError, check_export, export
from annotate.goldsets.gold_import import (
    IDS,
    IMPORTED,
    POSTS,
    REJECTS,
    TWO_LABELS,
    VANISHED,
    hydrate,
    import_gold,
    unknown_languages,
)
from annotate.goldsets.publication import (
    SUFFIXES,
    TOKEN,
    Parcel,
    PublishError,
    check_installed,
    parcel_of,
    send,
    suffix_of,
    write_archive,
)
from annotate.goldsets.set_documents import PERSONAL, PROJECT, read_project, write_project
from annotate.goldsets.set_folder import GoldSetError
from annotate.goldsets.verification import verify
from annotate.kinds.interface_language import is_negative
from annotate.reports.table_formats import as_lines
from annotate.reports.tables import NOTE, NUMBER, Column, many, numbers, ratio, table
from annotate.work import closure
from corpora.core.languages import UND
from corpora.core.records import FIELDS
from corpora.sources.readers import named_columns

OF_RECORDS = "Train, dev and test"


@action(
    "export_gold",
    "Write a task's gold set: its labels as JSONL and Parquet, a manifest and a dataset card, and for some kinds also "
    "the files of a known benchmark.",
    TASK,
    Option(
        "out",
        Path,
        required=True,
        shown="FOLDER",
        help="the output folder. An earlier export in it is replaced, but a finished set is never replaced by an "
        "unfinished one",
    ),
    Option(
        "splits",
        default="",
        shown="SHARES",
        help=f"for records: the shares of the splits; by default those of the kind's split field, or {SPLITS}. Only "
        "English has train; other languages have dev and test",
        group=OF_RECORDS,
    ),
    Option("seed", default="", help="the seed of the splits; by default the seed of the draw", group=OF_RECORDS),
    Option(
        "frequent_over",
        whole_number,
        least=1,
        help="for documents with several labels: count a label as frequent if more than N train documents have it, by "
        f"default {FREQUENT_OVER}",
        group=OF_RECORDS,
    ),
    Option(
        "as",
        default=(),
        choices=tuple(WRITERS),
        several=True,
        in_a_row=True,
        help="also write the set for other tools, each in a folder of its own; csv is for spreadsheets, and `import` "
        "reads the others again",
    ),
    Option(
        "tell_secret",
        flag,
        False,
        help="for a closed task: include the secret of its random draws in the set, so that verify_lots can repeat "
        "them. The task can never be reopened",
    ),
    refuses=(ExportError,),
    checks=lambda values: check_export(*(values[name] for name in ("task", "splits", "seed", "frequent_over", "as"))),
)
def export_gold_action(values: Values, progress: Progress) -> Outcome:
    task, out = values["task"], values["out"]
    options = {name: values[name] for name in ("splits", "seed", "frequent_over", "tell_secret")}
    if values["tell_secret"]:
        closure.mark_secret_published(task)
    if not task.is_open:
        closure.fix_outcomes(task)
    manifest = export(task, out, **options, tools=values["as"])
    counts, noun = manifest["counts"], f"{task.kind.noun}s"
    warnings = []
    if unfinished := counts["unfinished"]:
        items = f"{many(unfinished, task.kind.noun)} still {'needs' if unfinished == 1 else 'need'}"
        warnings = [f"The set is unfinished: {items} answers or decisions. The file names say so."]
        if any(row["contested"] for row in (manifest.get("audit") or {}).get("languages", ())):
            warnings.append(overview_report.contested(contested_waiting().get(task.pk, {})))
        warnings += reader_warnings(task)
    if counts["by_stage"].get(stages.ADJUDICATION):
        warnings.append(overview_report.undecidable(task_overview.undecidable(task)))
    if not manifest["corpus"]["text_may_leave"]:
        warnings.append("The licence does not allow publishing the text, so the files omit it.")
    # Warn about splits only if the user chose them or a published format requires them. Otherwise, only the dataset
    # card mentions them.
    if values["splits"] or manifest.get("published"):
        warnings += [f"Note: {sentence}" for sentence in manifest.get("splits", {}).get("off", {}).values()]
    published = manifest.get("published") or {}
    warnings += [published.get("refused", ""), published.get("note", "")]
    labels = f", in {many(len(counts['by_label']), 'label')}" if counts["by_label"] else ""
    written = f"{counts['labelled']:,} of {counts[noun]:,} {noun} written to {out}{labels}."
    return Outcome([written], [sentence for sentence in warnings if sentence], manifest)


# --- A published file

FREQUENT = 100  # minimum number of posts for a language to count as frequent, as in the article
SHOWN = 20  # maximum number of labels shown by `hydrate`
SPELLINGS = 10  # maximum number of spellings shown; manifest.json lists all of them
CARD = "The dataset card"


@action(
    "import_gold",
    "Import a published gold file (label<TAB>id, no header, plain or compressed) as a gold set for evaluation. "
    "Invalid rows are rejected and listed with their line numbers.",
    FILE,
    Option("out", Path, required=True, shown="FOLDER", help="the output folder. An earlier import in it is replaced"),
    Option("design", choices=tuple(IMPORTED), required=True, help="how the posts were sampled"),
    Option("name", required=True, help="the name of the gold set, for reports"),
    Option("source", default="", help="the origin of the file, for the dataset card", group=CARD),
    Option("licence", default="", help="the licence of the file, for example CC0-1.0", group=CARD),
    MAX_REJECTS,
    refuses=(GoldSetError,),
    on_files=True,
)
def import_gold_action(values: Values, progress: Progress) -> Outcome:
    options = {name: values[name] for name in ("design", "name", "source", "licence", "max_rejects")}
    manifest = import_gold(values["file"], values["out"], **options)
    counts, out = manifest["counts"], values["out"]
    labels = counts["by_label"]
    frequent = sum(posts >= FREQUENT for label, posts in labels.items() if label != UND and not is_negative(label))
    written = (
        f"{counts['labelled']:,} of {counts['rows']:,} rows written to {out}, in {many(len(labels), 'label')}. "
        f"{frequent} languages other than {UND} have at least {FREQUENT} posts."
    )
    sentences = []
    if counts["refused"]:
        ids = {TWO_LABELS: f" ({counts['ids_with_two_labels']:,} ids)"}
        sentences.append(f"Rejected rows, listed in {out / REJECTS}:")
        sentences += [f"{rows:>9,}  {reason}{ids.get(reason, '')}" for reason, rows in counts["refused"].items()]
    if spellings := counts["rewritten"]:
        rewritten = ", ".join(f"{pair} ({posts:,})" for pair, posts in list(spellings.items())[:SPELLINGS])
        more = f" and {len(spellings) - SPELLINGS} more spellings" if len(spellings) > SPELLINGS else ""
        sentences.append(f"Labels rewritten in {sum(spellings.values()):,} rows: {rewritten}{more}.")
    if unknown_counts := unknown_languages(labels):
        unlisted_labels = ", ".join(f"{label} ({posts:,})" for label, posts in unknown_counts.items())
        sentences.append(f"Labels that are not in the language list were kept: {unlisted_labels}.")
    return Outcome([*sentences, written], data=manifest)


# --- Downloaded texts

LABELS = (
    Column("label", "label"),
    *numbers({"posts": "posts", "found": "with a text"}),
    Column("gone", "without one", NUMBER, lambda row: ratio(row["posts"] - row["found"], row["posts"])),
)


@action(
    "hydrate",
    "Write the ids of a gold set, to download its posts from their source. With downloaded texts (columns id and text, "
    "or arrays of both), also write posts.jsonl with ids, labels and texts, which import_corpus reads, and "
    "vanished.txt with the ids of removed posts, for evaluate --vanished.",
    Option("gold", Path, required=True, argument=True, help="the folder of the gold set"),
    Option("texts", Path, several=True, in_a_row=True, default=(), shown="FILE", help="files of downloaded texts"),
    Option("out", Path, required=True, shown="FOLDER", help="the output folder"),
    column(FIELDS, "text=full_text"),
    FORMAT,
    refuses=(GoldSetError,),
    on_files=True,
    checks=lambda values: {"columns": named_columns(values["column"], FIELDS)},
)
def hydrate_action(values: Values, progress: Progress) -> Outcome:
    out, texts = values["out"], values["texts"]
    hydrated = hydrate(values["gold"], texts, out, columns=values["columns"], format=values["format"])
    posts, with_text = hydrated.posts.total(), hydrated.found.total()
    data = vars(hydrated) | {"out": str(out)}
    if not texts:
        return Outcome([f"{many(posts, 'id')} written to {out / IDS}."], data=data)
    rows = [
        {"label": label, "posts": number, "found": hydrated.found[label]}
        for label, number in hydrated.posts.most_common(SHOWN)
    ]
    summary = (
        f"{with_text:,} of {many(posts, 'post')} have a text, written to {out / POSTS}; {posts - with_text:,} have "
        f"vanished, listed in {out / VANISHED}."
    )
    notes = [f"Note: {many(hydrated.outside, 'row')} ignored, of other posts or repeated."] * bool(hydrated.outside)
    if hydrated.faulty:
        notes.append(f"{many(hydrated.faulty, 'invalid row')} ignored. The first is {hydrated.first_fault}")
    return Outcome([as_lines(table("labels", LABELS, rows)), summary], notes, data)


# --- Random draws

DRAWS = (
    Column("lot", "lot"),
    Column("decides", "decides", says=lambda row: PURPOSES[row["lot"]][0]),
    *numbers({"checked": "checked", "differ": "differ"}),
    Column("first", "", NOTE, lambda row: f"First difference: {row['first']}." if row["first"] else ""),
)


def verdict(result: dict[str, Any]) -> str:
    checked = sum(row["checked"] for row in result["lots"])
    if result["unknown"]:
        return f"No: the set does not contain the published digest {result['unknown'][0]}, so it has been changed."
    if not result["secret_fits"]:
        return "No: the SHA-256 of the secret differs from the manifest, so the draws cannot be repeated."
    if not checked:
        return f"Task {result['task']} contains no decisions by random draw."
    if result["differ"]:
        return (
            f"No: {result['differ']:,} of {many(checked, 'decision')} differ from the random draws repeated with the "
            "secret."
        )
    return f"Yes: all of the {many(checked, 'decision')} match the random draws repeated with the secret."


@action(
    "verify_lots",
    "Repeat the random draws of a set with a disclosed secret: gold answers and their positions, audits, checks, "
    "decoys, tests and sides. The exit status is 1 if anything differs.",
    Option("folder", Path, required=True, argument=True, help="a set exported with --tell-secret"),
    Option(
        "published",
        several=True,
        in_a_row=True,
        shown="DIGEST",
        help="digests published earlier, either of the secret or of the outcomes at the time when the task was closed",
    ),
    refuses=(GoldSetError,),
    on_files=True,
)
def verify_lots_action(values: Values, progress: Progress) -> Outcome:
    result = verify(values["folder"], values["published"] or ())
    sentences = [as_lines(table("Lots", DRAWS, result["lots"]))] if result["lots"] else []
    if not values["published"]:
        digests = result["digests"]
        sentences.append(
            f"Compare these digests with those published earlier. SHA-256 of the secret: {digests['secret']}."
        )
        if fixed := digests["outcomes"]:
            sentences.append(f"Outcomes, fixed on {fixed['at']}: {fixed['digest']}.")
    return Outcome([*sentences, verdict(result)], data=result, status=1 if result["differ"] or result["unknown"] else 0)


# --- Facts about a project for the documents of its sets


@action(
    "project",
    "State facts about a project that the program cannot know. Exported sets then contain them in croissant.json "
    "(Croissant with the Responsible-AI fields), DATA_STATEMENT.md and METHODS.tex; facts that are not stated are "
    f"marked as missing. The statements are stored in {PROJECT} in the data folder. Options that are not set keep "
    "their earlier values.",
    *(Option(name, default="", help=question) for name, question in PERSONAL.items()),
    on_files=True,
)
def project_action(values: Values, progress: Progress) -> Outcome:
    stated = read_project() | {name: values[name].strip() for name in PERSONAL if values[name].strip()}
    write_project(stated)
    missing = [name for name in PERSONAL if name not in stated]
    lines = [f"{name}: {text}" for name, text in stated.items()]
    lines.append(f"Not stated: {', '.join(missing)}." if missing else "Everything is stated.")
    return Outcome(lines, data={"stated": stated, "missing": missing})


# --- Publishing a set

FILES = (Column("name", "file"), *numbers({"bytes": "bytes"}))


def _check_publish(values: Values) -> Values:
    repo, archive = values["repo"], values["archive"]
    if repo and archive:
        raise ActionError("Set --repo or --archive, not both.", option="repo")
    if not (repo or archive or values["dry_run"]):
        raise ActionError("Set --repo OWNER/NAME, or --archive FILE. --dry-run only lists the files.", option="repo")
    if repo and not re.fullmatch(r"[\w.-]+/[\w.-]+", repo, re.ASCII):
        raise ActionError(f"--repo {repo}: name a repository as OWNER/NAME.", option="repo")
    if values["private"] and not repo:
        raise ActionError("--private requires --repo.", option="private")
    if archive:
        suffix_of(archive)
    if repo and not values["dry_run"]:
        check_installed()
    return {"parcel": parcel_of(values["folder"])}


@action(
    "publish",
    "Send the folder of a gold set to a dataset repository on the Hugging Face Hub, in one commit, or pack it into an "
    "archive. Files that are not part of the set are not published. A set is refused if its files were changed after "
    "the export, or if the licence of its texts is unknown or forbids publication.",
    Option("folder", Path, required=True, argument=True, help="the folder of an exported or imported gold set"),
    Option(
        "repo",
        default="",
        shown="OWNER/NAME",
        help=f"the dataset repository, which is created if it does not exist. {TOKEN} in the environment is the token "
        "of an account that may write it",
    ),
    Option("private", flag, False, help="create a private repository, and refuse a public one"),
    Option("archive", Path, shown="FILE", help=f"write an archive, a file that ends in {' or '.join(SUFFIXES)}"),
    Option("dry_run", flag, False, help="only list what would be published, and what would not"),
    refuses=(GoldSetError, MissingExtra, PublishError),
    on_files=True,
    checks=_check_publish,
)
def publish_action(values: Values, progress: Progress) -> Outcome:
    parcel: Parcel = values["parcel"]
    repo, archive = values["repo"], values["archive"]
    files = [{"name": name, "bytes": size} for name, size in parcel.files.items()]
    data = {"name": parcel.name, "files": files, "not_published": parcel.others}
    notes = [*parcel.notes, *(f"Not part of the set, so not published: {name}." for name in parcel.others)]
    whole = f"{many(len(files), 'file')} with {parcel.size:,} bytes"
    if values["dry_run"]:
        where = f" to {repo or archive}" if repo or archive else ""
        lines = [as_lines(table("files", FILES, files)), f"{whole} would be published{where}. Nothing was sent."]
        return Outcome(lines, notes, data)
    if archive:
        write_archive(parcel, archive)
        return Outcome([f"{whole} packed into {archive}."], notes, data | {"archive": str(archive)})
    progress.begin(parcel.size, "B")
    sent = send(parcel, repo, private=values["private"], advance=progress.advance)
    if sent["left"]:
        notes.append(f"The repository also has files that do not belong to this set: {', '.join(sent['left'])}.")
    return Outcome([f"{whole} published at {sent['url']}."], notes, data | sent)
