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
import pyarrow.parquet as pq

from annotate.controls import concept_suggestions
from annotate.core.draws.splits import TEST
from annotate.goldsets import form_extras
from annotate.goldsets.formats import Format, register
from annotate.goldsets.set_folder import SUMS
from annotate.goldsets.unit_rows import content
from annotate.kinds.balanced_draw import JOINT, OTHERWISE, spelled_out
from annotate.kinds.concept_kind import version_of
from annotate.kinds.file_sections import FORMATS as PUBLISHED
from corpora.core.languages import published_code
from corpora.sources import eurlex

if TYPE_CHECKING:
    from annotate.goldsets.export import Export

# --- Twitter 2015: label<TAB>id, sorted, without a header. The file name states how the posts were drawn.

TWITTER = "Twitter 2015"
PAIRS_AT_ONCE = 10_000
_NO_PAIRS = pa.schema([("label", pa.string()), ("length", pa.int32()), ("id", pa.string())]).empty_table()


def write_twitter(folder: Path, export: "Export") -> dict[str, Any]:
    """Write a set's Twitter 2015 file and return its manifest entry.

    No file is written if the posts were drawn with unequal probabilities, because the format has no column for them.
    """
    if not export.design.sets.stem:
        return {"format": TWITTER, "files": {}}
    name = f"{export.design.sets.stem}{export.mark}.tsv"
    with pq.ParquetFile(folder / f"gold{export.mark}.parquet") as rows:
        number = write_pairs(folder / name, rows.iter_batches(columns=["label", "id"]))
    return {"format": TWITTER, "files": {name: number}}


def write_pairs(path: Path, pairs: Iterable[pa.RecordBatch]) -> int:
    """Write the label and id of each row and return the number of rows.

    As in the published files, rows are sorted by label and then by id. Numeric ids are in numeric order.
    """
    # Millions of pairs are sorted in memory. Arrow stores them compactly and sorts strings in the same order as Python.
    tables = [_NO_PAIRS]
    for batch in pairs:
        length = pa.array([len(key) if key.isdigit() else 0 for key in batch["id"].to_pylist()], pa.int32())
        tables.append(pa.table([batch["label"], length, batch["id"]], schema=_NO_PAIRS.schema))
    table = pa.concat_tables(tables)
    ordered = table.take(pc.sort_indices(table, [(name, "ascending") for name in table.column_names]))
    with path.open("wb") as file:
        for batch in ordered.to_batches(PAIRS_AT_ONCE):
            file.write(content(pc.binary_join_element_wise(batch["label"], "\t", batch["id"], "\n", "")))
    return int(table.num_rows)


register(Format("twitter2015", TWITTER, write_twitter))


# --- XGLUE (Liang et al. 2020; Data_Format.txt in its repository): writer and reader
#
# A kind of question that publishes these files names one of FORMS.
#
# Tabs separate cells, newlines separate rows, and nothing is quoted. Any character that a reader could take for a
# separator is replaced with a space. The label is the last cell. The labels of a test file, however, are in a
# separate file.

XGLUE = "XGLUE"
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
class Form:
    """A task of XGLUE.

    inputs: fields of a line.
    target: field that is written to a separate file, line by line; empty if there is none.
    only: label of the rows to include; empty for all rows.
    together: field by which rows are grouped, so that rows with the same value are on consecutive lines; empty if rows
        are not grouped.
    """

    inputs: Sequence[str]
    target: str = ""
    only: str = ""
    together: str = ""


# A mapping from name in the files to form. Question generation (qg) uses only the questions whose passage answers them,
# as confirmed by people.
LAYOUTS = PUBLISHED["xglue"]
FORMS = {
    "qadsm": Form(LAYOUTS["qadsm"].fields),
    "qam": Form(LAYOUTS["qam"].fields),
    "wpr": Form(LAYOUTS["wpr"].fields, together="query"),
    "qg": Form(("passage",), target="question", only=LAYOUTS["qam"].code),
}
# A mapping from published form to the forms that are derived from it.
DERIVED = {"qam": ("qg",)}


def forms_of(published: str) -> tuple[str, ...]:
    return (published, *DERIVED.get(published, ()))


def cell(value: str) -> str:
    """Return a value as it is written in a cell. Tabs and line breaks are replaced with spaces."""
    return _LINE_BREAKS.sub(" ", value)


def xglue_file(name: str, language: str, split: str, *, part: str = "", mark: str = "", labels: bool = False) -> str:
    """Return a file name such as xglue.qadsm.en.train, xglue.qg.en.src.train or xglue.wpr.de.test.labels.

    mark: suffix for the files of an unfinished set.
    """
    return f"xglue.{name}.{language}{mark}{part}.{split}{'.labels' if labels else ''}"


def write_xglue(folder: Path, export: "Export") -> dict[str, Any]:
    """Write a set's XGLUE files and return their manifest entry.

    If the files cannot be written, `refused` in the entry is a sentence that states the reason.
    """
    name = export.kind.publication.formats["xglue"]
    entry = {"format": XGLUE, "tasks": list(forms_of(name)), "files": {}, "refused": ""}
    if not export.with_text:
        reason = "XGLUE's files contain the texts of the records, which must not be published, so they are not written."
        return entry | {"refused": reason}
    rows = export.written_rows(folder, ("language", "split", "label", *export.kind.fields))
    try:
        return entry | {"files": write_xglue_files(folder, name, rows, mark=export.mark)}
    except XglueError as error:
        return entry | {"refused": f"XGLUE's files are not written: {error}"}


def write_xglue_files(
    folder: Path, published: str, rows: Iterable[Mapping[str, str]], *, mark: str = ""
) -> dict[str, int]:
    """Write the files of a form and of the forms that are derived from it. A split without rows has no file.

    published: one of FORMS.
    rows: rows with language, split, label and the form's fields.
    mark: suffix for the files of an unfinished set.

    Return a mapping from file to number of rows. If a cell is too long for the published readers, raise XglueError
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
                    f"{file}, line {number:,} would have a cell of {longest:,} characters, but readers of these files "
                    f"accept at most {LONGEST_CELL:,}."
                )
    for file, lines in files.items():
        # Readers drop a U+FEFF at the start of a file as a byte order mark. If the first cell starts with U+FEFF, write
        # a second one before it.
        start = _BOM if lines[0][0].startswith(_BOM) else ""
        with (folder / file).open("w", encoding="utf-8", newline="\n") as out:
            out.write(start)
            out.writelines("\t".join(cells) + "\n" for cells in lines)
    return {file: len(files[file]) for file in sorted(files)}


def _in_stretches(form: Form, rows: list[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Return the rows that the form includes, in order.

    If the form groups rows, each row follows the earlier rows of its group.
    """
    included = [row for row in rows if not form.only or row["label"] == form.only]
    if not form.together:
        return included
    stretches: dict[str, list[Mapping[str, str]]] = {}
    for row in included:
        stretches.setdefault(cell(row[form.together]), []).append(row)
    return [row for stretch in stretches.values() for row in stretch]


def _xglue_cells(
    name: str, rows: Iterable[Mapping[str, str]], codes: Mapping[str, str], mark: str
) -> Iterator[tuple[str, list[str]]]:
    """Yield the file and the cells of each line.

    codes: mapping from language to its code in file names.
    """
    form = FORMS[name]
    for row in rows:
        place = codes[row["language"]], row["split"]
        inputs = [cell(row[field]) for field in form.inputs]
        if form.target:
            yield xglue_file(name, *place, part=".src", mark=mark), inputs
            yield xglue_file(name, *place, part=".tgt", mark=mark), [cell(row[form.target])]
        elif row["split"] == TEST:
            yield xglue_file(name, *place, mark=mark), inputs
            yield xglue_file(name, *place, mark=mark, labels=True), [row["label"]]
        else:
            yield xglue_file(name, *place, mark=mark), [*inputs, row["label"]]


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


# --- MLDoc (Schwenk and Li 2018; github.com/facebookresearch/MLDoc): lists of ids, and documents
#
#     mldoc-indices/<language>.<set>      one id per line; <set> is dev, test, or train with its size, as in train.1000
#     mldoc-documents/<language>.<set>    LABEL<TAB>text, one document per line, in the order of the list
#     MLDoc/mldoc.<set>.<code>            the same for LASER, where <set> is written as train1000
#     mldoc-sampling/<language>           each document in a language once, as input for sampling_rcv2.py
#
# Language names are spelled out, as in the published lists. The files named `joint` contain the sets for all languages
# together. A text consists of the record's fields, joined with spaces and without tabs or line breaks. LASER and
# sampling_rcv2.py know MLDoc's four classes only by their letters.

MLDOC = "MLDoc"
INDICES, DOCUMENTS, LASER, SAMPLING = "mldoc-indices", "mldoc-documents", "MLDoc", "mldoc-sampling"
# The letters of the classes in LASER and sampling_rcv2.py. Full labels would break, because LASER's `sed s/C/0/` would
# turn CCAT into 0CAT.
LETTERS = {"CCAT": "C", "ECAT": "E", "GCAT": "G", "MCAT": "M"}
_BREAKS = re.compile(r"\s+")


def write_mldoc(folder: Path, export: "Export") -> dict[str, Any]:
    """Write a set's MLDoc files and return their manifest entry.

    letters: mapping from class to its letter in LASER's files; empty if these files have the full labels.
    refused: reason why no documents are written; empty if they are.
    """
    columns = ("id", "label", *(export.kind.fields if export.with_text else ()))
    by_id = {row["id"]: row for row in export.written_rows(folder, columns)}
    letters = letters_of(export.task.labels)
    files: dict[str, int] = {}
    for file, lines in _mldoc_files(by_id, letters, export):
        path = folder / file
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        files[file] = len(lines)
    refused = (
        "" if export.with_text else "The texts must not be published, so lists of ids are written but no documents."
    )
    return {"format": MLDOC, "files": files, "letters": letters, "refused": refused}


def letters_of(classes: Iterable[str]) -> dict[str, str]:
    """Return a mapping from class to letter. It is empty if any class is not one of MLDoc's."""
    labels = set(classes)
    return {label: letter for label, letter in LETTERS.items() if label in labels} if labels <= LETTERS.keys() else {}


def _mldoc_files(
    by_id: Mapping[str, Mapping[str, str]], letters: Mapping[str, str], export: "Export"
) -> Iterator[tuple[str, list[str]]]:
    """Yield each file with its lines."""
    mark, fields = export.mark, export.kind.fields

    def lines(rows: list[Mapping[str, str]], letters: Mapping[str, str]) -> list[str]:
        """Return the label (or its letter), a tab and the text of each row."""
        return [f"{letters.get(row['label'], row['label'])}\t{text_of(row, fields)}" for row in rows]

    for language, sets in [*export.sets.items(), (JOINT, export.joint)]:
        spelled, code = (JOINT, JOINT) if language == JOINT else named(language, export.sets)
        # Omit documents that are no longer in the set, because annotators removed them or because they were erased.
        present = {name: [key for key in ids if key in by_id] for name, ids in sets.items()}
        for name, ids in present.items():
            yield f"{INDICES}/{spelled}{mark}.{name}", ids
            if export.with_text:
                documents = [by_id[key] for key in ids]
                yield f"{DOCUMENTS}/{spelled}{mark}.{name}", lines(documents, {})
                yield f"{LASER}/mldoc{mark}.{name.replace('.', '')}.{code}", lines(documents, letters)
        if export.with_text and letters and language != JOINT:
            once = dict.fromkeys(key for ids in present.values() for key in ids)
            yield f"{SAMPLING}/{spelled}{mark}", lines([by_id[key] for key in once], letters)


def named(language: str, languages: Iterable[str]) -> tuple[str, str]:
    """Return a language's name in the lists and its code in LASER's files.

    languages: all languages of the set.

    For example, these are `chinese` and `zh`. If the set has a second variety of Chinese, they are `simplified-chinese`
    and `zh-CN`.
    """
    code = published_code(language, languages)
    published_names = {code: name for name, code in OTHERWISE.items()}
    return (published_names.get(language) if code != language else None) or spelled_out(language), code


def text_of(row: Mapping[str, str], fields: Iterable[str]) -> str:
    return _BREAKS.sub(" ", " ".join(row[field] for field in fields)).strip()


register(Format("mldoc", MLDOC, write_mldoc, measured_by="annotate.evaluation.language_pairs"))


# --- EURLEX57K (Chalkidis et al. 2019; github.com/iliaschalkidis/lmtc-eurlex57k)
#
#     EURLEX57K/<split>/<celex_id>.json   one act; <split> is train, dev or test
#     EURLEX57K/EURLEX57K.json            the descriptors of all concepts in the vocabulary, by id
#     EURLEX57K/SHA256SUMS                the digest of each act, in the format of sha256sum
#
# The JSON is ASCII, because the published reader opens it in the machine's default encoding.

EURLEX = "EURLEX57K"
DESCRIPTORS = f"{EURLEX}/EURLEX57K.json"
MOST_BYTES = 255  # bytes in a file name


def write_eurlex(folder: Path, export: "Export") -> dict[str, Any]:
    """Write a set's EURLEX57K files and return their manifest entry.

    files: mapping from file to its number of concepts or acts.
    splits: mapping from split to its number of documents.
    buckets: mapping from bucket to its labels; a label's bucket depends on how many train documents have the label.
    refused: reason why no acts are written; empty if they are.
    """
    (folder / EURLEX).mkdir()
    files = {DESCRIPTORS: concept_suggestions.write_descriptors(folder / DESCRIPTORS, version_of(export.task))}
    splits = {split: len(documents) for split, documents in export.label_sets.items() if documents}
    if not (refused := _no_acts(export)):
        rows = export.written_rows(folder, ("id", "url", "split", "concepts", *export.kind.exported_fields))
        _write_acts(folder / EURLEX, rows, export.mark)
        files[f"{EURLEX}/{SUMS}"] = sum(splits.values())
    return {
        "format": EURLEX,
        "files": files,
        "splits": splits,
        "frequent_over": export.frequent_over,
        "buckets": concept_suggestions.buckets(export),
        "vocabulary": form_extras.described(version_of(export.task)),
        "refused": refused,
    }


def _no_acts(export: "Export") -> str:
    if not export.with_text:
        return "EURLEX57K's acts contain texts that must not be published, so only the descriptors are written."
    for key in export.splits:
        # The id becomes a file name. It must not point outside the folder, and must be valid on any system.
        if not key.isprintable() or set('/\\:*?"<>|').intersection(key) or key.startswith("."):
            return f"EURLEX57K's files are named after ids, but {key!r} cannot be a file name, so no acts are written."
        if len(f"{key}.json".encode()) > MOST_BYTES:
            return f"EURLEX57K's files are named after ids, but {key[:40]!r}… is too long, so no acts are written."
    return ""


def _write_acts(folder: Path, rows: Iterable[Mapping[str, Any]], mark: str) -> None:
    """Write the acts, and a list of their digests."""
    with (folder / SUMS).open("w", encoding="utf-8", newline="\n") as sums:
        for row in rows:
            act = eurlex.published({**row, "url": row["url"] or "", "declared": row["concepts"]})
            name = f"{row['split']}{mark}/{row['id']}.json"
            content = json.dumps(act, indent=1).encode("ascii")
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
            sums.write(f"{hashlib.sha256(content).hexdigest()}  {name}\n")


register(Format("eurlex57k", EURLEX, write_eurlex))
