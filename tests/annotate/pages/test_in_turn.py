"""Actions take turns in a server process, and only a few may wait. Views and managers' actions run beside them."""

import json
from contextlib import contextmanager
from threading import Event, Thread

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from annotate.pages import middleware
from annotate.pages.middleware import InTurnMiddleware
from tests.together import HANGS, until


class Server:
    """A server that answers requests at /tasks/first/ only when it is released, and all others at once."""

    def __init__(self):
        self.begun, self.go_on, self.done = Event(), Event(), []
        self.ask = InTurnMiddleware(self.answer)

    def answer(self, request):
        if request.path == "/tasks/first/":
            self.begun.set()
            assert self.go_on.wait(HANGS)
        self.done.append(request.path)
        return HttpResponse()


@contextmanager
def beginning(server):
    """A first action that is running until the end of the block, or until `go_on`."""
    first = Thread(target=server.ask, args=[RequestFactory().post("/tasks/first/")])
    first.start()
    assert server.begun.wait(HANGS)
    yield
    server.go_on.set()
    first.join(HANGS)


@pytest.fixture
def server():
    server = Server()
    with beginning(server):
        yield server


def test_a_second_act_begins_when_the_first_is_done(server):
    second = Thread(target=server.ask, args=[RequestFactory().post("/tasks/second/")])
    second.start()
    server.go_on.set()
    second.join(HANGS)
    assert server.done == ["/tasks/first/", "/tasks/second/"]


def test_what_is_no_act_of_an_annotator_waits_for_none(server):
    for method, path in (("get", "/tasks/t/"), ("post", "/manage/"), ("post", "/login/")):
        server.ask(getattr(RequestFactory(), method)(path))
        assert server.done[-1] == path


def test_an_act_that_fails_leaves_the_turn_to_the_next():
    def fail(request):
        raise ValueError("It failed.")

    turns = InTurnMiddleware(fail)
    for _ in range(2):
        with pytest.raises(ValueError, match="It failed"):
            turns(RequestFactory().post("/api/v1/leases/1/judge/"))


@pytest.fixture
def full(monkeypatch):
    """A server with one place, which is taken."""
    monkeypatch.setattr(middleware, "AT_ONCE", 1)
    server = Server()
    with beginning(server):
        yield server


def test_an_act_or_a_form_for_which_there_is_no_room_is_refused_at_once_and_not_done_and_pages_are_read(full):
    refused = full.ask(RequestFactory().post("/api/v1/leases/1/judge/"))
    assert (refused.status_code, refused["Retry-After"]) == (503, "5")
    assert json.loads(refused.content)["code"] == "busy"
    form = full.ask(RequestFactory().post("/login/", headers={"Accept-Language": "de"}))
    assert (form.status_code, form["Retry-After"]) == (503, "5")
    assert "Gehen Sie zurück" in form.text  # in the person's language
    assert full.done == []
    full.ask(RequestFactory().get("/tasks/t/"))
    assert full.done == ["/tasks/t/"]


def test_who_is_done_makes_room(full):
    full.go_on.set()
    until(lambda: full.done)
    until(lambda: full.ask(RequestFactory().post("/tasks/second/")).status_code == 200)
