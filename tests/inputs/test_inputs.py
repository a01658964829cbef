"""Every row of the tables holds: the sentence, the exit status, no traceback, and nothing left half-done."""

from collections import Counter
from pathlib import Path

import pytest

from annotate.actions.registry import MODULES
from tests.inputs import corpora, measuring, tasks
from tests.inputs.conftest import check

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
TABLE = [*corpora.TABLE, *tasks.TABLE, *measuring.TABLE]


@pytest.mark.parametrize("row", TABLE, ids=[f"{number}-{row[0][:30]}" for number, row in enumerate(TABLE)])
def test_what_is_careless_or_hostile_gets_a_sentence_and_a_status(ended, row):
    check(ended, row)


def test_every_command_has_rows():
    rows = Counter(row[0].split()[0] for row in TABLE)
    assert rows.keys() == MODULES.keys()


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
