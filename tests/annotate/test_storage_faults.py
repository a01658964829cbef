"""A disk that is full or read-only, and a database file that is away for a moment: a sentence, and nothing is lost."""

import os
import sqlite3
from contextlib import closing

import pytest
from django.conf import settings as django_settings
from django.db import OperationalError, connection, connections
from django.test import Client
from django.urls import reverse

from annotate.models import Judgment
from corpora.storage_faults import is_storage_fault
from deploy.sqlite import base
from tests.annotate.conftest import DISPUTED

pytestmark = [pytest.mark.sqlite_only, pytest.mark.django_db(transaction=True)]

SENTENCE = "The server cannot save anything just now."
PASSWORD = "a long password"


@pytest.fixture(params=["full", "read-only"])
def faulty(request):
    """Called, it makes the database so, as SQLite itself finds it."""

    def make():
        with connection.cursor() as cursor:
            if request.param == "full":
                cursor.execute("VACUUM")
                cursor.execute("PRAGMA max_page_count = 1")
            else:
                cursor.execute("PRAGMA query_only = 1")
        return request.param

    yield make
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA max_page_count = 1000000")
        cursor.execute("PRAGMA query_only = 0")


@pytest.fixture
def ann(person, make_task):
    make_task([DISPUTED] * 3)
    made = person("ann", "de en")
    made.user.set_password(PASSWORD)
    made.user.save()
    return made


def browser(user=None):
    client = Client(raise_request_exception=False)
    if user:
        client.force_login(user)
    return client


def told(answer):
    return answer.status_code, SENTENCE in answer.text


def test_pages_say_that_nothing_can_be_saved_and_work_again_afterwards(ann, faulty):
    client, other = browser(ann.user), browser()
    kind = faulty()
    # On a full disk, what still fits into the pages of the database is saved.
    allowed = {(507, True)} if kind == "read-only" else {(507, True), (200, False), (302, False)}
    for path in ("/", "/history/", "/tasks/task/"):
        assert told(client.get(path)) in {(507, True), (200, False)}, path
    assert told(other.post("/login/", {"username": "ann", "password": PASSWORD})) in allowed
    assert told(client.post("/tasks/task/start/")) in allowed
    assert Judgment.objects.count() == 0


def test_a_program_is_told_by_a_code(ann, faulty):
    client = browser(ann.user)
    kind = faulty()
    answer = client.post(reverse("api-next", args=["task"]), content_type="application/json")
    if kind == "read-only":
        assert (answer.status_code, answer.json()["code"]) == (507, "storage")
    assert answer.status_code in (200, 507)


def test_the_session_of_a_full_disk_is_no_form_that_holds_too_much(ann, faulty):
    client = browser(ann.user)
    faulty()
    assert "holds more than the site takes" not in client.get("/history/").text


def test_other_errors_are_none_of_the_disk():
    assert not is_storage_fault(OperationalError("no such table"))
    assert not is_storage_fault(ValueError("x"))
    assert is_storage_fault(OSError(28, "No space left on device"))
    with closing(sqlite3.connect(":memory:")) as database, pytest.raises(sqlite3.Error) as error:
        database.execute("SELECT nothing")
    assert not is_storage_fault(error.value)


@pytest.fixture
def served(monkeypatch):
    """Connections as a server makes them."""
    monkeypatch.setattr(base, "makes_file", False)
    connections["default"].close()
    yield
    connections["default"].close()


def test_a_database_file_that_is_away_for_a_moment_is_not_made_anew_and_is_used_again(ann, served, tmp_path):
    path = str(django_settings.DATABASES["default"]["NAME"])
    client = browser(ann.user)
    assert client.get("/").status_code == 200
    there = [name for name in (path, f"{path}-wal", f"{path}-shm") if os.path.exists(name)]
    away = {name: str(tmp_path / os.path.basename(name)) for name in there}
    connections["default"].close()
    for name in there:
        if os.path.exists(name):
            os.rename(name, away[name])
    try:
        assert told(client.get("/")) == (507, True)
        assert not os.path.exists(path)
    finally:
        for name in there:
            if os.path.exists(away[name]):
                os.rename(away[name], name)
    assert client.get("/").status_code == 200


def test_a_connection_to_a_file_that_was_replaced_is_not_used_again(ann, served, tmp_path):
    path = str(django_settings.DATABASES["default"]["NAME"])
    connection.ensure_connection()
    assert connection.is_usable()
    os.rename(path, tmp_path / "moved")
    try:
        assert not connection.is_usable()
    finally:
        os.rename(tmp_path / "moved", path)
    assert connection.is_usable()
