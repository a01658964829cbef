"""Acts take turns in a process of the server; what only shows something, and what managers do, goes on beside them."""

from threading import Event, Thread

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from annotate.pages.middleware import InTurnMiddleware

LONG = 60  # seconds


class Server:
    """Answers a request at /tasks/first/ only when it is told to, and others at once."""

    def __init__(self):
        self.begun, self.go_on, self.done = Event(), Event(), []
        self.ask = InTurnMiddleware(self.answer)

    def answer(self, request):
        if request.path == "/tasks/first/":
            self.begun.set()
            assert self.go_on.wait(LONG)
        self.done.append(request.path)
        return HttpResponse()


@pytest.fixture
def server():
    server = Server()
    first = Thread(target=server.ask, args=[RequestFactory().post("/tasks/first/")])
    first.start()
    assert server.begun.wait(LONG)
    yield server
    server.go_on.set()
    first.join(LONG)


def test_a_second_act_begins_when_the_first_is_done(server):
    second = Thread(target=server.ask, args=[RequestFactory().post("/tasks/second/")])
    second.start()
    server.go_on.set()
    second.join(LONG)
    assert server.done == ["/tasks/first/", "/tasks/second/"]


@pytest.mark.parametrize(("method", "path"), [("get", "/tasks/t/"), ("post", "/manage/"), ("post", "/login/")])
def test_what_is_no_act_of_an_annotator_waits_for_none(server, method, path):
    server.ask(getattr(RequestFactory(), method)(path))
    assert server.done == [path]


def test_an_act_that_fails_leaves_the_turn_to_the_next():
    def fail(request):
        raise ValueError("It failed.")

    turns = InTurnMiddleware(fail)
    for _ in range(2):
        with pytest.raises(ValueError, match="It failed"):
            turns(RequestFactory().post("/api/v1/leases/1/judge/"))
