"""import_judgments: judgments that were made elsewhere, from a file into a task. A file is taken as a whole or not at
all; run again, it adds nothing.

work/judgment_import.py, work/imported_task.py and quality/agreement.py decide what becomes of them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from django.conf import settings
from django.core.validators import slug_re
from django.db import transaction

from annotate.actions.action import FILE, FORMAT, LANGUAGES, MAX_REJECTS, Action, Outcome, column, size_of
from annotate.actions.judgment_files import (
    COLUMNS,
    LONGEST,
    JudgmentFileError,
    Progress,
    in_order,
    list_rejects,
    nothing_accepted,
    of_labels,
    of_pairs,
    read_judgments,
)
from annotate.core import stages
from annotate.core.option import Option, flag, words
from annotate.kinds.forms.pair import TIE
from annotate.models import Task
from annotate.quality.agreement import values_of
from annotate.quality.agreement_report import alike, spelled_alike
from annotate.reports.tables import are, many
from annotate.work.judgment_import import Imported, Rejects, Row, add_judgments, imported_task, systems_of
from annotate.work.routes import learn_languages
from annotate.work.task_creation import TaskError
from corpora.core.language_codes import add_languages
from corpora.core.values import Respelled
from corpora.sources.compression import check_file, format_of
from corpora.sources.headers import named_columns
from corpora.sources.rejects import Rejected
from corpora.storage.layout import digest_of

JUDGMENTS = "What becomes of the judgments"
OPTIONS = (
    Option("task", required=True, argument=True, help="the name of a task that exists, or of a new one"),
    FILE,
    Option(
        "labels",
        words,
        default=(),
        help='the labels of a new task, best grade first, such as "0 1"; by default those in the file',
        group=JUDGMENTS,
    ),
    Option(
        "pairs",
        flag,
        False,
        help="the judgments compare two systems: a task is MESSAGE|SYSTEM|SYSTEM, and a label is A (the first), B "
        "(the second) or tie",
        group=JUDGMENTS,
    ),
    column(COLUMNS, "task=item"),
    Option(
        "keep_repeats",
        flag,
        False,
        help="keep a worker's further answers on an item, for analysis only",
        group=JUDGMENTS,
    ),
    LANGUAGES,
    FORMAT,
    MAX_REJECTS,
)


def import_judgments(
    name: str,
    path: Path,
    *,
    labels: Sequence[str] = (),
    pairs: bool = False,
    columns: Mapping[str, str] | None = None,
    keep_repeats: bool = False,
    format: str | None = None,
    max_rejects: float = 1.0,
    progress: Progress = lambda count: None,
) -> Imported:
    """Attach the judgments of a file to the units of a task; if there is none, make a closed task of them.

    labels: of a new task, grades best first; those in the file where none are given. pairs: whether each item compares
    two systems, as judgment_files.of_pairs reads it; a task that exists says so itself. keep_repeats: keep a worker's
    further answers on an item, for analysis only; otherwise they are rejected. max_rejects: the share of the rows that
    may be rejected, not counting such further answers. progress is told of bytes read. JudgmentFileError or TaskError,
    or CorpusError if a file cannot be read, or too many of its rows are rejected.
    """
    check_file(path, format)
    learn_languages()
    task = Task.objects.filter(name=name).first()
    pairs = pairs or bool(task and task.kind.form.imports == "pairs")
    _check(name, task, labels, pairs)
    rejects: Rejects = {}
    written = format or format_of(path) or ""
    known = [] if pairs else list(labels) or (values_of(task) if task else [])
    respelled = Respelled()
    rows = list(read_judgments(path, columns or {}, written, rejects, progress, known, respelled))
    total = len(rows) + len(rejects)
    if pairs:
        rows = of_pairs(rows, rejects)
    known = known or (values_of(task) if task else _labels(rows, pairs))
    rows = of_labels(rows, known, rejects)
    listed = settings.DATA_DIR / "judgments" / name / f"{digest_of(path)[:16]}.rejects.jsonl"
    file = Rejected(path, written, listed, rows=total)
    with transaction.atomic():
        made = task or (rows and _new_task(name, path, rows, known, rejects, in_order=bool(labels), pairs=pairs))
        imported = Imported(made or None, is_new=task is None, rejects=rejects)
        _attach(imported, rows, file, keep_repeats, max_rejects, progress)
    imported.rejects_file = listed if rejects else None
    imported.notes = respelled.sentences("labels")
    return imported


def _attach(
    imported: Imported, rows: list[Row], file: Rejected, keep_repeats: bool, max_rejects: float, progress: Progress
) -> None:
    """Add the judgments and list the rejects. An error where none could be added, or too many rows were rejected."""
    rejects = imported.rejects
    if rows:
        left = [row for row in rows if row.line not in rejects]
        # All bytes have been reported; from here on it can only be cancelled.
        add_judgments(imported, left, keep_repeats=keep_repeats, progress=lambda rows: progress(0))
    list_rejects(rejects, file.path, file.listed)
    if not (imported.judgments or imported.repeats or imported.already):
        raise nothing_accepted(file.path, file.format, rejects, file.listed)
    if faults := {line: why for line, why in rejects.items() if line not in imported.further}:
        file.count, file.first = len(faults), min(faults.items())
        file.check(max_rejects)


def _labels(rows: list[Row], pairs: bool) -> list[str]:
    """Of a new task: those in the file, or the systems that it compares, and tie."""
    if not pairs:
        return in_order({row.label for row in rows})
    return [*sorted({system for row in rows for system in systems_of(row.task)}), TIE]


def _check(name: str, task: Task | None, labels: Sequence[str], pairs: bool) -> None:
    if not slug_re.fullmatch(name):
        raise JudgmentFileError(f"{name!r} cannot be a task's name; use letters, digits, hyphens and underscores.")
    if task and task.kind.rules.refuses_imports:
        raise JudgmentFileError(f"{task.name} {task.kind.rules.refuses_imports}")
    if pairs and task and task.kind.form.imports != "pairs":
        raise JudgmentFileError(
            f"Nobody compares systems in the task {task.name}; leave --pairs out, or choose another name."
        )
    if pairs and labels:
        raise JudgmentFileError("With --pairs the labels are A, B and tie; leave --labels out.")
    if task and labels and list(labels) != values_of(task):
        raise JudgmentFileError(
            f"{task.name} has the labels {' '.join(values_of(task))}; leave --labels out, or choose another name."
        )
    if len(set(labels)) < len(labels):
        raise JudgmentFileError("--labels names a label twice; name each once.")
    if long := [label for label in labels if len(label) > LONGEST["label"]]:
        raise JudgmentFileError(f"The label {long[0][:20]}… has more than {LONGEST['label']} characters; shorten it.")


def _new_task(
    name: str, path: Path, rows: list[Row], labels: list[str], rejects: Rejects, *, in_order: bool, pairs: bool
) -> Task:
    """Of the items in the file; rows that say another language of one than the first did are put with the rejects."""
    items: dict[str, str] = {}
    for row in rows:
        if items.setdefault(row.task, row.language) != row.language:
            rejects[row.line] = f"{row.task} was in {items[row.task] or 'no language'} in an earlier row."
    said = {"source": path.name, "digest": digest_of(path), "pairs": pairs}
    return imported_task(name, items, labels, in_order=in_order, **said)


def run(values, progress) -> Outcome:
    if values["languages"]:
        add_languages(values["languages"])
    progress.begin(size_of([values["file"]]), "B")
    imported = import_judgments(
        values["task"],
        values["file"],
        labels=values["labels"],
        pairs=values["pairs"],
        columns=named_columns(values["column"], COLUMNS),
        keep_repeats=values["keep_repeats"],
        max_rejects=values["max_rejects"],
        format=values["format"],
        progress=progress.advance,
    )
    counts = {name: getattr(imported, name) for name in ("judgments", "annotators", "units", "repeats", "already")}
    data = {"task": imported.task.name, **counts, "stages": dict(imported.stages), "rejects": len(imported.rejects)}
    warned = [*imported.notes, *_alike(imported.task)]
    return Outcome([_told(imported)], warned, data | {"rejects_file": imported.rejects_file})


def _alike(task: Task) -> list[str]:
    """What to say of labels that differ in capital letters only, and may be meant for one."""
    return [alike(group) for group in spelled_alike(values_of(task))]


def _told(imported: Imported) -> str:
    rejected = (
        f"{many(imported.already, 'row')} {'was' if imported.already == 1 else 'were'} there already, "
        f"{are(len(imported.rejects), 'was', 'were')} rejected"
    )
    listed = f", listed in {imported.rejects_file}" if imported.rejects_file else ""
    kept = f"{many(imported.repeats, 'repeat')} kept for analysis"
    if not imported.judgments:
        return f"Task {imported.task.name}: no new judgment, {kept}; {rejected}{listed}."
    went = {
        "labelled": imported.stages[stages.LABELLED],
        "left out": imported.stages[stages.DISCARDED],
        "to be adjudicated": imported.stages[stages.ADJUDICATION],
    }
    decided = ", ".join(f"{count:,} {what}" for what, count in went.items() if count) or "none of them decided"
    new = " is new" if imported.is_new else ""
    people = many(imported.annotators, "annotator")
    return (
        f"Task {imported.task.name}{new}: {many(imported.judgments, 'judgment')} of {people} on "
        f"{many(imported.units, 'unit')} imported ({decided}), {kept}; {rejected}{listed}."
    )


ACTION = Action(
    "import_judgments",
    "Import judgments from elsewhere: JSONL, CSV, TSV (without quoting) or Parquet with the columns task (the "
    "item's id), worker, label and, optionally, language. They are added to the items of an existing task; "
    "otherwise a closed task is made of the file's items. A worker's second answer on an item is rejected, or kept "
    "for analysis only. The file is imported as a whole or not at all; repeating it adds nothing.",
    OPTIONS,
    run,
    (JudgmentFileError, TaskError),
)
