"""A full or read-only disk, or a database file that is missing for a moment: a clear message, and no lost answers."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from django.conf import settings as django_settings
from django.db import OperationalError, connection, connections
from django.test import Client
from django.urls import reverse

from annotate import exit_status
from annotate.actions import job_worker
from annotate.models import Judgment
from corpora.system import is_storage_fault
from deploy.sqlite import base
from tests.annotate.conftest import DISPUTED
from tests.running import DATA, DATABASE, ROOT, assay, environment

pytestmark = [pytest.mark.sqlite_only, pytest.mark.django_db(transaction=True)]

SENTENCE = "The server cannot save anything at the moment."
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


def outcome(answer):
    return answer.status_code, SENTENCE in answer.text


def test_pages_and_programs_are_told_that_nothing_can_be_saved(ann, faulty):
    client, other = browser(ann.user), browser()
    kind = faulty()
    # On a full disk, answers that still fit into the database's pages are saved.
    allowed = {(507, True)} if kind == "read-only" else {(507, True), (200, False), (302, False)}
    for path in ("/", "/history/", "/tasks/task/"):
        answer = client.get(path)
        assert outcome(answer) in {(507, True), (200, False)}, path
        assert "is too large" not in answer.text
    assert outcome(other.post("/login/", {"username": "ann", "password": PASSWORD})) in allowed
    assert outcome(client.post("/tasks/task/start/", {"read": 1})) in allowed
    assert Judgment.objects.count() == 0
    answer = client.post(reverse("api-next", args=["task"]), content_type="application/json")
    if kind == "read-only":
        assert (answer.status_code, answer.json()["code"]) == (507, "storage")
    assert answer.status_code in (200, 507)


def test_other_errors_are_none_of_the_disk():
    assert not is_storage_fault(OperationalError("no such table"))
    assert not is_storage_fault(ValueError("x"))
    assert is_storage_fault(OSError(28, "No space left on device"))
    with closing(sqlite3.connect(":memory:")) as database, pytest.raises(sqlite3.Error) as error:
        database.execute("SELECT nothing")
    assert not is_storage_fault(error.value)


@pytest.fixture
def served(monkeypatch):
    """Connections like those of a server."""
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
        assert outcome(client.get("/")) == (507, True)
        assert not os.path.exists(path)
    finally:
        for name in there:
            if os.path.exists(away[name]):
                os.rename(away[name], name)
    assert client.get("/").status_code == 200


def test_working_off_jobs_ends_where_the_database_stays_away(ann, served, tmp_path, monkeypatch, capsys):
    path = str(django_settings.DATABASES["default"]["NAME"])
    monkeypatch.setattr(job_worker, "RETRY_SECONDS", 0.01)
    job_worker.run_all()
    connections["default"].close()
    os.rename(path, tmp_path / "away")
    try:
        with pytest.raises(OperationalError):
            job_worker.run_all()
    finally:
        connections["default"].close()
        os.rename(tmp_path / "away", path)
    output = capsys.readouterr().err
    assert output.count("The database is unavailable") == 1
    assert "Waiting up to 0.04 s." in output
    job_worker.run_all()


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


def test_a_connection_whose_journal_was_deleted_is_not_used_again(tmp_path):
    """This uses a separate database, because other connections to the tests' database would keep failing."""
    path = tmp_path / "own.sqlite3"
    other, tested = connection.copy(), connection.copy()
    other.settings_dict = tested.settings_dict = {**connection.settings_dict, "NAME": str(path)}
    try:
        with other.cursor() as cursor:
            cursor.execute("CREATE TABLE kept (answer)")
        tested.ensure_connection()
        assert tested.is_usable()
        os.unlink(f"{path}-wal")
        assert not tested.is_usable()
    finally:
        tested.close()
        other.close()


def test_of_an_input_output_error_it_is_said_that_the_server_is_to_be_restarted(capsys):
    def fail():
        raise OperationalError("disk I/O error")

    assert exit_status.run(fail) == exit_status.REFUSED
    assert "disk I/O error. " in (message := capsys.readouterr().err)
    assert "Restart the server (`assay serve`)" in message


def held(data):
    return {path.relative_to(data): path.read_bytes() for path in data.rglob("*") if path.is_file()}


NOTEBOOK = "import assay\ntry:\n    assay.tasks()\nexcept assay.AssayError as error:\n    print(error)"


@pytest.mark.slow
def test_without_its_database_file_an_installation_refuses_every_command_and_loses_no_answer(installed, tmp_path):
    data = installed / DATA
    path, away = data / DATABASE, tmp_path / "away.sqlite3"
    assert assay(installed, "add_manager", "ann").returncode == 0  # which also creates the keys
    # A running server keeps its writes in the -wal file.
    with closing(sqlite3.connect(path)) as server:
        server.execute("PRAGMA journal_mode=WAL")
        server.execute("PRAGMA wal_autocheckpoint=0")
        server.execute("UPDATE auth_user SET first_name = 'kept'")
        server.commit()
        path.rename(away)
        before = held(data)
        sentence = f"The database file {path} is missing, but {path}-wal exists. Nothing was changed"
        for words in (
            ("tasks",),
            ("status",),
            ("add_manager", "bob"),
            ("serve", "--port", "8979"),
            ("work",),
            ("django", "migrate"),
            ("django", "shell", "-c", "from annotate.models import Task; Task.objects.count()"),
        ):
            done = assay(installed, *words)
            assert (done.returncode, done.stderr.count("\n"), held(data)) == (1, 1, before), (words, done.stderr)
            assert done.stderr.startswith(sentence), words
        call = [sys.executable, "-c", NOTEBOOK]
        done = subprocess.run(call, cwd=ROOT, env=environment(data), capture_output=True, text=True)
        assert done.stdout.startswith(sentence), done
        assert held(data) == before
        away.rename(path)
        assert assay(installed, "tasks").returncode == 0
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT first_name FROM auth_user").fetchall() == [("kept",)]


OTHER_SIGNS = [f"{DATABASE}-shm", f"{DATABASE}.writers"]


@pytest.mark.parametrize(
    "sign", ["corpora/posts/manifest.json", *(pytest.param(sign, marks=pytest.mark.slow) for sign in OTHER_SIGNS)]
)
def test_no_database_is_made_where_anything_else_of_an_installation_is(tmp_path, sign):
    there = tmp_path / DATA / sign
    there.parent.mkdir(parents=True)
    there.touch()
    done = assay(tmp_path, "tasks", ASSAY_SECRET_KEY="x" * 50, ASSAY_AUTHOR_KEY="y" * 50)
    assert (done.returncode, list(held(tmp_path / DATA).values())) == (1, [b""])
    named = there if there.name.startswith(DATABASE) else tmp_path / DATA / "corpora"
    assert f"{DATABASE} is missing, but {named} exists" in done.stderr


# --- the tables of a new installation, made by a process that is killed

# Kills itself before migration number {time}.
MAKER = """
import os, signal, sys
from django.db.migrations.executor import MigrationExecutor

apply, times = MigrationExecutor.apply_migration, []

def apply_or_die(self, *args, **options):
    times.append(1)
    if len(times) == {time}:
        os.kill(os.getpid(), signal.SIGKILL)
    return apply(self, *args, **options)

MigrationExecutor.apply_migration = apply_or_die
sys.argv = ["assay", "status"]
from annotate.actions.registry import main
main()
"""


def killed(folder, time, **env):
    code = MAKER.format(time=time)
    variables = environment(folder / DATA) | env
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=variables, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.slow
def test_tables_that_a_killed_command_has_half_made_are_finished_by_the_next(tmp_path):
    killed(tmp_path, 9)
    status = assay(tmp_path, "status")
    assert status.returncode == 0, status.stderr
    assert "Add annotators: " in status.stdout


@pytest.mark.slow
def test_of_an_empty_database_beside_corpora_it_is_not_said_that_nothing_was_there(tmp_path):
    corpus = tmp_path / DATA / "corpora" / "posts"
    corpus.mkdir(parents=True)
    (corpus / "manifest.json").touch()
    (tmp_path / DATA / "assay.sqlite3").touch()
    message = assay(tmp_path, "tasks").stderr
    assert message == f"Created a new, empty database. The files in {tmp_path / DATA} are unchanged.\n"


@pytest.mark.slow
def test_a_first_command_whose_keys_come_from_the_environment_makes_the_data_folder(tmp_path):
    killed(tmp_path, 1, ASSAY_SECRET_KEY="x" * 50, ASSAY_AUTHOR_KEY="y" * 50)
    assert (tmp_path / DATA / "assay.sqlite3").exists()
