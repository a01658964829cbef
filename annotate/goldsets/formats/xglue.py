"""The published format of XGLUE (Liang et al. 2020; Data_Format.txt in its repository): writer and reader.

TASKS describes the files of each task, so adding a task needs no other code. Tabs separate cells, newlines separate
rows, and nothing is quoted. Characters that readers could mistake for separators are replaced with spaces. The label is
the last cell of a row, except in test files, whose labels are in a separate file.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotate.core.draws.splits import DEV, TEST, TRAIN
from annotate.goldsets.formats import Format, register
from annotate.kinds.file_sections import FORMATS as PUBLISHED
from corpora.core.languages import published_code

if TYPE_CHECKING:
    from annotate.goldsets.export import Export

XGLUE = "XGLUE"
LABEL = "label"
LAYOUTS = PUBLISHED["xglue"]
# Tabs, and the line breaks that str.splitlines() and line readers recognize.
_LINE_BREAKS = re.compile("\r\n|[\t\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
_BOM = "\ufeff"
# The default field size limit of Python's csv module, which the published readers use.
LONGEST_CELL = 131_072


class XglueError(Exception):
    """Raised if XGLUE files cannot be written or read. The message states the reason in one sentence."""


@dataclass(frozen=True)
class XglueTask:
    """A task of XGLUE.

    name: the task's name in file names.
    inputs: fields of a line.
    target: for text generation, the field with the text to generate (or LABEL). It is written to a separate file. Empty
        for other tasks.
    only: label of the rows to include; empty for all rows.
    together: field to group rows by, so that rows with the same value are on consecutive lines; empty for no grouping.
    paths: path of each split's file, with {} for the language; by default, XGLUE's usual names.
    head: names of the columns, which are the first line of each .tsv file.
    numbered: whether the first cell of a line is the row's id.
    """

    name: str
    inputs: Sequence[str]
    target: str = ""
    only: str = ""
    together: str = ""
    paths: Mapping[str, str] = field(default_factory=dict)
    head: Sequence[str] = ()
    numbered: bool = False

    def path(self, language: str, split: str, *, part: str = "", mark: str = "", labels: bool = False) -> str:
        """Return the path of a file, such as xglue.qadsm.en.train, xglue.qg.en.src.train or xglue.wpr.de.test.labels.

        part: suffix for the input or target file of text generation, `.src` or `.tgt`.
        mark: suffix for the files of an unfinished set.
        labels: whether the file contains the labels of a test file.
        """
        path = self.paths.get(split, f"xglue.{self.name}.{{}}{part}.{split}")
        return f"{path.format(language + mark)}{'.labels' if labels else ''}"


# Layout -> its tasks. The layout is named after the first task. Question generation (qg) uses questions that annotators
# wrote for a passage, or questions that the passage answers according to annotators.
TASKS: Mapping[str, Sequence[XglueTask]] = {
    task.name: (task, *derived)
    for task, *derived in (
        [XglueTask("qadsm", LAYOUTS["qadsm"].fields)],
        [
            XglueTask("qam", LAYOUTS["qam"].fields),
            XglueTask("qg", ("passage",), target="question", only=LAYOUTS["qam"].codes[0]),
        ],
        [XglueTask("wpr", LAYOUTS["wpr"].fields, together="query")],
        [XglueTask("qg", LAYOUTS["qg"].fields, target=LABEL)],
        [XglueTask("nc", LAYOUTS["nc"].fields)],
        [XglueTask("ntg", LAYOUTS["ntg"].fields, target=LABEL)],
        [
            XglueTask(
                "xnli",
                LAYOUTS["xnli"].fields,
                paths={TRAIN: "XNLI/multinli.train.{}.tsv", DEV: "XNLI/{}.dev", TEST: "XNLI/{}.test"},
                head=("premise", "hypo", LABEL),
            )
        ],
        [
            XglueTask(
                "pawsx",
                LAYOUTS["pawsx"].fields,
                paths={TRAIN: "PAWSX/{}/train.tsv", DEV: "PAWSX/{}/dev_2k.tsv", TEST: "PAWSX/{}/test_2k.tsv"},
                head=("id", "sentence1", "sentence2", LABEL),
                numbered=True,
            )
        ],
    )
}
# The tasks by their names in the files.
FORMS = {task.name: task for tasks in TASKS.values() for task in tasks}


def names_of(published: str) -> list[str]:
    """Return the names of a layout's tasks."""
    return [task.name for task in TASKS[published]]


def cell(value: str) -> str:
    """Return the content of a cell for a value. Tabs and line breaks are replaced with spaces."""
    return _LINE_BREAKS.sub(" ", value)


def write_xglue(folder: Path, export: "Export") -> dict[str, Any]:
    """Write a set's XGLUE files and return their manifest entry.

    refused: reason why no files are written, as a sentence; empty if they are.
    """
    name = export.kind.publication.formats["xglue"]
    entry = {"format": XGLUE, "tasks": names_of(name), "files": {}, "refused": ""}
    if not export.with_text:
        reason = "XGLUE's files contain the texts of the records, which must not be published, so they are not written."
        return entry | {"refused": reason}
    rows = export.written_rows(folder, ("id", "language", "split", LABEL, *export.kind.fields))
    try:
        return entry | {"files": write_files(folder, name, rows, mark=export.mark)}
    except XglueError as error:
        return entry | {"refused": f"XGLUE's files are not written: {error}"}


def write_files(folder: Path, published: str, rows: Iterable[Mapping[str, str]], *, mark: str = "") -> dict[str, int]:
    """Write the files of a layout's tasks, and return the number of rows in each. A split without rows has no file.

    published: name of the layout, a key of TASKS.
    rows: rows with `language`, `split`, `label` and the task's fields, and with `id` if the task numbers its rows.
    mark: suffix for the files of an unfinished set.

    Raise XglueError before anything is written if a cell is too long for the published readers.
    """
    files: dict[str, list[list[str]]] = {}
    heads: dict[str, Sequence[str]] = {}
    all_rows = list(rows)
    languages = {row["language"] for row in all_rows}
    codes = {language: published_code(language, languages) for language in languages}
    for task in TASKS[published]:
        for file, head, cells in _cells(task, group_rows(task, all_rows), codes, mark):
            files.setdefault(file, []).append(cells)
            heads[file] = head if file.endswith(".tsv") else ()
    for file, lines in files.items():
        for number, cells in enumerate(lines, 1):
            if (longest := max(map(len, cells))) > LONGEST_CELL:
                raise XglueError(
                    f"{file}, line {number:,} would have a cell of {longest:,} characters, but readers of these files "
                    f"accept at most {LONGEST_CELL:,}."
                )
    for file, lines in files.items():
        _write(folder / file, [heads[file], *lines] if heads[file] else lines)
    return {file: len(files[file]) for file in sorted(files)}


def _write(path: Path, lines: Sequence[Sequence[str]]) -> None:
    # Readers drop U+FEFF at the start of a file as a byte order mark. If the first cell starts with U+FEFF, write
    # another one before it.
    start = _BOM if lines[0][0].startswith(_BOM) else ""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as out:
        out.write(start)
        out.writelines("\t".join(cells) + "\n" for cells in lines)


def group_rows(task: XglueTask, rows: list[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Return the rows that the task includes.

    If the task groups rows, the groups are in the order of their first rows. Otherwise, the order is unchanged.
    """
    included = [row for row in rows if not task.only or row[LABEL] == task.only]
    if not task.together:
        return included
    groups: dict[str, list[Mapping[str, str]]] = {}
    for row in included:
        groups.setdefault(cell(row[task.together]), []).append(row)
    return [row for group in groups.values() for row in group]


def _cells(
    task: XglueTask, rows: Iterable[Mapping[str, str]], codes: Mapping[str, str], mark: str
) -> Iterator[tuple[str, Sequence[str], list[str]]]:
    """Yield the file, the names of its columns and the cells of each line.

    codes: code in file names by language.
    """
    for row in rows:
        place = codes[row["language"]], row["split"]
        inputs = [cell(row[field]) for field in (*(("id",) if task.numbered else ()), *task.inputs)]
        if task.target:
            yield task.path(*place, part=".src", mark=mark), (), inputs
            yield task.path(*place, part=".tgt", mark=mark), (), [cell(row[task.target])]
        elif row["split"] == TEST:
            yield task.path(*place, mark=mark), task.head[:-1], inputs
            yield task.path(*place, mark=mark, labels=True), (), [row[LABEL]]
        else:
            yield task.path(*place, mark=mark), task.head, [*inputs, row[LABEL]]


def read_xglue(path: Path, columns: int) -> list[list[str]]:
    """Read a file as the published readers do: as UTF-8 without quoting, after an optional byte order mark.

    columns: number of cells that each row must have.

    Raise XglueError if the file cannot be read, if it is not UTF-8, or if a row has a different number of cells.
    """
    rows = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for number, cells in enumerate(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE), 1):
                row = cells or [""]
                if len(row) != columns:
                    raise XglueError(f"{path}, line {number:,} has {len(row)} cells instead of {columns}.")
                rows.append(row)
    except OSError as error:
        raise XglueError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise XglueError(f"{path} is not UTF-8. Save it as UTF-8.") from error
    except csv.Error as error:
        raise XglueError(f"{path} cannot be read as a table with tabs and without quotes: {error}.") from error
    return rows


register(Format("xglue", XGLUE, write_xglue, measured_by="annotate.evaluation.xglue_tasks", of_several=True))
