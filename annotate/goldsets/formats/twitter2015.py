"""The file that was published in 2015: label<TAB>id, sorted, no header; its name says how the posts were drawn."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from annotate.kinds.designs import Design

if TYPE_CHECKING:
    from annotate.goldsets.export import Export


def needs(export: "Export") -> tuple[str, ...]:
    return ("label", "id")


def write(folder: Path, rows: Iterable[Mapping[str, str]], export: "Export") -> dict:
    """Write the file of a set, and return what it is."""
    name = file_name(export.design, mark=export.mark)
    written = write_pairs(folder / name, ((row["label"], row["id"]) for row in rows))
    return {"format": "Twitter 2015", "files": {name: written}}


def file_name(design: Design, *, mark: str = "") -> str:
    return f"{design.published}{mark}.tsv"


def write_pairs(path: Path, pairs: Iterable[tuple[str, str]]) -> int:
    """Write (label, id) of each row, in the order of the published files; returns how many there are."""
    ordered = sorted(pairs, key=_place)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{label}\t{key}\n" for label, key in ordered)
    return len(ordered)


def _place(pair: tuple[str, str]) -> tuple[str, int, str]:
    """By label, then by id; numeric ids as numbers."""
    label, key = pair
    return label, len(key) if key.isdigit() else 0, key
