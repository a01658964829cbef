"""The file that was published in 2015: label<TAB>id, sorted, no header; its name says how the posts were drawn."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from annotate.goldsets.formats import Format, register
from annotate.goldsets.unit_rows import content
from annotate.kinds.designs import Design

if TYPE_CHECKING:
    from annotate.goldsets.export import Export
    from annotate.goldsets.exporter import Written

TITLE = "Twitter 2015"
BATCH = 10_000
_NONE = pa.schema([("label", pa.string()), ("length", pa.int32()), ("id", pa.string())]).empty_table()


def write(folder: Path, written: "Written", export: "Export") -> dict:
    """Write the file of a set, and return what it is. A set whose chances differ has none: the file has no chances."""
    if not export.design.sets.stem:
        return {"format": TITLE, "files": {}}
    name = file_name(export.design, mark=export.mark)
    return {"format": TITLE, "files": {name: write_pairs(folder / name, written.columns("label", "id"))}}


def file_name(design: Design, *, mark: str = "") -> str:
    return f"{design.sets.stem}{mark}.tsv"


def write_pairs(path: Path, pairs: Iterable[pa.RecordBatch]) -> int:
    """Write (label, id) of each row, in the order of the published files: by label, then by id, numeric ids as numbers.
    Returns how many there are.
    """
    # Millions of pairs are sorted at once, and as Arrow has them they are small. Its strings are in Python's order.
    tables = [_NONE]
    for some in pairs:
        length = pa.array([len(key) if key.isdigit() else 0 for key in some["id"].to_pylist()], pa.int32())
        tables.append(pa.table([some["label"], length, some["id"]], schema=_NONE.schema))
    table = pa.concat_tables(tables)
    ordered = table.take(pc.sort_indices(table, [(name, "ascending") for name in table.column_names]))
    with path.open("wb") as file:
        for batch in ordered.to_batches(BATCH):
            file.write(content(pc.binary_join_element_wise(batch["label"], "\t", batch["id"], "\n", "")))
    return table.num_rows


register(Format("twitter2015", TITLE, write))
