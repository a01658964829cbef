"""The action `adjudicate`: import an adjudicator's decisions from a file, or list the units to decide.

Each decision is stored separately, so it stays even if a later row is rejected. If the file is imported again, only the
missing decisions are added. The rules are the same as on the adjudication page, because the same functions check
permissions and store decisions. If a unit is reviewed blind, the list shows no more of it than the page does.
"""

import csv
import io
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from annotate.actions.action import FORMAT, TASK, ActionError, Outcome, Progress, Values, action, column, task_named
from annotate.actions.judgment_files import list_rejects, rejects_file, rows_in
from annotate.core.option import Option, flag
from annotate.core.refusals import Paused, Refusal
from annotate.kinds.kind import Unsure
from annotate.models import Annotator, Judgment, Task, Unit
from annotate.reports.table_formats import as_lines
from annotate.reports.tables import Column, are, many, table
from annotate.work import adjudication
from annotate.work.judgment_import import Rejects
from corpora.core.language_codes import code_of
from corpora.core.records import FORMULA, RecordError, read_id, read_text
from corpora.core.values import is_missing
from corpora.core.voters import VOTERS
from corpora.sources.compression import check_file
from corpora.sources.readers import named_columns
from corpora.sources.rejects import REJECTED
from corpora.storage.layout import write_whole

# --- Files

# asked: the language that the question names, if the task asks about several languages for the same item
# sure: yes to confirm a combination of labels that the task would otherwise question
COLUMNS = ("id", "asked", "label", "reason", "comment", "sure")
AS_TEXT = "'"  # prefix that keeps a spreadsheet from running a cell as a formula
_YES_OR_NO = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False, "": False}
NEEDED = ("id", "label", "reason")


@dataclass(frozen=True, slots=True)
class Decision:
    """A row of a file of decisions. If the label is empty, the adjudicator has not decided the unit yet."""

    line: int
    key: str
    asked: str
    label: str
    reason: str
    comment: str
    is_sure: bool


def read_decisions(
    path: Path, columns: Mapping[str, str], format: str | None, rejects: Rejects, known: Collection[str]
) -> Iterator[Decision]:
    """Yield the decisions in a file, and add rows that cannot be read to `rejects`.

    Raise CorpusError if the file cannot be read.

    columns: mapping from field to column of the file
    known: labels of the task
    """

    def decision(line: int, raw: Mapping[str, Any]) -> Decision:
        said = {column: read_text(column, raw.get(column), known) for column in ("asked", "label")}
        said |= {column: _words(raw, column) for column in ("reason", "comment")}
        key = read_id(raw.get("id"))
        # Remove the prefix that keeps a spreadsheet from running the id as a formula.
        key = key[1:] if key.startswith(tuple(f"{AS_TEXT}{mark}" for mark in FORMULA)) else key
        sure = "" if is_missing(raw.get("sure")) else str(raw["sure"]).strip().casefold()
        if sure not in _YES_OR_NO:
            raise RecordError(f"The column sure is {sure[:20]!r}; write yes or no.")
        return Decision(line, key, **said, is_sure=_YES_OR_NO[sure])

    check_file(path, format)
    return rows_in(path, format, columns, (COLUMNS, NEEDED), decision, rejects)


def _words(raw: Mapping[str, object], column: str) -> str:
    value = raw.get(column)
    if is_missing(value):
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RecordError(f"The {column} is neither a string nor a whole number.")
    return str(value).strip()


Rows = Sequence[Mapping[str, str]]


def write_waiting(rows: Rows, heads: Sequence[str], path: Path) -> None:
    """Write the units to decide to a file, in which the adjudicator then fills in the columns label and reason.

    Raise ActionError if the file cannot be written. Also raise it if the file exists, because it may hold decisions.

    heads: names of the columns
    """
    write = WRITERS.get(path.suffix.lower())
    if write is None:
        raise ActionError(f"{path} cannot be written; give it a name that ends in {', '.join(WRITERS)}.")
    try:
        if path.exists():
            raise ActionError(f"{path} is there already, and there may be decisions in it; name another file.")
        write_whole(path, write(rows, heads))
    except OSError as error:
        raise ActionError(f"{path} cannot be written: {error.strerror}.") from error


def _csv(rows: Rows, heads: Sequence[str]) -> str:
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(heads)
    table.writerows(map(_in_lines, rows))
    return written.getvalue()


def _in_lines(row: Mapping[str, str]) -> list[str]:
    """Return the cells of a row without line breaks and tabs.

    A cell that a spreadsheet would run as a formula gets a prefix.
    """
    cells = (" ".join(cell.split()) for cell in row.values())
    return [f"{AS_TEXT}{cell}" if cell.startswith(FORMULA) else cell for cell in cells]


WRITERS: Mapping[str, Callable[[Rows, Sequence[str]], str]] = {
    ".csv": _csv,
    ".tsv": lambda rows, heads: "".join("\t".join(cells) + "\n" for cells in (heads, *map(_in_lines, rows))),
    ".jsonl": lambda rows, heads: "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows),
}

# A row with this word instead of a label leaves the unit out of the gold set.
DISCARD = "discard"
SHOWN = 20  # maximum number of rejected rows shown; the rejects file lists all of them
ASKED = 500  # maximum number of ids in one SQL statement


@action(
    "adjudicate",
    "Import an adjudicator's decisions from a file: JSONL, CSV, TSV or Parquet with the columns id (the item's), label "
    f"(or {DISCARD}), reason (how they know) and, optionally, comment; asked (the language, if a post is asked about "
    "with several) and sure (yes: a concept and a broader one are both meant). The rules are those of the page; for "
    "example, nobody decides what they have judged. Rejected rows are listed with line and reason, the others are "
    "imported, and the exit status is 3. With --list or --out, show what waits.",
    TASK,
    Option("file", Path, argument=True, shown="FILE", help="the decisions; without a file, use --list or --out"),
    Option("as", required=True, shown="NAME", help="the user name of the adjudicator who decides"),
    Option("list", flag, False, help="show what waits for this adjudicator"),
    Option(
        "out", Path, shown="FILE", help="write the waiting cases to this file (.csv, .tsv or .jsonl), to be filled in"
    ),
    column(COLUMNS, "label=language"),
    FORMAT,
)
def adjudicate_action(values: Values, progress: Progress) -> Outcome:
    task, annotator = task_named(values["task"]), _adjudicator(values["as"])
    file, asks = values["file"], values["list"] or values["out"]
    if bool(file) == bool(asks):
        raise ActionError(
            "Name either a FILE of decisions, or, with --list or --out FILE, ask for what waits to be decided."
        )
    if task.kind.form.refuses_files:
        raise ActionError(f"{task.name} {task.kind.form.refuses_files}")
    if asks:
        return _listed(task, annotator, values["out"])
    return _decided(task, annotator, file, named_columns(values["column"], COLUMNS), values["format"], progress)


def _adjudicator(name: str) -> Annotator:
    found = Annotator.objects.filter(user__username=name).select_related("user").first()
    if found is None or not found.user.is_active:
        other = Annotator.objects.filter(user__username__iexact=name, user__is_active=True).first()
        hint = f"did you mean {other.user.username}?" if other else "give the user name of one."
        raise ActionError(f"There is no annotator {name!r}, or the account is locked; {hint}")
    if not found.adjudicates:
        raise ActionError(
            f"{name} is no adjudicator; say so in the column adjudicates of a file for add_annotators, or on the page "
            "Accounts."
        )
    return found


# --- Units to decide


def _listed(task: Task, annotator: Annotator, out: Path | None) -> Outcome:
    rows = list(map(_row, adjudication.told(adjudication.to_adjudicate(task, annotator), annotator)))
    noun = task.kind.noun
    counted = f"Task {task.name}: {many(len(rows), noun)} to be decided by {annotator}."
    others = adjudication.for_others(task, annotator)
    warned = [f"{many(others, noun)} more must be decided by somebody else: {annotator} has judged them."]
    if out:
        write_waiting(rows, list(_heads(task)), out)
        counted += f" Written to {out}: fill in label (or {DISCARD}) and reason, and give the file to adjudicate."
        said = [counted]
    else:
        # Leave out the votes, which are too wide for a terminal. The column of candidates summarizes them.
        shown = [head for head in _heads(task) if head != "votes" and any(row[head] for row in rows)]
        heads = [Column(head, head) for head in shown]
        said = [as_lines(table(noun, heads, rows)), counted] if rows else [counted]
    return Outcome(said, warned if others else [], {"waiting": rows, "for_others": others})


def _heads(task: Task) -> Iterable[str]:
    *columns, sure = COLUMNS[2:]
    return (
        *("id", "asked", "text", "blind", "votes", *task.kind.pages.list_heads, *columns),
        *([sure] if task.kind.asks_if_sure else []),
    )


def _row(told: tuple[Any, list[str]]) -> dict[str, str]:
    unit, cells = told  # the unit has the annotation `blind`
    task, item = unit.task, unit.item
    votes = "; ".join(
        f"{detector}: {', '.join(f'{code} {score:.2f}' for code, score in item.votes[detector])}"
        for detector in VOTERS
        if detector in item.votes  # records have none
    )
    known = {"id": item.key, "asked": unit.asked, "text": unit.in_a_line}
    heads = task.kind.pages.list_heads
    known |= {"blind": "yes"} if unit.blind else {"votes": votes, **dict(zip(heads, cells, strict=True))}
    return {head: known.get(head, "") for head in _heads(task)}


# --- Decisions


def _decided(
    task: Task, annotator: Annotator, file: Path, columns: dict[str, str], format: str | None, progress: Progress
) -> Outcome:
    rejects: Rejects = {}
    rows = list(read_decisions(file, columns, format, rejects, task.labels))
    made = [row for row in rows if row.label]
    units = _units(task, {row.key for row in made})
    before = set(adjudication.decisions(annotator, task).values_list("pk", flat=True))
    first: dict[int, Decision] = {}
    decided: list[Judgment] = []
    progress.begin(len(made), task.kind.noun)
    for row in made:
        try:
            unit = _unit(task, row, units)
            if first.setdefault(unit.pk, row) is row:
                decided.append(_decide(task, annotator, row, unit))
            elif said(row) != said(first[unit.pk]):
                raise Refusal(f"Line {first[unit.pk].line:,} decides on {row.key} in another way; keep one of them.")
        except Paused:
            raise  # the adjudicator is paused, so every row would be refused
        except Refusal as refusal:
            asks = " In a file, write yes in the column sure." if isinstance(refusal.__cause__, Unsure) else ""
            rejects[row.line] = f"{refusal}{asks}"
        progress.advance(1)
    return _told(task, annotator, file, decided, before, rejects, len(rows) - len(made))


said = attrgetter("label", "reason", "comment")


def _units(task: Task, keys: set[str]) -> dict[str, dict[str, Unit]]:
    """Return the units for some items as nested mappings: the keys are the item key, then the language asked about.

    keys: keys of the items
    """
    found: dict[str, dict[str, Unit]] = {}
    listed = sorted(keys)
    for start in range(0, len(listed), ASKED):
        for unit in task.units.filter(item__key__in=listed[start : start + ASKED]).select_related("item"):
            found.setdefault(unit.item.key, {})[unit.asked] = unit
    return found


def _unit(task: Task, row: Decision, units: dict[str, dict[str, Unit]]) -> Unit:
    """Return the unit that a row decides.

    Raise Refusal if the task has no such unit. Also raise it if the task asks about several languages for the item and
    the row names none of them.
    """
    there = units.get(row.key, {})
    if row.asked in there:
        return there[row.asked]
    if len(there) == 1 and not row.asked:
        return next(iter(there.values()))
    if not there:
        raise Refusal(f"The task has no {task.kind.noun} with the id {row.key}.")
    asked = ", ".join(sorted(filter(None, there)))
    if not asked:
        raise Refusal(f"{row.key} is not asked about one language; leave the column asked empty.")
    raise Refusal(f"{row.key} is asked about with: {asked}. Say in the column asked which of them is meant.")


def _decide(task: Task, annotator: Annotator, row: Decision, unit: Unit) -> Judgment:
    if row.label == DISCARD and DISCARD not in task.labels:
        return adjudication.discard(annotator, unit.pk, row.reason, row.comment)
    label = row.label
    if task.kind.labels_are_languages and label not in task.labels:
        label = code_of(label) or label
    answer = adjudication.read_decision(task.kind, [label], row.reason, row.comment, is_sure=row.is_sure)
    return adjudication.settle(annotator, unit.pk, answer)


def _told(
    task: Task, annotator: Annotator, file: Path, decided: list[Judgment], before: set[int], rejects: Rejects, left: int
) -> Outcome:
    listed = rejects_file("decisions", task.name, file)
    list_rejects(rejects, file, listed)
    rows = [{"line": line, "reason": reason} for line, reason in sorted(rejects.items())]
    refused = [f"Line {row['line']:,}: {row['reason']}" for row in rows[:SHOWN]]
    new = [judgment for judgment in decided if judgment.pk not in before]
    counts: dict[str, Any] = {
        "settled": sum(judgment.kind == Judgment.SETTLE for judgment in new),
        "discarded": sum(judgment.kind == Judgment.DISCARD for judgment in new),
        "already": len(decided) - len(new),
        "open": left,
    }
    told = (
        f"Task {task.name}: {annotator} settled {counts['settled']:,} and discarded {counts['discarded']:,}; "
        f"{are(counts['already'], 'was', 'were')} decided so already, {are(left, 'has', 'have')} no label yet, "
        f"{are(len(rejects), 'was', 'were')} rejected"
    )
    if rejects and not decided:
        rejected = "1 row was" if len(rejects) == 1 else f"{len(rejects):,} rows were"
        told = f"Nothing of {file} was decided; {rejected} rejected"
    said = [told + (f", listed in {listed}." if rejects else ".")]
    return Outcome(said, refused, counts | {"rejects": rows}, REJECTED if rejects else 0)
