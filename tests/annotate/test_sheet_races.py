"""Several sheets begun at the same moment, in threads with their own connections."""

import pytest

from annotate.models import Lease
from annotate.work.queue import SHEET, take_sheet
from tests.annotate.conftest import AGREED
from tests.together import at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases]


def test_each_of_several_who_begin_at_once_has_a_whole_sheet(make_task, person):
    people = [person(f"reader{number}", "de") for number in range(6)]
    task = make_task([AGREED] * (SHEET * len(people)), asked="de")
    sheets = at_once(*(lambda annotator=annotator: take_sheet(annotator, task) for annotator in people))
    assert [len(sheet) for sheet in sheets] == [SHEET] * len(people), sheets
    assert len({lease.unit_id for sheet in sheets for lease in sheet}) == SHEET * len(people)


def test_two_tabs_show_the_same_sheet_and_all_of_it(make_task, person):
    ann = person("ann", "de")
    task = make_task([AGREED] * (3 * SHEET), asked="de")
    first, *others = at_once(*[lambda: take_sheet(ann, task)] * 4)
    assert len(first) == SHEET
    assert others == [first] * 3
    assert Lease.objects.count() == SHEET
