"""How a person answers and receives the next unit, as the page or API of each tool does it."""

import json
import random
import re
from collections.abc import Callable
from typing import Any, Protocol

from benchmarks.server_load.connection import Connection, Refused


class Person(Protocol):
    connection: Connection

    def begin(self) -> str | None:
        """Log in and take the first unit. Return the unit, or None if there is none."""

    def answer(self) -> str | None:
        """Answer the unit and take the next. Return the next unit, or None if there is none."""


class ByApi:
    """A program with a token. One request answers a unit and takes the next."""

    def __init__(self, address: str, task: str, token: str, label: str) -> None:
        self.connection = Connection(address, {"Authorization": f"Token {token}"})
        self.task, self.label, self.first_word = task, label, ""
        self.lease = 0

    def begin(self) -> str | None:
        return self._taken(json.loads(self.connection.post_json(f"/api/v1/tasks/{self.task}/next/", {})))

    def answer(self) -> str | None:
        body = {"label": self.label or self.first_word, "active_seconds": 2, "take_next": True}
        return self._taken(json.loads(self.connection.post_json(f"/api/v1/leases/{self.lease}/judge/", body))["next"])

    def _taken(self, response: dict[str, Any]) -> str | None:
        if response["lease"] is None:
            return None
        self.lease, text = response["lease"]["id"], str(response["lease"]["text"])
        self.first_word = text.partition(":")[0]
        return text


class ByPage:
    """A reader with a session. One request answers a unit and returns the next."""

    def __init__(self, address: str, task: str, name: str, password: str, label: str) -> None:
        self.connection = Connection(address)
        self.task, self.name, self.password, self.label, self.first_word = task, name, password, label, ""
        self.lease = ""

    def begin(self) -> str | None:
        page = self.connection.get("/login/")
        form = {"csrfmiddlewaretoken": _token(page), "username": self.name, "password": self.password, "next": ""}
        self.connection.post("/login/", form)
        page = self.connection.get(f"/tasks/{self.task}/")
        self.connection.headers |= {"HX-Request": "true", "X-CSRFToken": _token(page)}
        page = self.connection.post(f"/tasks/{self.task}/start/", {"read": "1"})
        self.connection.headers |= has_already(page)
        return self._shown(page)

    def answer(self) -> str | None:
        form = {"lease": self.lease, "answer": self.label or self.first_word, "active_ms": 2_000}
        return self._shown(self.connection.post(f"/tasks/{self.task}/judge/", form))

    def _shown(self, page: str) -> str | None:
        lease = re.search(r'name="lease" value="(\d+)"', page)
        if lease is None:
            return None
        self.lease = lease[1]
        article = re.search(r"<article.*?</article>", page, re.DOTALL)
        text = " ".join(re.sub(r"<[^>]*>", " ", article[0]).split()) if article else ""
        self.first_word = text.partition(":")[0]
        return text or None


class AtDoccano:
    """An annotator of a text classification project in doccano, with the requests that its page needs: the category,
    the mark that the example is done, the next example, and its categories."""

    def __init__(self, address: str, project: str, name: str, password: str, label: str) -> None:
        self.connection = Connection(address)
        self.at, self.name, self.password = f"/v1/projects/{project}", name, password
        self.label, self.category = label, 0
        self.example = 0
        self.place = random.Random(name)

    def begin(self) -> str | None:
        self.connection.post_json("/v1/auth/login/", {"username": self.name, "password": self.password})
        self.connection.headers["X-CSRFToken"] = self.connection.cookies["csrftoken"]
        listed = json.loads(self.connection.get(f"{self.at}/category-types"))
        self.category = next(category["id"] for category in listed if category["text"] == self.label)
        return self._next()

    def answer(self) -> str | None:
        self.connection.post_json(f"{self.at}/examples/{self.example}/categories", {"label": self.category})
        self.connection.post_json(f"{self.at}/examples/{self.example}/states", {})
        return self._next()

    def _next(self) -> str | None:
        """Take a random example, because doccano gives everyone the same next one."""
        page: dict[str, Any] = json.loads(
            self.connection.get(f"{self.at}/examples?confirmed=false&limit=1&offset={self.place.randrange(1_000)}")
        )
        if not page["results"]:
            page = json.loads(self.connection.get(f"{self.at}/examples?confirmed=false&limit=1&offset=0"))
        if not page["results"]:
            return None
        self.example = page["results"][0]["id"]
        self.connection.get(f"{self.at}/examples/{self.example}/categories")
        return str(page["results"][0]["text"])


class AtLabelStudio:
    """An annotator of a Label Studio project of choices, in its label stream: the next task, and the answer."""

    def __init__(self, address: str, project: str, name: str, password: str, label: str) -> None:
        self.connection = Connection(address)
        self.project, self.name, self.password, self.label = project, name, password, label
        self.task = 0

    def begin(self) -> str | None:
        form = {"csrfmiddlewaretoken": _token(self.connection.get("/user/login/"))}
        self.connection.post("/user/login/?next=/version/", form | {"email": self.name, "password": self.password})
        self.connection.headers["X-CSRFToken"] = self.connection.cookies["csrftoken"]
        return self._next()

    def answer(self) -> str | None:
        chosen = {"from_name": "language", "to_name": "text", "type": "choices", "value": {"choices": [self.label]}}
        body = {"lead_time": 2, "result": [chosen]}
        self.connection.post_json(f"/api/tasks/{self.task}/annotations/?project={self.project}", body)
        return self._next()

    def _next(self) -> str | None:
        try:
            task = json.loads(self.connection.get(f"/api/projects/{self.project}/next"))
        except Refused as error:
            if error.status == 404:
                return None
            raise
        self.task = task["id"]
        return str(task["data"]["text"])


def has_already(page: str) -> dict[str, str]:
    """Return the headers with which queue.js names parts of the page that need not be sent again."""
    shown = re.search(r'data-shown="(\w+)"', page)
    return ({"Assay-Shown": shown[1]} if shown else {}) | ({"Assay-Flag": "1"} if 'id="flag"' in page else {})


def _token(page: str) -> str:
    field = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    if field is None:
        raise ValueError("The page has no form. Check the address.")
    return field[1]


# Tool -> maker of a person from address, task or project, name, password or token, and the label to answer. If the
# label is empty, the answer is the text before the colon.
TOOLS: dict[str, Callable[[str, str, str, str, str], Person]] = {
    "api": lambda address, task, name, token, label: ByApi(address, task, token, label),
    "page": ByPage,
    "doccano": AtDoccano,
    "label-studio": AtLabelStudio,
}
