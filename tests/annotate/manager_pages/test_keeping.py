"""Figures of large tasks are cached, and counted again in the background of the page that shows them."""

import re
import threading

import pytest

from annotate.core.refusals import InvalidAnswer
from annotate.figures import figure_cache
from annotate.kinds import Answer
from annotate.manager_pages import task_reports
from annotate.work.judgments import judge
from annotate.work.queue import take
from tests.annotate.conftest import DISPUTED
from tests.together import HANGS


def on_large_task(test):
    """Mark a test that commits, with tasks that count as large."""
    return pytest.mark.django_db(transaction=True)(pytest.mark.usefixtures("large")(test))


@pytest.fixture(autouse=True)
def figures(settings, tmp_path):
    """Use a separate folder, because other tests may run at the same time."""
    settings.CACHES = {**settings.CACHES, "figures": settings.CACHES["figures"] | {"LOCATION": tmp_path}}


@pytest.fixture
def read(make_task, person, desk):
    """read() returns the manager's page of a task with three posts; read.answer() answers one more."""
    task, ann = make_task([DISPUTED] * 3), person("ann", "de")

    def page(name=""):
        return desk.get(f"/manage/tasks/{task.name}/{name}").text

    page.task, page.client, page.ann = task, desk, ann
    page.answer = lambda: judge(ann, take(ann, task).pk, Answer("de"))
    page.void = lambda: desk.post(f"/manage/tasks/{task.name}/people/{ann.pk}/void/", {"reason": "She guessed."})
    return page


def done(text):
    return re.search(r"(\d) of 3 items settled", text)[1]


def counted(read, page=""):
    """Return the page with its figures, which a browser would request again until they are there."""
    text = read(page)
    while "Counting the figures" in text:
        wait_for_counting()
        text = read(page)
    return text


def wait_for_counting():
    for thread in threading.enumerate():
        if thread.name.startswith("counting "):
            thread.join(HANGS)
            assert not thread.is_alive()


@pytest.fixture
def large(monkeypatch):
    """Treat tasks of three units as large."""
    monkeypatch.setattr(figure_cache, "LARGE", 3)


@pytest.mark.slow
@pytest.mark.django_db
def test_figures_of_other_tasks_are_those_of_the_moment(read):
    for number in "012":
        assert done(read()) == number
        assert "Counted at" not in read()
        read.answer()


@on_large_task
def test_those_of_a_large_task_are_counted_again_once_they_are_old_or_a_manager_has_decided(read, monkeypatch):
    assert done(counted(read)) == "0"
    read.answer()
    text = read()
    assert (done(text), "Counted at" in text) == ("0", True)
    with monkeypatch.context() as aged:
        aged.setattr(figure_cache, "FRESH", 0.0)
        aged.setattr(figure_cache, "SHARE", float("inf"))
        assert done(read()) == "0"
        wait_for_counting()
        assert done(read()) == "1"
        wait_for_counting()
    read.void()
    assert done(counted(read)) == "0"


@on_large_task
def test_all_that_a_page_shows_can_be_kept(read):
    read.answer()
    for page in (
        "",
        "items/",
        "quality/",
        "pace/",
        "people/",
        "agreement/",
        "agreement/?show=1",
        f"people/{read.ann.pk}/",
    ):
        first, again = counted(read, page), read(page)
        assert "Counted at" in again, page
        assert again.count("<table") == first.count("<table"), page


@on_large_task
def test_figures_that_were_under_way_when_a_manager_decided_are_counted_again(read, monkeypatch):
    read.answer()
    begun, decided, count = threading.Event(), threading.Event(), task_reports._load_progress

    def slowly(task):
        counts = count(task)
        begun.set()
        decided.wait(HANGS)
        return counts

    monkeypatch.setattr(task_reports, "_load_progress", slowly)
    assert "Counting the figures" in read()
    assert begun.wait(HANGS)
    read.void()
    decided.set()
    assert done(counted(read)) == "0"


@on_large_task
def test_the_page_of_all_tasks_keeps_its_figures_too(read, make_task):
    read.client.get("/manage/")
    wait_for_counting()
    make_task([DISPUTED], name="another")
    text = read.client.get("/manage/").text
    assert "Counted at" in text
    assert "another" not in text


@on_large_task
def test_a_page_does_not_wait_for_figures_that_were_never_counted(read, monkeypatch):
    looked, count = threading.Event(), task_reports._load_progress
    monkeypatch.setattr(task_reports, "_load_progress", lambda task: looked.wait(HANGS) and count(task))
    first = read.client.get(f"/manage/tasks/{read.task.name}/")
    assert "Counting the figures" in first.text
    assert first["Refresh"] == "1"
    looked.set()
    wait_for_counting()
    assert done(read()) == "0"


@on_large_task
def test_whoever_asks_is_told_that_counting_failed_and_the_next_has_it_counted_again(read, monkeypatch, caplog):

    def fail(task):
        raise InvalidAnswer("Not today.")

    with monkeypatch.context() as patched:
        patched.setattr(task_reports, "_load_progress", fail)
        assert "Not today." in counted(read)
    assert done(counted(read)) == "0"
    assert "could not be computed" in caplog.text
