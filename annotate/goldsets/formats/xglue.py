"""The files of XGLUE (Liang et al. 2020; Data_Format.txt of its repository), written from rows and read back.

A kind of question that publishes them names one of FORMS.

Tabs separate cells, newlines separate rows, and nothing is quoted, so any character that a reader could take for either
becomes a space inside a cell. The label is the last cell; test files have none, and their labels are in a file beside.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from annotate.core.draws.splits import TEST
from annotate.goldsets.formats import Format, register
from annotate.kinds.layouts import FORMATS as PUBLISHED
from corpora.core.languages import published_code

if TYPE_CHECKING:
    from annotate.goldsets.export import Export
    from annotate.goldsets.exporter import Written

TITLE = "XGLUE"
# The characters at which str.splitlines() and line readers break, besides the tab.
_BREAKS = re.compile("\r\n|[\t\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
_BOM = "\ufeff"
# The longest cell that Python's csv module takes, with which the published readers read.
LONGEST = 131_072


class XglueError(Exception):
    """Files cannot be written, or are not of this format; one sentence says why."""


@dataclass(frozen=True)
class Form:
    """One of XGLUE's tasks. inputs: the fields of a line; target: the field in a file of its own, line by line.

    only: the label that a row must have to be included; together: the field whose equal values stand next to each
    other.
    """

    inputs: Sequence[str]
    target: str = ""
    only: str = ""
    together: str = ""


# Name in the files -> its form. A question is one to generate if people confirmed that its passage answers it.
LAYOUTS = PUBLISHED["xglue"]
FORMS = {
    "qadsm": Form(LAYOUTS["qadsm"].fields),
    "qam": Form(LAYOUTS["qam"].fields),
    "wpr": Form(LAYOUTS["wpr"].fields, together="query"),
    "qg": Form(("passage",), target="question", only=LAYOUTS["qam"].code),
}
# From a kind that publishes the first, the second is derived.
DERIVED = {"qam": ("qg",)}


def forms_of(published: str) -> tuple[str, ...]:
    return (published, *DERIVED.get(published, ()))


def cell(value: str) -> str:
    """A value as the files have it."""
    return _BREAKS.sub(" ", value)


def file_name(name: str, language: str, split: str, *, part: str = "", mark: str = "", labels: bool = False) -> str:
    """xglue.qadsm.en.train, xglue.qg.en.src.train, xglue.wpr.de.test.labels; mark: that of unfinished files."""
    return f"xglue.{name}.{language}{mark}{part}.{split}{'.labels' if labels else ''}"


def write(folder: Path, written: "Written", export: "Export") -> dict:
    """Write the files of a set, and return their names and contents. refused: a sentence that says why there
    are none.
    """
    name = export.kind.publication.formats["xglue"]
    told = {"format": TITLE, "tasks": list(forms_of(name)), "files": {}, "refused": ""}
    if not export.with_text:
        told["refused"] = (
            "XGLUE's files hold the texts of the records, which the licence keeps here, so they are not written."
        )
        return told
    rows = written.each(("language", "split", "label", *export.kind.fields))
    try:
        told["files"] = write_files(folder, name, rows, mark=export.mark)
    except XglueError as error:
        told["refused"] = f"XGLUE's files are not written: {error}"
    return told


def write_files(folder: Path, published: str, rows: Iterable[Mapping[str, str]], *, mark: str = "") -> dict[str, int]:
    """File -> its rows, for one of FORMS and what is derived from it. Splits without rows have no file.

    rows: with language, split, label and each field. A cell that is too long for the readers raises XglueError
    before anything is written.
    """
    files: dict[str, list[list[str]]] = {}
    listed = list(rows)
    languages = {row["language"] for row in listed}
    codes = {language: published_code(language, languages) for language in languages}
    for name in forms_of(published):
        for file, cells in _cells(name, _in_stretches(FORMS[name], listed), codes, mark):
            files.setdefault(file, []).append(cells)
    for file, lines in files.items():
        for number, cells in enumerate(lines, 1):
            if (longest := max(map(len, cells))) > LONGEST:
                raise XglueError(
                    f"{file}, line {number:,} would have a cell of {longest:,} characters; the readers of these files "
                    f"take {LONGEST:,} at most."
                )
    for file, lines in files.items():
        # A reader takes the first character for an encoding mark if it looks like one, so the cell's own comes second.
        start = _BOM if lines[0][0].startswith(_BOM) else ""
        with (folder / file).open("w", encoding="utf-8", newline="\n") as out:
            out.write(start)
            out.writelines("\t".join(cells) + "\n" for cells in lines)
    return {file: len(files[file]) for file in sorted(files)}


def _in_stretches(form: Form, rows: list[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """The rows that the form includes, in their order; rows that belong together stand where the first of
    them stands.
    """
    kept = [row for row in rows if not form.only or row["label"] == form.only]
    if not form.together:
        return kept
    stretches: dict[str, list[Mapping[str, str]]] = {}
    for row in kept:
        stretches.setdefault(cell(row[form.together]), []).append(row)
    return [row for stretch in stretches.values() for row in stretch]


def _cells(
    name: str, rows: Iterable[Mapping[str, str]], codes: Mapping[str, str], mark: str
) -> Iterator[tuple[str, list[str]]]:
    """codes: language -> its code in the files' names."""
    form = FORMS[name]
    for row in rows:
        where = codes[row["language"]], row["split"]
        inputs = [cell(row[field]) for field in form.inputs]
        if form.target:
            yield file_name(name, *where, part=".src", mark=mark), inputs
            yield file_name(name, *where, part=".tgt", mark=mark), [cell(row[form.target])]
        elif row["split"] == TEST:
            yield file_name(name, *where, mark=mark), inputs
            yield file_name(name, *where, mark=mark, labels=True), [row["label"]]
        else:
            yield file_name(name, *where, mark=mark), [*inputs, row["label"]]


def read(path: Path, columns: int) -> list[list[str]]:
    """The rows of a file, as the published readers read it: tab, no quoting, utf-8-sig.

    XglueError if it is not UTF-8, or a row has another number of cells.
    """
    rows = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for number, cells in enumerate(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE), 1):
                found = cells or [""]
                if len(found) != columns:
                    raise XglueError(f"{path}, line {number:,} has {len(found)} cells, not {columns}.")
                rows.append(found)
    except OSError as error:
        raise XglueError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise XglueError(f"{path} is not UTF-8; save it as UTF-8.") from error
    except csv.Error as error:
        raise XglueError(f"{path} cannot be read with tabs and without quotes: {error}.") from error
    return rows


register(Format("xglue", TITLE, write, measured_by="annotate.evaluation.xglue_tasks", of_several=True))
