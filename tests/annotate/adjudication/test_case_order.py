"""The order of cases that a process keeps is the order of the cases that wait, whatever has happened since."""

import pytest

from annotate.kinds import Answer
from annotate.pages import case_order
from annotate.work.adjudication import discard, settle, to_adjudicate, unsettle
from tests.annotate.adjudication.acts import LIST


@pytest.fixture
def kept(monkeypatch):
    monkeypatch.setattr(case_order, "LONG", 1)
    case_order._kept.clear()
    yield case_order._kept
    case_order._kept.clear()


def orders(task, *people):
    for person in people:
        listed = [key for _, key in case_order.order(task, person)]
        assert listed == [unit.pk for unit in to_adjudicate(task, person)]
    return len(listed)


def test_it_follows_decisions_second_opinions_and_cases_that_are_taken_back(checked, ada, eve, kept):
    before = orders(checked, ada, eve)
    for unit in list(to_adjudicate(checked, ada))[:3]:
        settle(ada, unit.pk, Answer("de", "I read it"))
        orders(checked, ada, eve)
    last = to_adjudicate(checked, eve).last()
    discard(eve, last.pk, "nobody can tell")
    assert orders(checked, ada, eve) < before
    unsettle(eve, last.pk)
    orders(checked, ada, eve)
    assert set(kept) == {(checked.pk, ada.pk), (checked.pk, eve.pk)}


def test_a_list_that_lost_count_is_read_again(two_say, ada, kept):
    task = two_say("de en", "- -", "de fr")
    assert orders(task, ada) == 3
    [(key, (last, cases))] = kept.items()
    kept[key] = last, cases[1:]
    assert orders(task, ada) == 3


def test_only_the_lists_that_were_used_last_are_kept(two_say, ada, kept, monkeypatch, client):
    monkeypatch.setattr(case_order, "KEPT", 1)
    tasks = [two_say("de en", name=name) for name in ("task", "other")]
    client.force_login(ada.user)
    for task in tasks:
        assert client.get(LIST.replace("/task/", f"/{task.name}/")).status_code == 200
    assert [*kept] == [(tasks[1].pk, ada.pk)]
