"""The files of MLDoc (Schwenk and Li 2018; github.com/facebookresearch/MLDoc): lists of ids, and documents.

    mldoc-indices/<language>.<set>      an id a line; set: train.1000 and so on, dev, test
    mldoc-documents/<language>.<set>    LABEL<TAB>text, a document a line, in the order of the list
    MLDoc/mldoc.<set>.<code>            the same as LASER reads it: train1000, dev, test, and the code of the language

Languages are written out in the first two, as in the published lists; `joint` are sets of all languages. A text has its
fields parted by a space, and no tab or line end.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from annotate.core.lottery import lot
from annotate.kinds.balanced_draw import JOINT, spelled_out

if TYPE_CHECKING:
    from annotate.goldsets.export import Export

INDICES, DOCUMENTS, LASER = "mldoc-indices", "mldoc-documents", "MLDoc"
_BREAKS = re.compile(r"\s+")


def needs(export: "Export") -> tuple[str, ...]:
    return ("id", "label", *(export.kind.fields if export.with_text else ()))


def write(folder: Path, rows: Iterable[Mapping[str, str]], export: "Export") -> dict:
    """Write the files of a set, and return their names and rows. refused: why there are no documents, if so."""
    by_id = {row["id"]: row for row in rows}
    files: dict[str, int] = {}
    listed = {(spelled_out(language), language.split("-")[0]): sets for language, sets in export.sets.items()}
    if export.joint:
        listed[JOINT, JOINT] = export.joint
    for (spelled, code), sets in listed.items():
        for name, ids in sets.items():
            # What people or erasure took out of the set is in none of its lists.
            there = sorted((key for key in ids if key in by_id), key=lambda key, name=name: lot(export.seed, name, key))
            for file, lines in _files(spelled, code, name, there, by_id, export).items():
                path = folder / file
                path.parent.mkdir(exist_ok=True)
                path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
                files[file] = len(lines)
    refused = (
        "" if export.with_text else "The licence keeps the texts here, so there are lists of ids and no documents."
    )
    return {"format": "MLDoc", "files": files, "refused": refused}


def _files(
    spelled: str, code: str, name: str, ids: list[str], by_id: Mapping[str, Mapping[str, str]], export: "Export"
) -> dict[str, list[str]]:
    """File -> its lines."""
    mark = export.mark
    files = {f"{INDICES}/{spelled}{mark}.{name}": ids}
    if export.with_text:
        lines = [f"{by_id[key]['label']}\t{text_of(by_id[key], export.kind.fields)}" for key in ids]
        files[f"{DOCUMENTS}/{spelled}{mark}.{name}"] = lines
        files[f"{LASER}/mldoc{mark}.{name.replace('.', '')}.{code}"] = lines
    return files


def text_of(row: Mapping[str, str], fields: Iterable[str]) -> str:
    return _BREAKS.sub(" ", " ".join(row[field] for field in fields)).strip()
