"""Every row of the tables holds: the message, the exit status, no traceback, and no leftovers. The same fault of a file
has the same message in all importers.
"""

import codecs
import gzip
from collections import Counter
from pathlib import Path

import pytest

from annotate.actions.registry import MODULES
from tests.inputs import corpora, measuring, tasks
from tests.inputs.conftest import check

pytestmark = pytest.mark.django_db
TABLE = [*corpora.TABLE, *tasks.TABLE, *measuring.TABLE]


@pytest.mark.slow
@pytest.mark.parametrize("row", TABLE, ids=[f"{number}-{row[0][:30]}" for number, row in enumerate(TABLE)])
def test_what_is_careless_or_hostile_gets_a_sentence_and_a_status(ended, row):
    check(ended, row)


def test_every_command_has_rows():
    rows = Counter(row[0].split()[0] for row in TABLE)
    assert rows.keys() == MODULES.keys()


@pytest.mark.slow
def test_nothing_of_a_folder_that_is_somebody_elses_is_touched(ended):
    mine = Path("mine")
    measuring.foreign(mine)
    for row in (
        (measuring.gold().replace("--out new", "--out mine"), measuring.GOLD.encode()),
        (measuring.evaluate("--out mine"), measuring.predicted("en")),
        ("export_gold posts --out mine", None),
    ):
        check(ended, (*row, 1, "mine is not empty and does not contain the"))
    assert (mine / "thesis.tex").read_text() == "years of work"


# --- the same fault in every importer

# Importer -> its command, a valid row, and the exit status if rows are rejected.
IMPORTERS = {
    "posts": (corpora.corpus("tsv"), "id\ttext\n", "a\tHello\n", 3),
    "threads": (corpora.threads("tsv"), "id\tparent_id\ttext\n", "a\tb\tHello\n", 3),
    "scores": (corpora.scores(), "id\tscore\n", "a\t0.5\n", 1),
    "predictions": (corpora.predictions(), "id\tlabel\n", "a\ten\n", 1),
    "run": (corpora.ranking(), "", "a Q0 1 1 0.5 s\n", 1),
    "vocabulary": (corpora.vocabulary("tsv"), "id\tlabel\n", "a\tlaw\n", 1),
}
TABLES = [name for name in IMPORTERS if name != "run"]
RECOGNIZING = [name for name in TABLES if name != "vocabulary"]


@pytest.mark.parametrize("name", IMPORTERS)
def test_a_file_as_a_whole_and_a_row_are_refused_alike(ended, name):
    command, header, row, status = IMPORTERS[name]
    text = header + row
    for content, code, sentence in (
        (b"", 1, "is empty"),
        (b"\n\n", 1, "(contains|holds) no rows|is blank"),
        (gzip.compress(text.encode())[:-12], 1, "is truncated or damaged.*nothing was imported. Download it again"),
        (f"{header}a\0{row}".encode(), status, "contains a NUL character, which databases cannot store"),
    ):
        check(ended, (command, content, code, sentence))


@pytest.mark.parametrize("name", IMPORTERS)
def test_another_encoding_is_recognized_or_refused_with_what_to_do(ended, name):
    command, header, row, _ = IMPORTERS[name]
    text = header + row
    latin = f"{text}{row.replace('a', 'é', 1)}".encode("latin-1")
    assert "UTF" not in ended(command, text.encode("utf-16")).output.replace("was read as UTF-16", "")
    if name in RECOGNIZING:
        assert "Save it as UTF-8" not in ended(command, latin).output
    else:
        sentence = "The row is not UTF-8. The file seems to be WINDOWS-1252. Save it as UTF-8"
        check(ended, (command, latin, 1, sentence))


@pytest.mark.parametrize("name", TABLES)
def test_a_row_of_too_many_cells_and_a_header_nearly_right_are_refused_alike(ended, name):
    command, header, row, status = IMPORTERS[name]
    ragged = f"{header}{row.rstrip()}\tmore\n".encode()
    width = header.count("\t") + 1
    check(ended, (command, ragged, status, f"The row has {width + 1} fields, but the header has {width}"))
    check(ended, (command, (header.title() + row).encode(), 1, "has no columns? id.*Its columns are: Id, "))
    # A byte order mark is not a fault.
    result = ended(command, codecs.BOM_UTF8 + (header + row).encode())
    assert "column" not in result.output
    assert "UTF" not in result.output
