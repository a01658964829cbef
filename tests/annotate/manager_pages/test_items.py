"""The items of a task for managers: filters, search, pagination by an index, and the history of an item."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotate.kinds import Answer
from annotate.manager_pages import task_items
from annotate.manager_pages.task_items import Filter, Place, composition, page_of, parse_place
from annotate.models import Unit
from annotate.work.adjudication import settle
from annotate.work.judgments import judge, skip
from annotate.work.queue import take
from corpora.models import Item
from tests.annotate.acts import words
from tests.annotate.conftest import AGREED, DISPUTED


@pytest.fixture
def task(make_task, person):
    """Five disputed posts, of which one is labelled, one in adjudication and one in English, and two agreed posts."""
    task = make_task([DISPUTED, DISPUTED, DISPUTED, AGREED, ("en de", "en", "de en"), AGREED, DISPUTED], rounds=1)
    ann = person("ann", "de")
    judge(ann, take(ann, task).pk, Answer("de", comment="odd, <b>very</b>"), active_seconds=4.2)
    skip(ann, take(ann, task).pk)
    return task


def listed(task, **chosen):
    units, following = page_of(task, Filter(**chosen), None)
    assert following is None
    return [unit.position for unit, _ in units]


def address(task, unit=None):
    return f"/manage/tasks/{task.name}/items/" + (f"{unit.pk}/" if unit else "")


def test_items_are_listed_by_state_language_and_label(task, desk):
    everything = listed(task)
    assert sorted(everything) == sorted(task.units.values_list("position", flat=True))
    units = task.units.order_by("stage", "language", "position")
    assert everything == list(units.values_list("position", flat=True))
    for field, name in (("stage", "state"), ("language", "language"), ("label", "label")):
        for value in set(task.units.values_list(field, flat=True)) - {""}:
            expected = units.filter(**{field: value}).values_list("position", flat=True)
            assert listed(task, **{name: value}) == list(expected), (name, value)
    page = words(desk.get(address(task), {"state": "LABELLED"}))
    assert ("1 answer" in page, "0 answers" in page, "No items match" in page) == (True, False, False)
    assert "No items match" in words(desk.get(address(task), {"state": "LABELLED", "label": "fr"}))
    assert desk.get(address(task), {"language": "\0", "after": "QUEUED.\0.1.1"}).status_code == 200


def test_an_item_is_found_by_its_id_and_by_words_of_its_text(task):
    item = task.units.last().item
    item.text = "Eine SELTENE Sache"
    item.save()
    assert listed(task, words="seltene") == listed(task, words=item.key) == [task.units.last().position]
    assert listed(task, words="nothing like it") == []


def test_the_item_with_the_id_comes_first_and_once_however_many_texts_have_the_words(task, monkeypatch):
    monkeypatch.setattr(task_items, "ON_A_PAGE", 2)
    last = task.units.order_by(*Place._fields).last()
    Item.objects.update(text=f"About {last.item.key}")
    first, after = page_of(task, Filter(words=last.item.key), None)
    assert (len(first), first[0][0]) == (3, last)
    assert last not in [unit for unit, _ in page_of(task, Filter(words=last.item.key), after)[0]]


@pytest.mark.parametrize("chosen", [{}, {"state": "QUEUED"}, {"words": "post"}])
def test_pages_go_through_all_items_once(task, monkeypatch, chosen):
    Item.objects.update(text="A post.")
    whole = listed(task, **chosen)
    monkeypatch.setattr(task_items, "ON_A_PAGE", 2)
    monkeypatch.setattr(task_items, "SCANNED", 3)
    seen, after = [], None
    while True:
        units, after = page_of(task, Filter(**chosen), after)
        seen += [unit.position for unit, _ in units]
        if after is None:
            break
        assert parse_place(str(after)) == after
        assert len(seen) < 20
    assert seen == whole


def test_a_search_reads_so_many_items_and_goes_on(task, monkeypatch, desk):
    monkeypatch.setattr(task_items, "SCANNED", 2)
    page = desk.get(address(task), {"words": "nothing like it"})
    assert "None of the items searched so far matches." in page.text
    assert "Continue the search" in page.text


def test_a_page_takes_as_many_statements_for_many_items_and_goes_by_the_index(make_task, desk):
    few, many = make_task([DISPUTED] * 2, name="few"), make_task([DISPUTED] * 29 + [AGREED], name="many")
    counts = []
    desk.get(address(few))
    for task in (few, many):
        with CaptureQueriesContext(connection) as queries:
            assert desk.get(address(task)).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 14
    if connection.vendor == "sqlite":
        place = Place("QUEUED", "de", 3, 3)
        with CaptureQueriesContext(connection) as queries:
            list(task_items._places(many.units.work(), place, 5))
        plans = [str(connection.cursor().execute(f"EXPLAIN QUERY PLAN {query['sql']}").fetchall()) for query in queries]
        assert all("USING INDEX queue" in plan or "USING INTEGER PRIMARY KEY" in plan for plan in plans), plans


def test_the_labels_are_counted_and_led_to(task, desk):
    counts = composition(task)
    assert counts["labels"] == {"de": 3}
    assert counts["labelled"] == 3
    assert counts["states"].total() == 7
    page = desk.get(address(task))
    assert "German 3 100.0%" in words(page)
    assert 'value="3" max="3"' in page.text
    assert '<a href="?label=de">German</a>' in page.text


def test_an_items_page_tells_its_votes_and_all_that_happened(task, desk, person):
    unit = task.units.get(stage="LABELLED")
    page = desk.get(address(task, unit))
    shown = words(page)
    assert re.search(r"ann answered German odd, <b>very</b> [\d.]+ s", shown)
    assert "readers of the most likely language are asked" in shown
    assert unit.item.text in shown
    assert all(voter in shown for voter in unit.item.votes)
    skipped = task.units.get(stage="ADJUDICATION")
    settle(person("ada", adjudicates=True), skipped.pk, Answer("de", "I read it"))
    shown = words(desk.get(address(task, skipped)))
    assert re.search(r"ann skipped .*ada decided German I read it", shown)
    assert desk.get(f"{address(task)}0/").status_code == 404


def test_what_may_hurt_is_shown_when_it_is_asked_for(task, desk):
    unit = task.units.get(stage="LABELLED")
    Unit.objects.filter(pk=unit.pk).update(disturbing=True)
    assert unit.item.text not in desk.get(address(task), {"state": "LABELLED"}).text
    page = desk.get(address(task, unit)).text
    assert page.index("<summary") < page.index(unit.item.text)
