"""The `adjudicate` action: import an adjudicator's decisions from a file, or list the units to decide.

Each decision is stored separately, so it is kept even if a later row is rejected. If the file is imported again, only
the missing decisions are added. The rules are the same as on the adjudication page, because the same functions check
permissions and store decisions. The list of units shows no more about a unit under blind review than the page does.
"""

import csv
import io
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from annotate.actions.action import FORMAT, TASK, ActionError, Outcome, Progress, Values, action, column
from annotate.actions.judgment_files import list_rejects, rejects_file, rows_in
from annotate.core.option import Option, flag
from annotate.core.refusals import Paused, Refusal
from annotate.kinds.kind import Unsure
from annotate.models import Annotator, Judgment, Task, Unit
from annotate.reports.table_formats import as_lines
from annotate.reports.tables import Column, are, many, table
from annotate.work import adjudication
from annotate.work.adjudication import adjudicates_in
from annotate.work.judgment_import import Rejects
from corpora.core import REJECTED
from corpora.core.languages import meant
from corpora.core.records import AS_TEXT, FORMULA, RecordError, for_spreadsheet, read_id, read_text
from corpora.core.values import is_missing
from corpora.core.voters import ballots
from corpora.sources.compression import check_file
from corpora.sources.readers import named_columns
from corpora.storage.layout import write_atomically

# --- Files

# `asked`: the language that the decision is about, if the task asks about several languages for one item
# `sure`: "yes" to confirm a combination of labels that would otherwise be refused as a likely mistake
COLUMNS = ("id", "asked", "label", "reason", "comment", "sure")
_YES_OR_NO = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False, "": False}
NEEDED = ("id", "label", "reason")


@dataclass(frozen=True, slots=True)
class Decision:
    """A row of a file of decisions. The label is empty if the adjudicator has not decided the unit yet."""

    line: int
    key: str
    asked: str
    label: str
    reason: str
    comment: str
    is_sure: bool


def read_decisions(
    path: Path, columns: Mapping[str, str], format: str | None, rejects: Rejects, labels: Collection[str]
) -> Iterator[Decision]:
    """Yield the decisions in a file, and add invalid rows to `rejects`.

    Raise CorpusError if the file cannot be read.

    columns: mapping from field to column of the file
    labels: the task's labels
    """

    def decision(line: int, raw: Mapping[str, Any]) -> Decision:
        texts = {column: read_text(column, raw.get(column), labels) for column in ("asked", "label")}
        texts |= {column: _cell_text(raw, column) for column in ("reason", "comment")}
        key = read_id(raw.get("id"))
        # Remove the prefix that prevents a spreadsheet from running the id as a formula.
        key = key[1:] if key.startswith(tuple(f"{AS_TEXT}{mark}" for mark in FORMULA)) else key
        sure = "" if is_missing(raw.get("sure")) else str(raw["sure"]).strip().casefold()
        if sure not in _YES_OR_NO:
            raise RecordError(f"The column sure contains {sure[:20]!r}. It must be yes or no.")
        return Decision(line, key, **texts, is_sure=_YES_OR_NO[sure])

    check_file(path, format)
    return rows_in(path, format, columns, (COLUMNS, NEEDED), decision, rejects)


def _cell_text(raw: Mapping[str, object], column: str) -> str:
    value = raw.get(column)
    if is_missing(value):
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RecordError(f"The {column} must be a string or a whole number.")
    return str(value).strip()


Rows = Sequence[Mapping[str, str]]


def write_pending(rows: Rows, heads: Sequence[str], path: Path) -> None:
    """Write the pending units to a file. The adjudicator fills in its columns `label` and `reason`.

    Raise ActionError if the file cannot be written, or if it already exists, because it may contain decisions.

    heads: names of the columns
    """
    write = WRITERS.get(path.suffix.lower())
    if write is None:
        raise ActionError(f"Cannot write {path}: its name must end in {', '.join(WRITERS)}.")
    try:
        if path.exists():
            raise ActionError(f"The file {path} already exists and may contain decisions. Choose another file.")
        write_atomically(path, write(rows, heads))
    except OSError as error:
        raise ActionError(f"Cannot write {path}: {error.strerror}.") from error


def _csv(rows: Rows, heads: Sequence[str]) -> str:
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(heads)
    table.writerows(map(_single_line_cells, rows))
    return written.getvalue()


def _single_line_cells(row: Mapping[str, str]) -> list[str]:
    """Return a row's cells without line breaks and tabs. A cell that would run as a formula gets a prefix."""
    cells = (" ".join(cell.split()) for cell in row.values())
    return list(map(for_spreadsheet, cells))


WRITERS: Mapping[str, Callable[[Rows, Sequence[str]], str]] = {
    ".csv": _csv,
    ".tsv": lambda rows, heads: "".join("\t".join(cells) + "\n" for cells in (heads, *map(_single_line_cells, rows))),
    ".jsonl": lambda rows, heads: "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows),
}

DISCARD = "discard"  # in place of a label, excludes the unit from the gold set
SHOWN = 20  # maximum number of rejected rows shown; the rejects file lists all of them
BATCH = 500  # maximum number of ids in one SQL statement


@action(
    "adjudicate",
    "Import an adjudicator's decisions from a JSONL, CSV, TSV, Excel, Parquet or Arrow file with the columns id (of "
    f"the item), label (or {DISCARD}), reason (the evidence) and, optionally, comment, asked (the language in "
    "question, if there are several for the item) and sure (yes to confirm a concept along with a broader one). The "
    "rules of the adjudication page apply: for example, adjudicators cannot decide items that they have judged. If "
    "rows are rejected, they are listed, the others are imported, and the exit status is 3. With --list or --out, "
    "list the items to decide.",
    TASK,
    Option("file", Path, argument=True, shown="FILE", help="the decisions; without a file, use --list or --out"),
    Option("as", required=True, shown="NAME", help="the user name of the adjudicator who decides"),
    Option("list", flag, False, help="list the items that this adjudicator can decide"),
    Option(
        "out", Path, shown="FILE", help="write the items to decide to this file (.csv, .tsv or .jsonl), to be filled in"
    ),
    column(COLUMNS, "label=language"),
    FORMAT,
    checks=lambda values: _check(values),
)
def adjudicate_action(values: Values, progress: Progress) -> Outcome:
    if not values["file"]:
        return _list_units(values["task"], values["adjudicator"], values["out"])
    return _import_decisions(values, progress)


def _check(values: Values) -> dict[str, Any]:
    """Return the adjudicator and the columns of the file.

    Raise ActionError if the options contradict each other.
    """
    task: Task = values["task"]
    annotator = _adjudicator(values["as"], task)
    if bool(values["file"]) == bool(values["list"] or values["out"]):
        raise ActionError(
            "Specify either a FILE of decisions, or --list or --out FILE to list the items to decide.", option="file"
        )
    if task.kind.form.refuses_files and not values["list"]:
        raise ActionError(f"{task.name} {task.kind.form.refuses_files}")
    return {"adjudicator": annotator, "columns": named_columns(values["column"], COLUMNS)}


def _adjudicator(name: str, task: Task) -> Annotator:
    annotator = Annotator.objects.filter(user__username=name).select_related("user").first()
    if annotator is None or not annotator.user.is_active:
        similar = Annotator.objects.filter(user__username__iexact=name, user__is_active=True).first()
        hint = f"Did you mean {similar.user.username}?" if similar else "Specify an annotator's user name."
        raise ActionError(f"There is no annotator {name!r}, or the account is locked. {hint}", option="as")
    if not adjudicates_in(annotator, task):
        raise ActionError(
            f"{name} is not an adjudicator of this task. To make them one, use `assay members {task.name} --add {name} "
            "--role adjudicator` or the task's page People.",
            option="as",
        )
    return annotator


# --- Units to decide


def _list_units(task: Task, annotator: Annotator, out: Path | None) -> Outcome:
    rows = list(map(_row, adjudication.rows(adjudication.to_adjudicate(task, annotator), annotator)))
    noun = task.kind.noun
    sentence = f"Task {task.name}: {many(len(rows), noun)} to be decided by {annotator}."
    for_others = adjudication.for_others(task, annotator)
    warnings = [f"Another adjudicator must decide {many(for_others, noun)} that {annotator} has already judged."]
    if out:
        write_pending(rows, list(_heads(task)), out)
        sentence += (
            f" They were written to {out}. Fill in the columns label (or {DISCARD}) and reason, and run adjudicate "
            "with the file."
        )
        sentences = [sentence]
    else:
        # The votes are too wide for a terminal. The `candidates` column summarizes them.
        shown_heads = [head for head in _heads(task) if head != "votes" and any(row[head] for row in rows)]
        heads = [Column(head, head) for head in shown_heads]
        sentences = [as_lines(table(noun, heads, rows)), sentence] if rows else [sentence]
    return Outcome(sentences, warnings if for_others else [], {"waiting": rows, "for_others": for_others})


def _heads(task: Task) -> Iterable[str]:
    *columns, sure = COLUMNS[2:]
    return (
        *("id", "asked", "text", "blind", "votes", *task.kind.pages.list_heads, *columns),
        *([sure] if task.kind.asks_if_sure else []),
    )


def _row(unit_and_cells: tuple[Any, list[str]]) -> dict[str, str]:
    unit, cells = unit_and_cells  # the unit has the annotation `blind`
    task, item = unit.task, unit.item
    votes = "; ".join(
        f"{voter}: {', '.join(code if score is None else f'{code} {score:.2f}' for code, score in ranking)}"
        for voter, ranking in ballots(item.votes, task.panel).items()
    )
    values = {"id": item.key, "asked": unit.asked, "text": unit.one_line_text}
    heads = task.kind.pages.list_heads
    values |= {"blind": "yes"} if unit.blind else {"votes": votes, **dict(zip(heads, cells, strict=True))}
    return {head: values.get(head, "") for head in _heads(task)}


# --- Decisions


def _import_decisions(values: Values, progress: Progress) -> Outcome:
    task, annotator, file = values["task"], values["adjudicator"], values["file"]
    rejects: Rejects = {}
    rows = list(read_decisions(file, values["columns"], values["format"], rejects, task.labels))
    decisions = [row for row in rows if row.label]
    units = _find_units(task, {row.key for row in decisions})
    earlier_ids = set(adjudication.decisions(annotator, task).values_list("pk", flat=True))
    first_rows: dict[int, Decision] = {}
    decided: list[Judgment] = []
    progress.begin(len(decisions), task.kind.noun)
    for row in decisions:
        try:
            unit = _find_unit(task, row, units)
            if first_rows.setdefault(unit.pk, row) is row:
                decided.append(_decide(task, annotator, row, unit))
            elif decision_of(row) != decision_of(first_rows[unit.pk]):
                raise Refusal(
                    f"Line {first_rows[unit.pk].line:,} contains a different decision on {row.key}. Keep only one of "
                    "the two lines."
                )
        except Paused:
            raise  # all later rows would be refused too
        except Refusal as refusal:
            asks = " In the file, write yes in the column sure." if isinstance(refusal.__cause__, Unsure) else ""
            rejects[row.line] = f"{refusal}{asks}"
        progress.advance(1)
    return _import_outcome(task, annotator, file, decided, earlier_ids, rejects, len(rows) - len(decisions))


decision_of = attrgetter("label", "reason", "comment")


def _find_units(task: Task, keys: set[str]) -> dict[str, dict[str, Unit]]:
    """Return the units of these items as a nested mapping: item key -> language asked about -> unit."""
    units: dict[str, dict[str, Unit]] = {}
    sorted_keys = sorted(keys)
    for start in range(0, len(sorted_keys), BATCH):
        for unit in task.units.filter(item__key__in=sorted_keys[start : start + BATCH]).select_related("item"):
            units.setdefault(unit.item.key, {})[unit.asked] = unit
    return units


def _find_unit(task: Task, row: Decision, units: dict[str, dict[str, Unit]]) -> Unit:
    """Return the unit that a row decides.

    Raise Refusal if the task has no such unit, or if it asks about several languages of the item and the row names
    none of them.
    """
    by_language = units.get(row.key, {})
    if row.asked in by_language:
        return by_language[row.asked]
    if len(by_language) == 1 and not row.asked:
        return next(iter(by_language.values()))
    if not by_language:
        raise Refusal(f"The task does not contain a {task.kind.noun} with the id {row.key}.")
    languages = ", ".join(sorted(filter(None, by_language)))
    if not languages:
        raise Refusal(f"The task does not ask about a single language of {row.key}. Leave the column asked empty.")
    raise Refusal(
        f"The task asks about several languages of {row.key}: {languages}. Enter one of them in the column asked."
    )


def _decide(task: Task, annotator: Annotator, row: Decision, unit: Unit) -> Judgment:
    if row.label == DISCARD and DISCARD not in task.labels:
        return adjudication.discard(annotator, unit.pk, row.reason, row.comment)
    labels = meant([row.label], task.labels.__contains__) if task.kind.labels_are_languages else [row.label]
    answer = adjudication.read_decision(task.kind, labels, row.reason, row.comment, is_sure=row.is_sure)
    return adjudication.settle(annotator, unit.pk, answer)


def _import_outcome(
    task: Task,
    annotator: Annotator,
    file: Path,
    decided: list[Judgment],
    earlier_ids: set[int],
    rejects: Rejects,
    undecided: int,
) -> Outcome:
    listed_file = rejects_file("decisions", task.name, file)
    list_rejects(rejects, file, listed_file)
    rows = [{"line": line, "reason": reason} for line, reason in sorted(rejects.items())]
    reasons = [f"Line {row['line']:,}: {row['reason']}" for row in rows[:SHOWN]]
    new = [judgment for judgment in decided if judgment.pk not in earlier_ids]
    counts: dict[str, Any] = {
        "settled": sum(judgment.kind == Judgment.SETTLE for judgment in new),
        "discarded": sum(judgment.kind == Judgment.DISCARD for judgment in new),
        "already": len(decided) - len(new),
        "open": undecided,
    }
    summary = (
        f"Task {task.name}: {annotator} settled {counts['settled']:,} and discarded {counts['discarded']:,}; "
        f"{are(counts['already'], 'was', 'were')} decided already, {are(undecided, 'has', 'have')} no label yet, "
        f"{are(len(rejects), 'was', 'were')} rejected"
    )
    if rejects and not decided:
        rejected = "1 row was" if len(rejects) == 1 else f"{len(rejects):,} rows were"
        summary = f"No decision of {file} was imported; {rejected} rejected"
    sentences = [summary + (f", listed in {listed_file}." if rejects else ".")]
    return Outcome(sentences, reasons, counts | {"rejects": rows}, REJECTED if rejects else 0)
