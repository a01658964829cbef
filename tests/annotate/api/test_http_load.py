"""Thirty-two people at once over HTTP, by forms without JavaScript: a server of two processes, or three servers."""

import http.cookiejar
import os
import re
import select
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from itertools import cycle
from pathlib import Path
from urllib.parse import urlencode

import pytest
from django.conf import settings as django_settings
from django.db import connection, transaction

from annotate.core import stages
from annotate.models import Judgment
from deploy.thread_worker import HEADER_SECONDS
from tests.annotate.conftest import DISPUTED
from tests.together import HANGS, until, waiting_for_locks

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases, pytest.mark.slow]

PEOPLE, EACH = 32, 3
ESTABLISHED = "01"  # of /proc/net/tcp: by the server, too
CHEAP = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def database_url():
    name = connection.settings_dict["NAME"]
    if connection.vendor == "sqlite":
        return f"sqlite:///{name}"
    return f"{os.environ['DATABASE_URL'].rpartition('/')[0]}/{name}"


@pytest.fixture
def may_log():
    """Not empty if the server may log. Tests that send invalid requests append to it."""
    return []


@contextmanager
def serving(settings, tmp_path, may_log, *, workers=2):
    """gunicorn as in production, with four threads per process. Yields its address; checks its log at the end."""
    settings.PASSWORD_HASHERS = CHEAP
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "load_settings.py").write_text(f"from deploy.settings import *\nPASSWORD_HASHERS = {CHEAP}\n")
    environment = os.environ | {
        "DATABASE_URL": database_url(),
        "ASSAY_DATA_DIR": str(settings.DATA_DIR),
        "DJANGO_SETTINGS_MODULE": "load_settings",
        "PYTHONPATH": str(tmp_path),
    }
    log = tmp_path / "log"
    with socket.socket() as listening, open(log, "wb") as output:
        listening.bind(("127.0.0.1", 0))
        listening.listen(128)
        fd = listening.fileno()
        options = [f"--bind=fd://{fd}", f"--workers={workers}", "--threads=4"]
        process = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", "--config=python:deploy.server", *options],
            cwd=django_settings.BASE_DIR,
            env=environment,
            pass_fds=[fd],
            stdout=output,
            stderr=output,
        )
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            process.terminate()
            process.wait(HANGS)
    assert may_log or log.read_text() == ""
    assert "Traceback" not in log.read_text()


@pytest.fixture
def server(settings, tmp_path, db, may_log):
    with serving(settings, tmp_path, may_log) as address:
        yield address


@pytest.fixture
def three_servers(settings, tmp_path, db, may_log):
    """Three single-process servers with one database and one data folder, like three machines behind a proxy."""
    with ExitStack() as stack:
        folders = [tmp_path / f"server{number}" for number in range(3)]
        yield [stack.enter_context(serving(settings, folder, may_log, workers=1)) for folder in folders]


class Visitor:
    """A browser without JavaScript: cookies, forms, redirects. Counts the statuses of all answers.

    address: a server's, or a list of several, which get the requests in turn
    """

    def __init__(self, address, statuses):
        self.addresses, self.statuses = cycle([address] if isinstance(address, str) else address), statuses
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        # no proxy of the environment
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies)

    def send(self, path, data=None, **headers):
        request = urllib.request.Request(next(self.addresses) + path, data, headers)
        try:
            with self.opener.open(request, timeout=HANGS) as response:
                self.statuses[response.status] += 1
                return response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                self.statuses[error.code] += 1
                raise AssertionError(f"{path}: {error.code} {error.read().decode()[:2000]}") from None

    def submit(self, page, path, **fields):
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)[1]
        return self.send(path, urlencode({"csrfmiddlewaretoken": token, **fields}).encode())


def by_pages(address, statuses, username):
    """Log in and answer posts by forms; return the answers by text."""
    visitor = Visitor(address, statuses)
    home = visitor.submit(visitor.send("/login/"), "/login/?next=/", username=username, password="a long password")
    assert "waiting in your languages" in home
    page = visitor.submit(home, "/tasks/task/start/", read="1")
    answers = {}
    for number in range(EACH):
        text, lease = shown(page)
        answer = "und" if number % 2 else "de"
        page = visitor.submit(page, "/tasks/task/judge/", lease=lease, answer=answer, active_ms="1200")
        answers[text] = answer
    assert f"<b>{EACH}</b> answered" in page
    visitor.submit(page, "/tasks/task/pause/")
    return answers


def shown(page):
    return re.search(r'<p dir="auto">(.*?)</p>', page)[1], re.search(r'name="lease" value="(\d+)"', page)[1]


@pytest.mark.parametrize(
    "servers",
    [
        pytest.param("server", id="of one server"),
        pytest.param("three_servers", id="of three servers in turn", marks=pytest.mark.postgres_only),
    ],
)
def test_thirty_two_people_at_once_lose_nothing_and_only_what_was_acknowledged_is_stored(
    request, make_task, person, servers
):
    server = request.getfixturevalue(servers)
    # After an answer the page has the next unit open, so there is one more for each.
    task = make_task([DISPUTED] * (PEOPLE * (EACH + 1)))
    people, statuses = [person(f"reader{number}", "de en") for number in range(PEOPLE)], Counter()
    with ThreadPoolExecutor(PEOPLE) as threads:
        working = {who.pk: threads.submit(by_pages, server, statuses, who.user.username) for who in people}
        acknowledged = {who: work.result(HANGS) for who, work in working.items()}
    assert set(statuses) == {200}

    stored = {annotator.pk: {} for annotator in people}
    for judgment in Judgment.objects.select_related("unit__item"):
        assert judgment.voided_at is None
        stored[judgment.annotator_id][judgment.unit.item.text] = judgment.label
    assert stored == acknowledged
    assert Judgment.objects.count() == PEOPLE * EACH
    assert task.units.filter(stage=stages.LABELLED).count() == PEOPLE * EACH


@pytest.mark.sqlite_only
def test_pages_are_read_while_more_people_wait_to_write_than_the_server_has_threads_for_reading(server, person):
    """As while a command opens a large task. The server has eight threads."""
    names = [person(f"reader{number}", "de en").user.username for number in range(12)]
    visitors = [Visitor(server, Counter()) for _ in names]
    pages = [visitor.send("/login/") for visitor in visitors]

    def log_in(visitor, page, name):
        return lambda: visitor.submit(page, "/login/?next=/", username=name, password="a long password")

    with ThreadPoolExecutor(len(names)) as waiting:
        with transaction.atomic():
            homes = [waiting.submit(log_in(*visit)) for visit in zip(visitors, pages, names, strict=True)]
            until(lambda: waiting_for_locks() == len(names))
            assert "csrfmiddlewaretoken" in Visitor(server, Counter()).send("/login/")
        assert all("reader" in home.result(HANGS) for home in homes)


def test_a_connection_that_says_nothing_takes_no_thread(server):
    """Browsers open some in advance. Linux keeps those, and no process gets them."""
    port = int(server.rpartition(":")[2])
    Visitor(server, Counter()).send("/login/")
    with slow_connections(server, "", 16) as silent:
        Visitor(server, Counter()).send("/login/")
        theirs = {f"{connected.getsockname()[1]:04X}" for connected in silent}
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        at_the_server = [row for row in rows if row[1].endswith(f":{port:04X}") and row[2].rpartition(":")[2] in theirs]
        assert [row for row in at_the_server if row[3] == ESTABLISHED] == []


FORM = "POST /login/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
UPLOAD = FORM.replace("application/x-www-form-urlencoded", "multipart/form-data; boundary=x")
PARTS = {
    "a header": "GET /login/ HTTP/1.1\r\nHost: localhost\r\nX-Long: a",
    "a form": f"{FORM}Content-Length: 500\r\n\r\na",
    "an upload": f"{UPLOAD}Content-Length: 50000000\r\n\r\n--x",
    "an upload in chunks": f"{UPLOAD}Transfer-Encoding: chunked\r\n\r\n5\r\n--",
}


@contextmanager
def slow_connections(address, part, number=40):
    port = int(address.rpartition(":")[2])
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(number)]
        for connection in opened:
            connection.sendall(part.encode())
        yield opened


def test_forty_connections_that_send_a_part_of_a_request_keep_nobody_waiting(server, make_task, person, may_log):
    may_log.append("an upload that breaks off")
    make_task([DISPUTED] * ((EACH + 1) * len(PARTS)))
    for name, part in PARTS.items():
        username = person(name.replace(" ", "_"), "de en").user.username
        statuses, began = Counter(), time.monotonic()
        with slow_connections(server, part) as opened:
            assert len(by_pages(server, statuses, username)) == EACH
            if "chunks" not in name:  # of which Django reads nothing
                are_open = not any(select.select(opened, [], [], 0))
                assert are_open or time.monotonic() - began > HEADER_SECONDS, name
        assert set(statuses) == {200}, name


def test_a_form_that_arrives_in_parts_is_read_to_its_end(server, person):
    """For each place where a packet may end."""
    person("ann", "de en")
    visitor = Visitor(server, Counter())
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', visitor.send("/login/"))[1]
    [cookies] = [handler.cookiejar for handler in visitor.opener.handlers if hasattr(handler, "cookiejar")]
    cookie = next(cookie.value for cookie in cookies if cookie.name == "csrftoken")
    body = urlencode({"csrfmiddlewaretoken": token, "username": "ann", "password": "a long password"})
    head = f"{FORM}Cookie: csrftoken={cookie}\r\nContent-Length: {len(body)}\r\n\r\n"
    sent = (head + body).encode()
    for place in (1, len(head) - 3, len(head) - 1, len(head), len(head) + 1, len(sent) - 1):
        with slow_connections(server, sent[:place].decode(), 1) as [connected]:
            Visitor(server, Counter()).send("/login/")  # by now it has been read
            connected.sendall(sent[place:])
            assert connected.makefile("rb").readline() == b"HTTP/1.1 302 Found\r\n"


def test_what_is_no_request_is_answered_or_closed_and_not_waited_for(server, may_log):
    may_log.append("what is refused")
    for sent, status in (
        ("GET /login/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef", b"400"),
        ("GET /login/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: +5\r\n\r\n", b"400"),
        ("POST /login/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000\r\n\r\n" + "a" * 9, b"403"),
        (f"{FORM}Expect: 100-continue\r\nContent-Length: 500\r\n\r\n", b"100"),
    ):
        with slow_connections(server, sent, 1) as [connected]:
            assert connected.makefile("rb").readline().split()[1] == status, sent[:80]
    # A header that does not end, sent too slowly or too long.
    for sent in (PARTS["a header"], PARTS["a header"] + "a" * 150_000):
        with slow_connections(server, sent, 1) as [connected]:
            connected.settimeout(HANGS)
            with suppress(ConnectionResetError):
                assert connected.recv(1) == b""
