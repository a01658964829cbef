"""The file that was published in 2015: label<TAB>id, sorted, no header; its name says how the posts were drawn."""

from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from annotate.kinds.designs import Design

if TYPE_CHECKING:
    from annotate.goldsets.export import Export

BATCH = 10_000
_NONE = pa.schema([("label", pa.string()), ("length", pa.int32()), ("id", pa.string())]).empty_table()


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
    """Write (label, id) of each row, in the order of the published files: by label, then by id, numeric ids as numbers.
    Returns how many there are.
    """
    # Millions of pairs are sorted at once, and as Arrow has them they are small. Its strings are in Python's order.
    tables, pairs = [_NONE], iter(pairs)
    while some := list(islice(pairs, BATCH)):
        labels, keys = zip(*some, strict=True)
        tables.append(pa.table([labels, [len(key) if key.isdigit() else 0 for key in keys], keys], schema=_NONE.schema))
    table = pa.concat_tables(tables)
    ordered = table.take(pc.sort_indices(table, [(name, "ascending") for name in table.column_names]))
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for batch in ordered.to_batches(BATCH):
            columns = (batch.column(name).to_pylist() for name in ("label", "id"))
            file.writelines(map("{}\t{}\n".format, *columns))
    return table.num_rows
