"""Simulated people who use the server: readers through the API, an adjudicator through the pages. Only HTTP is used."""

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.client import HTTPConnection, HTTPException
from http.cookies import SimpleCookie
from urllib.parse import urlencode, urlsplit

from benchmarks.place import BenchmarkFailed
from benchmarks.world import Answer, Reader, key_of

TIMEOUT = 120


@dataclass
class Log:
    """A log of requests and responses, shared by threads."""

    statuses: Counter[int] = field(default_factory=Counter)
    # (key of the text, kind, label, reason, comment) of everything that the server has acknowledged
    acknowledged: list[tuple[str, str, str, str, str]] = field(default_factory=list)
    # of each request
    latencies: list[float] = field(default_factory=list)
    # of the whole work
    seconds: float = 0.0
    start: float = 0.0
    # when each judgment was acknowledged, on the clock of `start`
    times: list[float] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, status: int, seconds: float) -> None:
        with self._lock:
            self.statuses[status] += 1
            self.latencies.append(seconds)

    def acknowledge(self, key: str, kind: str, label: str, reason: str, comment: str) -> None:
        with self._lock:
            self.acknowledged.append((key, kind, label, reason, comment))
            self.times.append(time.monotonic())

    @property
    def failures(self) -> int:
        return sum(count for status, count in self.statuses.items() if status >= 500)

    def kinds(self) -> Counter[str]:
        return Counter(kind for _, kind, *_ in self.acknowledged)


class Client:
    """A keep-alive connection."""

    def __init__(self, address: str, log: Log) -> None:
        self.host = urlsplit(address).netloc
        self.connection = HTTPConnection(self.host, timeout=TIMEOUT)
        self.log = log

    def close(self) -> None:
        self.connection.close()

    def ask(self, method: str, path: str, body: str | None, headers: Mapping[str, str]):
        """Return (status, headers, text). Repeat the request if the connection was lost, as the API permits."""
        data = None if body is None else body.encode()
        for attempt in range(3):
            start = time.monotonic()
            try:
                self.connection.request(method, path, data, dict(headers))
                response = self.connection.getresponse()
                text = response.read().decode()
                self.log.note(response.status, time.monotonic() - start)
                return response.status, response.headers, text
            except (HTTPException, ConnectionError) as error:
                self.connection.close()
                if attempt == 2:
                    raise BenchmarkFailed(
                        f"{method} {path}: the connection to the server was lost ({error!r})."
                    ) from error
        raise AssertionError


class ApiClient(Client):
    """A program that annotates on behalf of a reader."""

    def __init__(self, address: str, log: Log, token: str) -> None:
        super().__init__(address, log)
        self.headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}

    def post(self, path: str, **body: object) -> dict:
        status, _, text = self.ask("POST", f"/api/v1/{path}", json.dumps(body), self.headers)
        if status != 200:
            raise BenchmarkFailed(f"POST /api/v1/{path} was answered {status}: {text[:300]}")
        return json.loads(text)


class Shift:
    """Readers who work until no units are left."""

    def __init__(self, readers: int) -> None:
        self.readers = readers
        # idle: readers who asked since the last call and wait; answers: since all were idle.
        self.idle = self.calls = self.answers = 0
        self.over = False
        self.changed = threading.Condition()

    def answered(self, *, skipped: bool) -> None:
        with self.changed:
            self.answers += 1
            if skipped:
                self._call()

    def _call(self) -> None:
        self.calls += 1
        self.idle = 0
        self.changed.notify_all()

    def wait(self, seen: int) -> bool:
        """Return whether to ask again. seen: the calls before the reader last asked."""
        with self.changed:
            if self.calls == seen:
                self.idle += 1
            if self.idle == self.readers:
                self.over = not self.answers
                self.answers = 0
                self._call()
            self.changed.wait_for(lambda: self.over or self.calls > seen)
            return not self.over

    def stop(self) -> None:
        with self.changed:
            self.over = True
            self.changed.notify_all()


Decide = Callable[[Reader, str], Answer]
Decision = Callable[[str, str, Mapping[str, bool]], Answer]


def read_on(client: ApiClient, reader: Reader, task: str, decide: Decide, shift: Shift, pause: float) -> None:
    """Do the work of one reader: take a unit, then answer or skip it."""
    while not shift.over:
        seen = shift.calls
        lease = client.post(f"tasks/{task}/next/")["lease"]
        if lease is None:
            if shift.wait(seen):
                time.sleep(pause)
            continue
        key = key_of(lease["text"])
        answer = decide(reader, key)
        if answer.label is None:
            judgment = client.post(f"leases/{lease['id']}/skip/", active_seconds=1.5)
        else:
            judgment = client.post(
                f"leases/{lease['id']}/judge/",
                label=answer.label,
                reason=answer.reason,
                comment=answer.comment,
                active_seconds=2.5,
            )
        shift.answered(skipped=answer.label is None)
        fields = tuple(judgment[name] or "" for name in ("kind", "label", "reason", "comment"))
        client.log.acknowledge(key, *fields)


def let_read(address: str, task: str, readers: Mapping[Reader, str], decide: Decide, log: Log, pause: float) -> None:
    """Run all readers at the same time, each with a connection and token, until no units are left."""
    shift = Shift(len(readers))

    def work(reader: Reader, token: str) -> None:
        client = ApiClient(address, log, token)
        try:
            read_on(client, reader, task, decide, shift, pause)
        except BaseException:
            shift.stop()
            raise
        finally:
            client.close()

    log.start = time.monotonic()
    with ThreadPoolExecutor(len(readers)) as pool:
        done = [pool.submit(work, reader, token) for reader, token in readers.items()]
    log.seconds = time.monotonic() - log.start
    for future in done:
        future.result()


class Page(HTMLParser):
    """The parts of an adjudication page: the post, links, buttons, other languages, and the form's token."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.token = ""
        self.links: list[str] = []
        self.buttons: list[str] = []
        self.options: list[str] = []
        self.post = ""
        self._in_post = self._in_other = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag == "input" and attributes.get("name") == "csrfmiddlewaretoken":
            self.token = attributes["value"]
        elif tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        elif tag == "button" and attributes.get("name") == "label":
            self.buttons.append(attributes["value"])
        elif tag == "select":
            self._in_other = attributes.get("name") == "other"
        elif tag == "option" and self._in_other and attributes.get("value"):
            self.options.append(attributes["value"])
        elif tag == "article":
            self._in_post = True
        elif tag == "p" and self._in_post:
            self.post += "\n"

    def handle_endtag(self, tag):
        if tag == "article":
            self._in_post = False

    def handle_data(self, data):
        if self._in_post:
            self.post += data


class Browser(Client):
    """A person with a browser that supports cookies, forms and redirects."""

    def __init__(self, address: str, log: Log) -> None:
        super().__init__(address, log)
        self.cookies: dict[str, str] = {}
        self.path = "/"
        self.page = Page("")

    def open(self, path: str, form: Mapping[str, str] | None = None) -> Page:
        """GET a page, or POST a form with the token of the page that is open; follows redirects."""
        method, body = "GET", None
        if form is not None:
            method, body = "POST", urlencode({"csrfmiddlewaretoken": self.page.token, **form})
        for _ in range(5):
            headers = {
                "Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items()),
                "Referer": f"http://{self.host}{self.path}",
            }
            if body is not None:
                headers["Content-Type"] = "application/x-www-form-urlencoded"
            status, answer, text = self.ask(method, path, body, headers)
            for line in answer.get_all("Set-Cookie", []):
                self.cookies.update({name: morsel.value for name, morsel in SimpleCookie(line).items()})
            self.path = path
            if status == 302:
                method, path, body = "GET", answer["Location"], None
                continue
            if status != 200:
                raise BenchmarkFailed(f"{method} {path} was answered {status}: {text[:300]}")
            self.page = Page(text)
            return self.page
        raise BenchmarkFailed(f"{path} goes round in circles.")

    def accept_invite(self, path: str, password: str) -> None:
        self.open(path)
        self.open(path, {"new_password1": password, "new_password2": password})
        self.cookies.clear()

    def log_in(self, username: str, password: str) -> None:
        self.open("/login/")
        self.open("/login/", {"username": username, "password": password, "next": ""})
        if "sessionid" not in self.cookies:
            raise BenchmarkFailed(f"{username} could not log in.")


def adjudicate(browser: Browser, task: str, name: str, decide: Decision) -> None:
    """Work through the adjudication list page by page until it is empty."""
    browser.log_in(name, password=f"{name} has a long password")
    list_path = f"/tasks/{task}/adjudication/"
    dossier = re.compile(re.escape(list_path) + r"\d+/(\?.*)?")
    browser.log.start = time.monotonic()
    while link := _first_waiting(browser, list_path):
        path = link
        # Each decision goes on to the next post by a redirect, and in the end back to the list.
        while dossier.fullmatch(path):
            page = browser.page if browser.path == path else browser.open(path)
            key = key_of(page.post)
            offered = dict.fromkeys(page.options, False) | dict.fromkeys(page.buttons, True)
            decision = decide(name, key, offered)
            form = {"reason": decision.reason, "comment": decision.comment, "other": ""}
            if decision.label is None:
                form["discard"] = "1"
            elif decision.label not in offered:
                raise BenchmarkFailed(f"The label {decision.label} is not available on {path}.")
            else:
                form["label" if offered[decision.label] else "other"] = decision.label
            browser.open(path, form)
            kind = "discard" if decision.label is None else "settle"
            browser.log.acknowledge(key, kind, decision.label or "", decision.reason, decision.comment)
            path = browser.path
    browser.log.seconds = time.monotonic() - browser.log.start


def _first_waiting(browser: Browser, list_path: str) -> str | None:
    """Return the first link of the list, or None if it is a past decision. These are listed below the waiting cases."""
    page = browser.open(list_path)
    for link in page.links:
        if re.fullmatch(re.escape(list_path) + r"\d+/", link):
            return link if browser.open(link).buttons else None
    return None
