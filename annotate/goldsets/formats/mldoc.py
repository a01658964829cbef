"""The files of MLDoc (Schwenk and Li 2018; github.com/facebookresearch/MLDoc): lists of ids, and documents.

    mldoc-indices/<language>.<set>      an id a line; set: train.1000 and so on, dev, test
    mldoc-documents/<language>.<set>    LABEL<TAB>text, a document a line, in the order of the list
    MLDoc/mldoc.<set>.<code>            the same for LASER: train1000, dev, test, and the code of the language
    mldoc-sampling/<language>           all documents of a language, once each, as the input of sampling_rcv2.py

Languages are written out in the lists, as in the published ones; `joint` are sets of all languages. A text has its
fields with a space between, and no tab or line end. Two of the readers know MLDoc's four classes by letter alone.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from annotate.goldsets.formats import Format, register
from annotate.kinds.balanced_draw import JOINT, OTHERWISE, spelled_out
from corpora.core.languages import published_code

if TYPE_CHECKING:
    from annotate.goldsets.export import Export
    from annotate.goldsets.exporter import Written

TITLE = "MLDoc"
INDICES, DOCUMENTS, LASER, SAMPLING = "mldoc-indices", "mldoc-documents", "MLDoc", "mldoc-sampling"
# The classes as LASER and sampling_rcv2.py know them. LASER's `sed s/C/0/` would make 0CAT of CCAT.
LETTERS = {"CCAT": "C", "ECAT": "E", "GCAT": "G", "MCAT": "M"}
_BREAKS = re.compile(r"\s+")


def write(folder: Path, written: "Written", export: "Export") -> dict:
    """Write the files of a set, and return their names and rows. letters: class -> its letter in LASER's files; empty
    where they have the classes' own codes. refused: why there are no documents, if so."""
    columns = ("id", "label", *(export.kind.fields if export.with_text else ()))
    by_id = {row["id"]: row for row in written.each(columns)}
    letters = letters_of(export.task.labels)
    files: dict[str, int] = {}
    for file, lines in _files(by_id, letters, export):
        path = folder / file
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
        files[file] = len(lines)
    refused = (
        "" if export.with_text else "The licence keeps the texts here, so there are lists of ids and no documents."
    )
    return {"format": TITLE, "files": files, "letters": letters, "refused": refused}


def letters_of(classes: Iterable[str]) -> dict[str, str]:
    """Class -> its letter, where all are of MLDoc's; others have none, and no reader of letters knows them."""
    found = set(classes)
    return {label: letter for label, letter in LETTERS.items() if label in found} if found <= LETTERS.keys() else {}


def _files(
    by_id: Mapping[str, Mapping[str, str]], letters: Mapping[str, str], export: "Export"
) -> Iterator[tuple[str, list[str]]]:
    """Each file with its lines."""
    mark, fields = export.mark, export.kind.fields
    for language, sets in [*export.sets.items(), (JOINT, export.joint)]:
        spelled, code = (JOINT, JOINT) if language == JOINT else named(language, export.sets)
        # What people or erasure took out of the set is in none of its lists.
        there = {name: [key for key in ids if key in by_id] for name, ids in sets.items()}
        for name, ids in there.items():
            yield f"{INDICES}/{spelled}{mark}.{name}", ids
            if export.with_text:
                chosen = [by_id[key] for key in ids]
                yield f"{DOCUMENTS}/{spelled}{mark}.{name}", _lines(chosen, fields, {})
                yield f"{LASER}/mldoc{mark}.{name.replace('.', '')}.{code}", _lines(chosen, fields, letters)
        if export.with_text and letters and language != JOINT:
            once = dict.fromkeys(key for ids in there.values() for key in ids)
            yield f"{SAMPLING}/{spelled}{mark}", _lines([by_id[key] for key in once], fields, letters)


def named(language: str, languages: Iterable[str]) -> tuple[str, str]:
    """How the lists and LASER's files of a set of these languages call one of them: chinese and zh, or, beside another
    Chinese, simplified-chinese and zh-CN."""
    code = published_code(language, languages)
    published = {known: name for name, known in OTHERWISE.items()}
    return (published.get(language) if code != language else None) or spelled_out(language), code


def _lines(rows: Iterable[Mapping[str, str]], fields: Iterable[str], letters: Mapping[str, str]) -> list[str]:
    """Label, or its letter if it has one, tab and text of each."""
    return [f"{letters.get(row['label'], row['label'])}\t{text_of(row, fields)}" for row in rows]


def text_of(row: Mapping[str, str], fields: Iterable[str]) -> str:
    return _BREAKS.sub(" ", " ".join(row[field] for field in fields)).strip()


register(Format("mldoc", TITLE, write, measured_by="annotate.evaluation.language_pairs"))
