"""The published format of XGLUE (Liang et al. 2020; Data_Format.txt in its repository): writer and reader.

TASKS describes the files of each task, so a further task needs no further code. Tabs separate cells, newlines separate
rows, and nothing is quoted. Any character that a reader could take for a separator is replaced with a space. The label
is the last cell. The labels of a test file, however, are in a separate file.
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
# The tab, and the characters at which str.splitlines() and line readers break.
_LINE_BREAKS = re.compile("\r\n|[\t\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
_BOM = "\ufeff"
# The maximum length of a cell in Python's csv module, which the published readers use.
LONGEST_CELL = 131_072


class XglueError(Exception):
    """The error for XGLUE files that cannot be written, or for a file that is not in XGLUE's format.

    The message states the reason in one sentence.
    """


@dataclass(frozen=True)
class XglueTask:
    """A task of XGLUE.

    name: name of the task in the names of its files.
    inputs: fields of a line.
    target: what a text to generate is written from, to a separate file, line by line: a field or LABEL; empty if there
        is no such file.
    only: label of the rows to include; empty for all rows.
    together: field by which rows are grouped, so that rows with the same value are on consecutive lines; empty if rows
        are not grouped.
    paths: path of the file of each split, with the place of the language.
    head: names of the columns, in the first line of each file whose name ends with .tsv.
    numbered: whether the first cell of a line is the id of the row.
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

        mark: suffix for the files of an unfinished set.
        """
        path = self.paths.get(split, f"xglue.{self.name}.{{}}{part}.{split}")
        return f"{path.format(language + mark)}{'.labels' if labels else ''}"


# Each published layout with its tasks. The first one names it. Question generation (qg) uses the questions that people
# write for a passage, or those whose passage answers them, as confirmed by people.
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
# A mapping from the name in the files to the task, for readers.
FORMS = {task.name: task for tasks in TASKS.values() for task in tasks}


def names_of(published: str) -> list[str]:
    """Return the names of a layout's tasks."""
    return [task.name for task in TASKS[published]]


def cell(value: str) -> str:
    """Return a value as it is written in a cell. Tabs and line breaks are replaced with spaces."""
    return _LINE_BREAKS.sub(" ", value)


def write_xglue(folder: Path, export: "Export") -> dict[str, Any]:
    """Write a set's XGLUE files and return their manifest entry.

    If the files cannot be written, `refused` in the entry is a sentence that states the reason.
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
    """Write the files of a layout's tasks. A split without rows has no file.

    published: one of TASKS.
    rows: rows with language, split, label and the task's fields; also with the id if the task numbers its rows.
    mark: suffix for the files of an unfinished set.

    Return a mapping from file to number of rows. If a cell is too long for the published readers, raise XglueError
    before anything is written.
    """
    files: dict[str, list[list[str]]] = {}
    heads: dict[str, Sequence[str]] = {}
    listed = list(rows)
    languages = {row["language"] for row in listed}
    codes = {language: published_code(language, languages) for language in languages}
    for task in TASKS[published]:
        for file, head, cells in _cells(task, in_stretches(task, listed), codes, mark):
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
    # Readers drop a U+FEFF at the start of a file as a byte order mark. If the first cell starts with U+FEFF, write a
    # second one before it.
    start = _BOM if lines[0][0].startswith(_BOM) else ""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="\n") as out:
        out.write(start)
        out.writelines("\t".join(cells) + "\n" for cells in lines)


def in_stretches(task: XglueTask, rows: list[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Return the rows that the task includes, in order.

    If the task groups rows, each row follows the earlier rows of its group.
    """
    included = [row for row in rows if not task.only or row[LABEL] == task.only]
    if not task.together:
        return included
    stretches: dict[str, list[Mapping[str, str]]] = {}
    for row in included:
        stretches.setdefault(cell(row[task.together]), []).append(row)
    return [row for stretch in stretches.values() for row in stretch]


def _cells(
    task: XglueTask, rows: Iterable[Mapping[str, str]], codes: Mapping[str, str], mark: str
) -> Iterator[tuple[str, Sequence[str], list[str]]]:
    """Yield the file, the names of its columns and the cells of each line.

    codes: mapping from language to its code in file names.
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
    """Read a file as the published readers do: as UTF-8, separated by tabs, without quoting.

    columns: number of cells that each row must have.

    A byte order mark at the start is skipped. Raise XglueError if the file cannot be read, if it is not UTF-8, or if a
    row has a different number of cells.
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
