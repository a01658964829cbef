"""Excel workbooks are read like CSV files, by every importer and by the preview of the browser."""

from datetime import datetime

import openpyxl
import pytest
from django.core.management.base import CommandError

from annotate.actions.commands import call_command
from corpora.sources.readers import Columns, read_rows, sample
from corpora.sources.text import TextFormat
from corpora.storage.layout import manifest_of


def workbook(path, *rows, further=()):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for row in further:
        book.create_sheet("notes").append(row)
    book.save(path)
    return path


def test_cells_are_as_they_would_stand_in_a_csv_file(tmp_path):
    path = workbook(
        tmp_path / "a.xlsx",
        ["id", "text", "when", "right", "share"],
        [7.0, "źdźbło", datetime(2024, 5, 1, 12), True, 0.5],
        [None, None, None],
        ["8", "plain"],
        further=[["id", "text"], [9, "not read"]],
    )
    columns = Columns({name: name for name in ("id", "text", "when", "right", "share")}, needed=())
    assert list(read_rows(path, "xlsx", columns)) == [
        (2, {"id": "7", "text": "źdźbło", "when": "2024-05-01T12:00:00", "right": "TRUE", "share": "0.5"}),
        (4, {"id": "8", "text": "plain", "when": "", "right": "", "share": ""}),
    ]
    assert sample(path, "xlsx", TextFormat()).columns == ["id", "text", "when", "right", "share"]


@pytest.mark.django_db
def test_a_workbook_is_imported_as_a_corpus(data_dir, tmp_path):
    path = workbook(tmp_path / "a.xlsx", ["id", "text"], [1, "Guten Morgen"], [2, "Buenos días"])
    call_command("import_corpus", "july", path, licence="CC0-1.0", verbosity=0)
    assert manifest_of("july").rows == 2


@pytest.mark.django_db
@pytest.mark.parametrize("content", [b"PK\3\4 no workbook", b"id,text\n1,a\n"])
def test_what_is_no_workbook_is_refused(data_dir, tmp_path, content):
    path = tmp_path / "a.xlsx"
    path.write_bytes(content)
    with pytest.raises(CommandError, match=r"truncated or damaged|cannot be read as an Excel workbook"):
        call_command("import_corpus", "july", path, licence="CC0-1.0")
