"""Every format is read in every compression, whether or not the file's name shows them. No row of an Arrow file is
lost."""

import bz2
import gzip
import io
import json
import lzma
import sys
import zipfile
from datetime import datetime

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora.core import CorpusError
from corpora.sources.compression import format_of
from corpora.sources.readers import Columns, read_rows, sample
from corpora.sources.text import Fault, TextFormat

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COLUMNS = Columns({"id": "id", "text": "text"})
ROWS = [{"id": f"p{number}", "text": f"Grüße {number}, „so“"} for number in range(1, 40)]
TABLE = pa.Table.from_pylist(ROWS)


def arrow(table=TABLE, new=pa.ipc.new_file, compression=None):
    written = io.BytesIO()
    with new(written, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, max_chunksize=7)
    return written.getvalue()


def parquet():
    written = io.BytesIO()
    pq.write_table(TABLE, written)
    return written.getvalue()


def workbook(*rows, notes=()):
    book, written = openpyxl.Workbook(), io.BytesIO()
    for row in rows or (("id", "text"), *(tuple(row.values()) for row in ROWS)):
        book.active.append(row)
    for row in notes:
        book.create_sheet("notes").append(row)
    book.save(written)
    return written.getvalue()


def lines(delimiter, quote=""):
    cells = [["id", "text"], *(list(row.values()) for row in ROWS)]
    return "".join(delimiter.join(f"{quote}{cell}{quote}" for cell in row) + "\n" for row in cells)


def zipped(name, content):
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
        archive.writestr("__MACOSX/._file", b"hidden")
    return written.getvalue()


CONTENTS = {
    "a.jsonl": "".join(json.dumps(row) + "\n" for row in ROWS).encode(),
    "a.json": json.dumps(ROWS, indent=1).encode("utf-16"),
    "a.csv": lines(",", '"').encode(),
    "semicolons.csv": lines(";").replace("\n", "\r\n").encode("utf-16"),
    "a.tsv": lines("\t").replace("\n", "\r").encode("utf-8-sig"),
    "a.parquet": parquet(),
    "a.xlsx": workbook(),
    "a.arrow": arrow(),
    "a.feather": arrow(compression="lz4"),
    "a.arrows": arrow(new=pa.ipc.new_stream),
}
PACKED = {
    "": lambda name, content: content,
    ".gz": lambda name, content: gzip.compress(content[:99]) + gzip.compress(content[99:]),
    ".bz2": lambda name, content: bz2.compress(content[:99]) + bz2.compress(content[99:]),
    ".xz": lambda name, content: lzma.compress(content[:99]) + lzma.compress(content[99:]),
    ".zst": lambda name, content: zstd.compress(content[:99]) + zstd.compress(content[99:]),
    ".zip": zipped,
}


def read(path):
    return [row for _, row in read_rows(path, format_of(path), COLUMNS)]


@pytest.mark.parametrize("is_named", [True, False])
@pytest.mark.parametrize("suffix", PACKED)
@pytest.mark.parametrize("name", CONTENTS)
def test_a_file_of_any_format_is_read_in_any_compression(tmp_path, name, suffix, is_named):
    stem = name if is_named else "RC_2015-01"
    path = tmp_path / f"{stem}{suffix}"
    path.write_bytes(PACKED[suffix](stem, CONTENTS[name]))
    assert read(path) == ROWS


@pytest.mark.parametrize(("content", "name"), [("a.parquet", "x.csv"), ("a.jsonl", "x.tsv"), ("a.arrow", "x.json")])
def test_the_content_decides_if_it_contradicts_the_name(tmp_path, content, name):
    (tmp_path / name).write_bytes(CONTENTS[content])
    assert read(tmp_path / name) == ROWS


@pytest.mark.parametrize(
    "content", [b"just a text\nof two lines\n", b"d1\t0\tc1\t1\nd2\t0\tc1\t1\n", b"\xff\xd8\xff", b"a,b\n"]
)
def test_the_format_of_other_content_is_unknown(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    assert format_of(tmp_path / "file") is None


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.999])
def test_an_arrow_file_that_is_cut_off_is_refused(tmp_path, new, share):
    content = arrow(new=new)
    (tmp_path / "a.arrow").write_bytes(content[: int(len(content) * share)])
    with pytest.raises(CorpusError, match=r"a.arrow (is truncated or damaged|cannot be read as arrow)"):
        read(tmp_path / "a.arrow")


def test_the_first_version_of_feather_is_refused_by_name(tmp_path):
    (tmp_path / "a.feather").write_bytes(b"FEA1" + bytes(100) + b"FEA1")
    with pytest.raises(CorpusError, match="is in version 1 of Feather"):
        read(tmp_path / "a.feather")


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", "b"], pa.string_view()),
        pa.array(["a", "b"]).dictionary_encode(),
        pa.array([b"a", b"b"]),
        pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array(["a", "b"])),
    ],
    ids=lambda values: str(values.type),
)
def test_text_in_any_type_of_arrow_is_text(tmp_path, values):
    (tmp_path / "a.arrow").write_bytes(arrow(pa.table({"id": values, "text": values})))
    assert read(tmp_path / "a.arrow") == [{"id": text, "text": text} for text in "ab"]


def test_a_value_that_cannot_be_read_costs_only_its_row(tmp_path):
    ids = pa.array([1, 2, 3, 400_000_000_000], pa.timestamp("s"))
    pq.write_table(pa.table({"id": ids, "text": pa.array([b"a", b"\xff", b"c" * 10, b"d"])}), tmp_path / "a.parquet")
    rows = [row for _, row in read_rows(tmp_path / "a.parquet", "parquet", COLUMNS, max_line=9)]
    assert [isinstance(row, Fault) for row in rows] == [False, True, True, True]
    assert [row.reason.split(" ")[-1] for row in rows[1:3]] == ["UTF-8.", "characters."]


def test_cells_of_a_workbook_are_as_they_would_stand_in_a_csv_file(tmp_path):
    path, head = tmp_path / "a.xlsx", ["id", "text", "when", "right", "share"]
    rows = [7.0, "źdźbło", datetime(2024, 5, 1, 12), True, 0.5], [None, None, None], ["8", "plain"]
    path.write_bytes(workbook(head, *rows, notes=[["id", "text"], [9, "not read"]]))
    assert list(read_rows(path, "xlsx", Columns(dict(zip(head, head, strict=True)), needed=()))) == [
        (2, {"id": "7", "text": "źdźbło", "when": "2024-05-01T12:00:00", "right": "TRUE", "share": "0.5"}),
        (4, {"id": "8", "text": "plain", "when": "", "right": "", "share": ""}),
    ]
    assert sample(path, "xlsx", TextFormat()).columns == head
