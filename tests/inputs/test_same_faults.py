"""A fault of a file is the same sentence, whichever importer meets it."""

import codecs
import gzip

import pytest

from tests.inputs import corpora
from tests.inputs.conftest import check

pytestmark = pytest.mark.django_db
# Importer -> its command, a row that is right, and the status where rows are rejected.
IMPORTERS = {
    "posts": (corpora.corpus("tsv"), "id\ttext\n", "a\tHello\n", 3),
    "threads": (corpora.threads("tsv"), "id\tparent_id\ttext\n", "a\tb\tHello\n", 3),
    "scores": (corpora.scores(), "id\tscore\n", "a\t0.5\n", 1),
    "predictions": (corpora.predictions(), "id\tlabel\n", "a\ten\n", 1),
    "run": (corpora.ranking(), "", "a Q0 1 1 0.5 s\n", 1),
    "vocabulary": (corpora.vocabulary("tsv"), "id\tlabel\n", "a\tlaw\n", 1),
}
TABLES = [name for name in IMPORTERS if name != "run"]


def met(ended, name, content, said, status=None):
    check(ended, (IMPORTERS[name][0], content, status or 1, said))


@pytest.mark.parametrize("name", IMPORTERS)
def test_a_file_as_a_whole_is_refused_alike(ended, name):
    _, header, row, _ = IMPORTERS[name]
    text = header + row
    met(ended, name, b"", "is empty")
    met(ended, name, b"\n\n", "holds no rows|first line is blank")
    met(
        ended,
        name,
        text.encode("utf-16"),
        "is not UTF-8; it looks like UTF-16. Save it as UTF-8, for example with iconv",
    )
    met(
        ended,
        name,
        gzip.compress(text.encode())[:-12],
        "is cut off or damaged.*nothing of it was imported. Fetch it again",
    )


@pytest.mark.parametrize("name", IMPORTERS)
def test_a_row_is_refused_alike(ended, name):
    _, header, row, status = IMPORTERS[name]
    latin = f"{header}{row}{row.replace('a', 'é', 1)}".encode("latin-1")
    met(ended, name, latin, "The row is not UTF-8. The file seems to be ISO-8859-1: save it as UTF-8", status)
    met(ended, name, f"{header}a\0{row}".encode(), "holds a NUL character, which databases refuse", status)


@pytest.mark.parametrize("name", TABLES)
def test_a_row_of_too_many_cells_and_a_header_nearly_right_are_refused_alike(ended, name):
    _, header, row, status = IMPORTERS[name]
    ragged = f"{header}{row.rstrip()}\tmore\n".encode()
    width = header.count("\t") + 1
    met(ended, name, ragged, f"The row has {width + 1} fields where the header has {width}", status)
    met(ended, name, (header.title() + row).encode(), "has no columns? id.*its columns are: Id, ")


@pytest.mark.parametrize("name", TABLES)
def test_a_mark_of_byte_order_is_no_fault(ended, name):
    _, header, row, _ = IMPORTERS[name]
    result = ended(IMPORTERS[name][0], codecs.BOM_UTF8 + (header + row).encode())
    assert "column" not in result.said
    assert "UTF" not in result.said
