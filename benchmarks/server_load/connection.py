"""A connection to a server: HTTP with cookies."""

import json
from collections.abc import Mapping
from http.client import HTTPConnection
from http.cookies import SimpleCookie
from urllib.parse import urlencode, urlsplit

TIMEOUT = 120


class Refused(Exception):
    """The error for a response of the server that rejects a request. It contains the response."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text[:200]}")
        self.status = status


class Connection:
    """A keep-alive connection. If it is lost, an exception is raised, and nothing is sent again."""

    def __init__(self, address: str, headers: Mapping[str, str] | None = None) -> None:
        self.host = urlsplit(address).netloc
        self.address = address
        self.headers = dict(headers or {})
        self.cookies: dict[str, str] = {}
        self.connection = HTTPConnection(self.host, timeout=TIMEOUT)

    def get(self, path: str) -> str:
        return self._ask("GET", path, None, {})

    def post(self, path: str, form: Mapping[str, object]) -> str:
        return self._ask("POST", path, urlencode(form), {"Content-Type": "application/x-www-form-urlencoded"})

    def post_json(self, path: str, body: Mapping[str, object]) -> str:
        return self._ask("POST", path, json.dumps(body), {"Content-Type": "application/json"})

    def close(self) -> None:
        self.connection.close()

    def _ask(self, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> str:
        sent = self.headers | headers | {"Referer": self.address}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        self.connection.request(method, path, body.encode() if body is not None else None, sent)
        response = self.connection.getresponse()
        text = response.read().decode()
        for line in response.headers.get_all("Set-Cookie", []):
            self.cookies |= {name: morsel.value for name, morsel in SimpleCookie(line).items()}
        if response.status == 302:
            return self.get(urlsplit(response.headers["Location"])._replace(scheme="", netloc="").geturl())
        if response.status >= 400:
            raise Refused(response.status, text)
        return text
