"""The `import_judgments` action, which imports judgments that were made outside Assay into a task.

A file is imported completely or not at all. work/judgment_import.py stores the judgments, and work/routing.py decides
which label or stage each unit gets. This module also reads files of true labels.
"""

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings
from django.core.validators import slug_re
from django.db import transaction
from django.utils import timezone

from annotate.actions.action import (
    FILE,
    FORMAT,
    LANGUAGES,
    MAX_REJECTS,
    Outcome,
    Progress,
    Values,
    action,
    column,
    import_arguments,
    reading_note,
)
from annotate.controls.gold_answers import text_of
from annotate.core import stages
from annotate.core.option import Option, flag, words
from annotate.kinds import Answer
from annotate.kinds.forms.choice import TIE
from annotate.kinds.preference_kind import pair_suffix
from annotate.models import Task
from annotate.quality.agreement_report import spelling_variants, variants_warning
from annotate.quality.answer_models import values_of
from annotate.reports.tables import are, many
from annotate.work.judgment_import import ImportResult, Rejects, Row, add_judgments, create_imported_task, systems_of
from annotate.work.routes import register_languages
from annotate.work.task_creation import TaskError
from corpora.core.languages import LANGUAGES as KNOWN
from corpora.core.records import RecordError, read_id, read_language, read_text, read_time
from corpora.core.values import Respelled, each_once, is_missing
from corpora.database.bulk_rows import listed
from corpora.sources.compression import check_file, format_of
from corpora.sources.readers import Columns, named_columns, read_rows
from corpora.sources.text import MAX_LINE, Fault
from corpora.storage.intake import RejectLog
from corpora.storage.layout import digest_of

COLUMNS = ("task", "worker", "label", "language", "answered_at")
NEEDED = COLUMNS[:3]
GOLD_COLUMNS = ("task", "label")
LONGEST = {"worker": 70, "label": 64}
# Labels of an item MESSAGE|SYSTEM|SYSTEM: A if the annotator prefers the first system, B for the second, or TIE.
FIRST, SECOND = "A", "B"
LONGEST_SET = 10_000  # maximum total length of an item's true labels, in characters

Advance = Callable[[int], object]
T = TypeVar("T")


class JudgmentFileError(Exception):
    """Raised if a file cannot be used. The message states why and what to do. Nothing was changed."""


# --- Reading and checking rows of a file


def rows_in(
    path: Path,
    format: str | None,
    columns: Mapping[str, str],
    fields: tuple[Sequence[str], tuple[str, ...]],
    make: Callable[[int, Mapping[str, Any]], T],
    rejects: Rejects,
    progress: Advance | None = None,
) -> Iterator[T]:
    """Yield the result of `make` for each row of a file. If it raises RecordError, add the row to `rejects` instead.

    columns: mapping from field to column of the file
    fields: the allowed fields, and those of them that are required
    make: function that is called with the line number and a mapping from field to value
    rejects: mapping from line number to the reason for the rejection
    progress: called with the number of bytes read
    """
    optional, needed = fields
    layout = Columns({field: field for field in optional} | dict(columns), needed)
    for line, raw in read_rows(path, format or format_of(path) or "", layout, MAX_LINE, progress):
        try:
            if isinstance(raw, Fault):
                raise RecordError(raw.reason)
            yield make(line, raw)
        except RecordError as error:
            rejects[line] = str(error)


def read_truth(path: Path, columns: Mapping[str, str], labels: Collection[str] = ()) -> dict[str, str]:
    """Read a file of true labels with the columns `task` and `label`. Return a mapping from item key to label.

    If an item has several labels, they are a list or are separated by spaces. Raise JudgmentFileError if a row is
    invalid, and CorpusError if the file cannot be read.

    columns: mapping from field to column of the file
    labels: the task's labels
    """

    def pair(line: int, raw: Mapping[str, Any]) -> tuple[int, str, str]:
        label = text_of(raw["label"]) if isinstance(raw.get("label"), list) else raw.get("label")
        return line, read_id(raw.get("task"), "task"), _cell(label, "label", LONGEST_SET, labels)

    check_file(path, None)
    gold: dict[str, str] = {}
    rejects: Rejects = {}
    for line, key, label in rows_in(path, None, columns, (GOLD_COLUMNS, GOLD_COLUMNS), pair, rejects):
        if not rejects and gold.setdefault(key, label) != label:
            rejects[line] = (
                f"{key} has the label {label} here and {gold[key]} in an earlier line. Keep only one of them."
            )
        if rejects:
            break
    for line, reason in rejects.items():
        raise JudgmentFileError(f"{path}, line {line:,}: {reason}")
    return gold


def _cell(value: object, column: str, longest: int, labels: Collection[str] = ()) -> str:
    """Return the text of a cell. Raise RecordError if the cell is empty, too long or not printable.

    column: column name, for error messages
    longest: maximum length, in characters
    labels: labels that are accepted unchanged
    """
    if value is None:
        raise RecordError(f"The {column} is missing.")
    text = read_text(column, value, labels)
    if not text:
        written = value.strip() if isinstance(value, str) else str(value)
        problem = f"is {written}, which programs write for a missing value" if written else "is empty"
        raise RecordError(f"The {column} {problem}.")
    if len(text) > longest:
        raise RecordError(f"The {column} has {len(text):,} characters. The limit is {longest:,}.")
    if not text.isprintable():
        raise RecordError(f"The {column} contains a tab, a newline or another invisible character.")
    return text


def _convert_pairs(rows: Iterable[Row], rejects: Rejects) -> Iterator[Row]:
    """Convert the rows of a file that compares systems, and add invalid rows to `rejects`.

    In the file, the label is `A`, `B` or `tie`. In a converted row, the label is the preferred system's name or `tie`,
    and the item key contains the names of the two systems in alphabetical order.
    """
    for row in rows:
        try:
            a, b = systems_of(row.task)
            if row.label not in (FIRST, SECOND, TIE):
                raise ValueError(f"The label {row.label!r} is not {FIRST}, {SECOND} or {TIE}.")
        except ValueError as error:
            rejects[row.line] = str(error)
        else:
            task = row.task.removesuffix(pair_suffix(a, b)) + pair_suffix(*sorted((a, b)))
            yield row._replace(task=task, label={FIRST: a, SECOND: b}.get(row.label, TIE))


def _check_labels(rows: Iterable[Row], labels: list[str], rejects: Rejects) -> Iterator[Row]:
    """Yield the rows that have one of these labels, and add all other rows to `rejects`."""
    known_labels = set(labels)
    for row in rows:
        if row.label in known_labels:
            yield row
        else:
            rejects[row.line] = f"The label {row.label!r} is not one of the task's labels: {' '.join(labels)}."


def _convert_sets(rows: Sequence[Row], task: Task, rejects: Rejects) -> Iterator[Row]:
    """Convert rows whose labels are sets to the sets' canonical form, and add invalid rows to `rejects`."""
    if not rows:
        return
    kind = task.kind
    task_units = task.units.filter(item__key__in=listed({row.task for row in rows})).select_related("item")
    units = {unit.item.key: unit for unit in task_units}
    for row in rows:
        try:
            label = kind.form.read([row.label])
            if unit := units.get(row.task):
                unit.task = task
                kind.rules.check(Answer(label), unit)
        except ValueError as error:
            rejects[row.line] = str(error)
        else:
            yield row._replace(label=label)


def list_rejects(rejects: Rejects, path: Path, listed: Path) -> None:
    """Write the list of rejected rows. If no row was rejected, remove any list of an earlier run.

    rejects: mapping from line number to reason
    path: the file that was read
    listed: path of the list
    """
    if not rejects:
        listed.unlink(missing_ok=True)
        return
    listed.parent.mkdir(parents=True, exist_ok=True)
    draft = listed.with_suffix(".new")
    with draft.open("w", encoding="utf-8") as file:
        log = RejectLog(path, "", listed, file=file)
        for line, reason in sorted(rejects.items()):
            log.add(line, reason)
    os.replace(draft, listed)


# --- A file of judgments


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
    progress: Advance = lambda count: None,
) -> ImportResult:
    """Add the judgments in a file to the units of a task. If the task does not exist, create a closed one.

    Raise JudgmentFileError or TaskError if the options or the task do not allow the import. Raise CorpusError if the
    file cannot be read or too many rows are rejected.

    name: task name
    labels: labels of a new task, best grade first; if empty, the labels in the file
    pairs: whether each item compares two systems; for an existing task, its kind determines this
    columns: mapping from field to column of the file
    keep_repeats: whether to keep a worker's repeated answers to an item for analysis instead of rejecting them
    max_rejects: maximum share of rejected rows, not counting repeated answers
    progress: called with the number of bytes read
    """
    check_file(path, format)
    register_languages()
    task, pairs = _task_and_pairs(name, labels, pairs=pairs)
    rejects, corrected = dict[int, str](), {name: Respelled() for name in ("label", "worker", "language")}
    known_labels = [] if pairs else list(labels) or (values_of(task) if task else [])
    are_sets = bool(task and task.kind.form.several)
    longest = LONGEST_SET if are_sets else LONGEST["label"]
    read = partial(rows_in, path, format, columns or {}, (COLUMNS, NEEDED), rejects=rejects, progress=progress)
    rows = list(_read_judgments(read, known_labels, longest, corrected))
    list_path, total = rejects_file("judgments", name, path), len(rows) + len(rejects)
    if pairs:
        rows = list(_convert_pairs(rows, rejects))
    known_labels = known_labels or (values_of(task) if task else _new_labels(rows, pairs))
    rows = list(_convert_sets(rows, task, rejects) if task and are_sets else _check_labels(rows, known_labels, rejects))
    with transaction.atomic():
        task_to_fill = task or Task()  # a placeholder: without rows, `_add` raises an error before it uses the task
        if rows and not task:
            task_to_fill = _new_task(name, path, rows, known_labels, rejects, in_order=bool(labels), pairs=pairs)
        notes = [*corrected["label"].sentences("label"), *corrected["worker"].sentences("worker")]
        notes += [*corrected["language"].sentences("language", "converted"), *_worker_notes(rows)]
        imported = ImportResult(task_to_fill, task is None, rejects=rejects, notes=notes)
        file = RejectLog(path, format or format_of(path) or "", list_path, rows=total)
        _add(imported, rows, file, keep_repeats, max_rejects, progress)
    return imported


def _read_judgments(
    read: Callable[..., Iterator[Row]], labels: Collection[str], longest: int, corrected: Mapping[str, Respelled]
) -> Iterator[Row]:
    """Yield the valid rows of a file.

    read: `rows_in` with all arguments except `make`
    labels: the task's labels; empty if it has none yet, or if answers are sets
    longest: maximum length of a label, in characters
    corrected: collects the labels, workers and languages whose spelling was changed
    """
    respelled, workers, converted = corrected.values()
    label_of = each_once(partial(_cell, column="label", longest=longest, labels=labels))
    key_of = each_once(partial(read_id, what="task"))
    worker_of = each_once(partial(_cell, column="worker", longest=LONGEST["worker"]))
    language_of = each_once(_language)

    def judgment(line: int, raw: Mapping[str, Any]) -> Row:
        written, worker, language, time = map(raw.get, ("label", "worker", "language", "answered_at"))
        written = json.dumps(written) if isinstance(written, list) else written
        label, key, name = label_of(written), key_of(raw.get("task")), worker_of(worker)
        code = "" if language is None else language_of(language)
        row = Row(line, key, name, label, code, None if time is None else _answer_time(time))
        respelled.note(written, label, line)
        workers.note(worker, name, line)
        converted.note(str(language).strip(), code, line)
        return row

    return read(make=judgment)


def _answer_time(written: object) -> datetime | None:
    """Return the time of a judgment, or None if it is missing. Raise RecordError if it is invalid or in the future."""
    moment = None if is_missing(written) else read_time(written)
    if moment and moment > timezone.now():
        raise RecordError(f"The time {str(written)[:40]} is in the future.")
    return moment


def _worker_notes(rows: Iterable[Row]) -> list[str]:
    """Return a note for each group of workers whose names differ only in case."""
    return [
        f"The workers {' and '.join(group)} differ only in case, but count as different people. If they are the same, "
        "write them identically in the file and import it under another name."
        for group in spelling_variants(sorted({row.worker for row in rows}))
    ]


def _language(value: object) -> str:
    # `nan` usually means a missing value, but a language file may have added it as a language code.
    return "" if is_missing(value) and value not in KNOWN else read_language(value)


def rejects_file(folder: str, task: str, path: Path) -> Path:
    return settings.DATA_DIR / folder / task / f"{digest_of(path)[:16]}.rejects.jsonl"


def _new_labels(rows: list[Row], pairs: bool) -> list[str]:
    """Return a new task's labels: the file's labels with numbers first or, for pairs, the systems' names and `tie`."""
    if pairs:
        return [*sorted({system for row in rows for system in systems_of(row.task)}), TIE]
    labels = {row.label for row in rows}
    return sorted(labels, key=lambda label: (0, int(label), label) if label.isdecimal() else (1, 0, label))


def _task_and_pairs(name: str, labels: Sequence[str], *, pairs: bool) -> tuple[Task | None, bool]:
    """Return the task and whether its items compare systems. The task is None if it does not exist.

    Raise JudgmentFileError if the options contradict each other or do not fit the task.
    """
    task = Task.objects.filter(name=name).first()
    pairs = pairs or bool(task and task.kind.form.imports == "pairs")
    if not slug_re.fullmatch(name):
        raise JudgmentFileError(
            f"{name!r} is not a valid task name. Use only letters, digits, hyphens and underscores."
        )
    if task and task.kind.rules.refuses_imports:
        raise JudgmentFileError(f"{task.name} {task.kind.rules.refuses_imports}")
    if pairs and task and task.kind.form.imports != "pairs":
        raise JudgmentFileError(
            f"The task {task.name} does not compare systems. Remove --pairs or choose another task name."
        )
    if pairs and labels:
        raise JudgmentFileError(
            "--labels cannot be used with --pairs, because the labels are A, B and tie. Remove --labels."
        )
    if task and labels and list(labels) != values_of(task):
        raise JudgmentFileError(
            f"The task {task.name} already has the labels {' '.join(values_of(task))}. Remove --labels or choose "
            "another task name."
        )
    if len(set(labels)) < len(labels):
        raise JudgmentFileError("--labels contains the same label twice. List each label once.")
    if too_long := [label for label in labels if len(label) > LONGEST["label"]]:
        raise JudgmentFileError(
            f"The label {too_long[0][:20]}… has more than {LONGEST['label']} characters. Shorten it."
        )
    return task, pairs


def _new_task(
    name: str, path: Path, rows: list[Row], labels: list[str], rejects: Rejects, *, in_order: bool, pairs: bool
) -> Task:
    """Create a task from the items in the file.

    If a row states a different language for an item than an earlier row, it is added to `rejects`.
    """
    items: dict[str, str] = {}
    for row in rows:
        if items.setdefault(row.task, row.language) != row.language:
            rejects[row.line] = f"{row.task} has the language {items[row.task] or '(none)'} in an earlier row."
    digest = digest_of(path)
    return create_imported_task(name, items, labels, in_order=in_order, source=path.name, digest=digest, pairs=pairs)


def _add(
    imported: ImportResult, rows: list[Row], file: RejectLog, keep_repeats: bool, max_rejects: float, progress: Advance
) -> None:
    """Add the judgments to the task and list the rejected rows.

    Raise JudgmentFileError if the file has no rows, and CorpusError if no judgment could be added or too many rows were
    rejected.
    """
    rejects = imported.rejects
    if rows:
        accepted = [row for row in rows if row.line not in rejects]
        # All bytes have been reported by now. `progress` is called only so that the user can cancel.
        add_judgments(imported, accepted, keep_repeats=keep_repeats, progress=lambda rows: progress(0))
    list_rejects(rejects, file.path, file.listed)
    imported.rejects_file = file.listed if rejects else None
    if not (imported.judgments or imported.repeats or imported.already):
        if not rejects:
            raise JudgmentFileError(f"{file.path} contains no rows.")
        all_rejected = replace(file, count=len(rejects), rows=len(rejects), first=min(rejects.items()))
        raise all_rejected.nothing_accepted()
    if faults := {line: why for line, why in rejects.items() if line not in imported.further}:
        file.count, file.first = len(faults), min(faults.items())
        file.check(max_rejects)


# --- The action

JUDGMENTS = "Judgments"


def _check(values: Values) -> None:
    named_columns(values["column"], COLUMNS)
    check_file(values["file"], values["format"])
    _task_and_pairs(values["task"], values["labels"], pairs=values["pairs"])


@action(
    "import_judgments",
    "Import judgments that were made outside Assay, from a JSONL, CSV, TSV (without quoting), Excel, Parquet or "
    "Arrow file with the columns task (the item's id), worker, label and, optionally, language and answered_at. The "
    "judgments are added to the items of an existing task; if the task does not exist, a closed task with the file's "
    "items is created. A worker's second answer on an item is rejected, or kept only for analysis. The file is "
    "imported completely or not at all; importing it again adds nothing.",
    Option("task", required=True, argument=True, help="the name of an existing or a new task"),
    FILE,
    Option(
        "labels",
        words,
        default=(),
        help='the labels of a new task, best grade first, such as "0 1"; by default the labels in the file',
        group=JUDGMENTS,
    ),
    Option(
        "pairs",
        flag,
        False,
        help="the judgments compare two systems: the column task contains MESSAGE|SYSTEM|SYSTEM, and the label is A "
        "(the first system), B (the second) or tie",
        group=JUDGMENTS,
    ),
    column(COLUMNS, "task=item"),
    Option(
        "keep_repeats",
        flag,
        False,
        help="keep a worker's further answers on an item for analysis instead of rejecting them",
        group=JUDGMENTS,
    ),
    LANGUAGES,
    FORMAT,
    MAX_REJECTS,
    refuses=(JudgmentFileError, TaskError),
    checks=_check,
)
def import_action(values: Values, progress: Progress) -> Outcome:
    names = ("labels", "pairs", "keep_repeats", "max_rejects", "format")
    imported = import_judgments(
        values["task"], values["file"], **import_arguments(values, progress, *names, fields=COLUMNS)
    )
    counts = {name: getattr(imported, name) for name in ("judgments", "annotators", "units", "repeats", "already")}
    data = {"task": imported.task.name, **counts, "stages": dict(imported.stages), "rejects": len(imported.rejects)}
    # Warn about labels that differ only in case, because people may have meant the same label.
    warned = [*imported.notes, *map(variants_warning, spelling_variants(values_of(imported.task)))]
    warned += reading_note(values["file"], values["format"])
    return Outcome([_summary(imported)], warned, data | {"rejects_file": imported.rejects_file})


def _summary(imported: ImportResult) -> str:
    rejected = (
        f"{many(imported.already, 'row')} {'was' if imported.already == 1 else 'were'} imported before, "
        f"{are(len(imported.rejects), 'was', 'were')} rejected"
    )
    list_note = f", listed in {imported.rejects_file}" if imported.rejects_file else ""
    repeats = f"{many(imported.repeats, 'repeat')} kept for analysis"
    if not imported.judgments:
        return f"Task {imported.task.name}: no new judgments, {repeats}; {rejected}{list_note}."
    counts_by_outcome = {
        "labelled": imported.stages[stages.LABELLED],
        "left out": imported.stages[stages.DISCARDED],
        "to be adjudicated": imported.stages[stages.ADJUDICATION],
    }
    decided = (
        ", ".join(f"{count:,} {outcome}" for outcome, count in counts_by_outcome.items() if count)
        or "none of them decided"
    )
    new = " is new" if imported.is_new else ""
    people = many(imported.annotators, "annotator")
    return (
        f"Task {imported.task.name}{new}: {many(imported.judgments, 'judgment')} of {people} on "
        f"{many(imported.units, 'item')} imported ({decided}), {repeats}; {rejected}{list_note}."
    )
