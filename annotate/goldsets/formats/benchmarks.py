"""Published formats of labelled texts: Twitter 2015, XGLUE, MLDoc and EURLEX57K."""

import csv
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from annotate.controls import concept_suggestions
from annotate.core.draws.splits import TEST
from annotate.goldsets import form_extras
from annotate.goldsets.formats import Format, register
from annotate.goldsets.set_folder import SUMS
from annotate.goldsets.unit_rows import content
from annotate.kinds.balanced_draw import JOINT, OTHERWISE, spelled_out
from annotate.kinds.designs import Design
from annotate.kinds.layouts import FORMATS as PUBLISHED
from corpora.core.languages import published_code
from corpora.sources import eurlex

if TYPE_CHECKING:
    from annotate.goldsets.export import Export
    from annotate.goldsets.exporter import Written

# --- The file that was published in 2015: label<TAB>id, sorted, no header; its name says how the posts were drawn.

TWITTER = "Twitter 2015"
PAIRS_AT_ONCE = 10_000
_NO_PAIRS = pa.schema([("label", pa.string()), ("length", pa.int32()), ("id", pa.string())]).empty_table()


def write_twitter(folder: Path, written: "Written", export: "Export") -> dict:
    """Write the file of a set, and return what it is. A set whose chances differ has none: the file has no chances."""
    if not export.design.sets.stem:
        return {"format": TWITTER, "files": {}}
    name = pairs_file(export.design, mark=export.mark)
    return {"format": TWITTER, "files": {name: write_pairs(folder / name, written.columns("label", "id"))}}


def pairs_file(design: Design, *, mark: str = "") -> str:
    return f"{design.sets.stem}{mark}.tsv"


def write_pairs(path: Path, pairs: Iterable[pa.RecordBatch]) -> int:
    """Write (label, id) of each row, in the order of the published files: by label, then by id, numeric ids as numbers.
    Returns how many there are.
    """
    # Millions of pairs are sorted at once, and as Arrow has them they are small. Its strings are in Python's order.
    tables = [_NO_PAIRS]
    for some in pairs:
        length = pa.array([len(key) if key.isdigit() else 0 for key in some["id"].to_pylist()], pa.int32())
        tables.append(pa.table([some["label"], length, some["id"]], schema=_NO_PAIRS.schema))
    table = pa.concat_tables(tables)
    ordered = table.take(pc.sort_indices(table, [(name, "ascending") for name in table.column_names]))
    with path.open("wb") as file:
        for batch in ordered.to_batches(PAIRS_AT_ONCE):
            file.write(content(pc.binary_join_element_wise(batch["label"], "\t", batch["id"], "\n", "")))
    return table.num_rows


register(Format("twitter2015", TWITTER, write_twitter))


# --- The files of XGLUE (Liang et al. 2020; Data_Format.txt of its repository), written from rows and read back.
#
# A kind of question that publishes them names one of FORMS.
#
# Tabs separate cells, newlines separate rows, and nothing is quoted, so any character that a reader could take for
# either becomes a space inside a cell. The label is the last cell; test files have none, and their labels are in a file
# beside.

XGLUE = "XGLUE"
# The characters at which str.splitlines() and line readers break, besides the tab.
_LINE_BREAKS = re.compile("\r\n|[\t\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
_BOM = "\ufeff"
# The longest cell that Python's csv module takes, with which the published readers read.
LONGEST_CELL = 131_072


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
    return _LINE_BREAKS.sub(" ", value)


def xglue_file(name: str, language: str, split: str, *, part: str = "", mark: str = "", labels: bool = False) -> str:
    """xglue.qadsm.en.train, xglue.qg.en.src.train, xglue.wpr.de.test.labels; mark: that of unfinished files."""
    return f"xglue.{name}.{language}{mark}{part}.{split}{'.labels' if labels else ''}"


def write_xglue(folder: Path, written: "Written", export: "Export") -> dict:
    """Write the files of a set, and return their names and contents. refused: a sentence that says why there
    are none.
    """
    name = export.kind.publication.formats["xglue"]
    told = {"format": XGLUE, "tasks": list(forms_of(name)), "files": {}, "refused": ""}
    if not export.with_text:
        told["refused"] = (
            "XGLUE's files hold the texts of the records, which the licence keeps here, so they are not written."
        )
        return told
    rows = written.each(("language", "split", "label", *export.kind.fields))
    try:
        told["files"] = write_xglue_files(folder, name, rows, mark=export.mark)
    except XglueError as error:
        told["refused"] = f"XGLUE's files are not written: {error}"
    return told


def write_xglue_files(
    folder: Path, published: str, rows: Iterable[Mapping[str, str]], *, mark: str = ""
) -> dict[str, int]:
    """File -> its rows, for one of FORMS and what is derived from it. Splits without rows have no file.

    rows: with language, split, label and each field. A cell that is too long for the readers raises XglueError
    before anything is written.
    """
    files: dict[str, list[list[str]]] = {}
    listed = list(rows)
    languages = {row["language"] for row in listed}
    codes = {language: published_code(language, languages) for language in languages}
    for name in forms_of(published):
        for file, cells in _xglue_cells(name, _in_stretches(FORMS[name], listed), codes, mark):
            files.setdefault(file, []).append(cells)
    for file, lines in files.items():
        for number, cells in enumerate(lines, 1):
            if (longest := max(map(len, cells))) > LONGEST_CELL:
                raise XglueError(
                    f"{file}, line {number:,} would have a cell of {longest:,} characters; the readers of these files "
                    f"take {LONGEST_CELL:,} at most."
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


def _xglue_cells(
    name: str, rows: Iterable[Mapping[str, str]], codes: Mapping[str, str], mark: str
) -> Iterator[tuple[str, list[str]]]:
    """codes: language -> its code in the files' names."""
    form = FORMS[name]
    for row in rows:
        where = codes[row["language"]], row["split"]
        inputs = [cell(row[field]) for field in form.inputs]
        if form.target:
            yield xglue_file(name, *where, part=".src", mark=mark), inputs
            yield xglue_file(name, *where, part=".tgt", mark=mark), [cell(row[form.target])]
        elif row["split"] == TEST:
            yield xglue_file(name, *where, mark=mark), inputs
            yield xglue_file(name, *where, mark=mark, labels=True), [row["label"]]
        else:
            yield xglue_file(name, *where, mark=mark), [*inputs, row["label"]]


def read_xglue(path: Path, columns: int) -> list[list[str]]:
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


register(Format("xglue", XGLUE, write_xglue, measured_by="annotate.evaluation.xglue_tasks", of_several=True))


# --- The files of MLDoc (Schwenk and Li 2018; github.com/facebookresearch/MLDoc): lists of ids, and documents.
#
#     mldoc-indices/<language>.<set>      an id a line; set: train.1000 and so on, dev, test
#     mldoc-documents/<language>.<set>    LABEL<TAB>text, a document a line, in the order of the list
#     MLDoc/mldoc.<set>.<code>            the same for LASER: train1000, dev, test, and the code of the language
#     mldoc-sampling/<language>           all documents of a language, once each, as the input of sampling_rcv2.py
#
# Languages are written out in the lists, as in the published ones; `joint` are sets of all languages. A text has its
# fields with a space between, and no tab or line end. Two of the readers know MLDoc's four classes by letter alone.

MLDOC = "MLDoc"
INDICES, DOCUMENTS, LASER, SAMPLING = "mldoc-indices", "mldoc-documents", "MLDoc", "mldoc-sampling"
# The classes as LASER and sampling_rcv2.py know them. LASER's `sed s/C/0/` would make 0CAT of CCAT.
LETTERS = {"CCAT": "C", "ECAT": "E", "GCAT": "G", "MCAT": "M"}
_BREAKS = re.compile(r"\s+")


def write_mldoc(folder: Path, written: "Written", export: "Export") -> dict:
    """Write the files of a set, and return their names and rows. letters: class -> its letter in LASER's files; empty
    where they have the classes' own codes. refused: why there are no documents, if so."""
    columns = ("id", "label", *(export.kind.fields if export.with_text else ()))
    by_id = {row["id"]: row for row in written.each(columns)}
    letters = letters_of(export.task.labels)
    files: dict[str, int] = {}
    for file, lines in _mldoc_files(by_id, letters, export):
        path = folder / file
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        files[file] = len(lines)
    refused = (
        "" if export.with_text else "The licence keeps the texts here, so there are lists of ids and no documents."
    )
    return {"format": MLDOC, "files": files, "letters": letters, "refused": refused}


def letters_of(classes: Iterable[str]) -> dict[str, str]:
    """Class -> its letter, where all are of MLDoc's; others have none, and no reader of letters knows them."""
    found = set(classes)
    return {label: letter for label, letter in LETTERS.items() if label in found} if found <= LETTERS.keys() else {}


def _mldoc_files(
    by_id: Mapping[str, Mapping[str, str]], letters: Mapping[str, str], export: "Export"
) -> Iterator[tuple[str, list[str]]]:
    """Each file with its lines."""
    mark, fields = export.mark, export.kind.fields

    def lines(rows: list[Mapping[str, str]], letters: Mapping[str, str]) -> list[str]:
        """Label, or its letter if it has one, tab and text of each."""
        return [f"{letters.get(row['label'], row['label'])}\t{text_of(row, fields)}" for row in rows]

    for language, sets in [*export.sets.items(), (JOINT, export.joint)]:
        spelled, code = (JOINT, JOINT) if language == JOINT else named(language, export.sets)
        # What people or erasure took out of the set is in none of its lists.
        there = {name: [key for key in ids if key in by_id] for name, ids in sets.items()}
        for name, ids in there.items():
            yield f"{INDICES}/{spelled}{mark}.{name}", ids
            if export.with_text:
                chosen = [by_id[key] for key in ids]
                yield f"{DOCUMENTS}/{spelled}{mark}.{name}", lines(chosen, {})
                yield f"{LASER}/mldoc{mark}.{name.replace('.', '')}.{code}", lines(chosen, letters)
        if export.with_text and letters and language != JOINT:
            once = dict.fromkeys(key for ids in there.values() for key in ids)
            yield f"{SAMPLING}/{spelled}{mark}", lines([by_id[key] for key in once], letters)


def named(language: str, languages: Iterable[str]) -> tuple[str, str]:
    """How the lists and LASER's files of a set of these languages call one of them: chinese and zh, or, beside another
    Chinese, simplified-chinese and zh-CN."""
    code = published_code(language, languages)
    published = {known: name for name, known in OTHERWISE.items()}
    return (published.get(language) if code != language else None) or spelled_out(language), code


def text_of(row: Mapping[str, str], fields: Iterable[str]) -> str:
    return _BREAKS.sub(" ", " ".join(row[field] for field in fields)).strip()


register(Format("mldoc", MLDOC, write_mldoc, measured_by="annotate.evaluation.language_pairs"))


# --- The files of EURLEX57K (Chalkidis et al. 2019; github.com/iliaschalkidis/lmtc-eurlex57k).
#
#     EURLEX57K/<split>/<celex_id>.json   an act; split: train, dev, test
#     EURLEX57K/EURLEX57K.json            the descriptors of all concepts of the vocabulary, by id
#     EURLEX57K/SHA256SUMS                the digest of each act, as sha256sum writes and checks it
#
# JSON is written in ASCII, since the published reader opens it in whatever encoding the machine has.

EURLEX = "EURLEX57K"
DESCRIPTORS = f"{EURLEX}/EURLEX57K.json"
MOST_BYTES = 255  # in the name of a file


def write_eurlex(folder: Path, written: "Written", export: "Export") -> dict:
    """Write the files of a set, and return their names and what is in them: concepts and acts. splits: split -> its
    documents; buckets: bucket -> its labels, by the documents of train. refused: why there are no acts, if so.
    """
    (folder / EURLEX).mkdir()
    files = {DESCRIPTORS: concept_suggestions.write_descriptors(folder / DESCRIPTORS, export.task.vocabulary)}
    splits = {split: len(documents) for split, documents in export.label_sets.items() if documents}
    if not (refused := _no_acts(export)):
        rows = written.each(("id", "url", "split", "concepts", *export.kind.exported_fields))
        _write_acts(folder / EURLEX, rows, export.mark)
        files[f"{EURLEX}/{SUMS}"] = sum(splits.values())
    return {
        "format": EURLEX,
        "files": files,
        "splits": splits,
        "frequent_over": export.frequent_over,
        "buckets": concept_suggestions.buckets(export),
        "vocabulary": form_extras.described(export.task.vocabulary),
        "refused": refused,
    }


def _no_acts(export: "Export") -> str:
    if not export.with_text:
        return "The files of EURLEX57K hold the texts of the acts, which the licence keeps here; there are descriptors."
    for key in export.splits:
        # The name of a file, which must not lead out of its folder, and in any system means one file.
        if not key.isprintable() or set('/\\:*?"<>|').intersection(key) or key.startswith("."):
            return f"The files of EURLEX57K are named by ids, and {key!r} cannot be a file's name; no acts are written."
        if len(f"{key}.json".encode()) > MOST_BYTES:
            return f"The files of EURLEX57K are named by ids, and {key[:40]!r}… is too long; no acts are written."
    return ""


def _write_acts(folder: Path, rows: Iterable[Mapping[str, Any]], mark: str) -> None:
    """Write each act, and the list of their digests."""
    with (folder / SUMS).open("w", encoding="utf-8", newline="\n") as sums:
        for row in rows:
            act = eurlex.published(row | {"url": row["url"] or "", "declared": row["concepts"]})
            name = f"{row['split']}{mark}/{row['id']}.json"
            content = json.dumps(act, indent=1).encode("ascii")
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
            sums.write(f"{hashlib.sha256(content).hexdigest()}  {name}\n")


register(Format("eurlex57k", EURLEX, write_eurlex))
