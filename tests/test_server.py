"""The deployed server: its logs, the limits of its container, and what it loads before it answers."""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
import yaml
from django.urls import reverse

from benchmarks.place import free_port, wait_for_server
from deploy import masked
from tests.running import DATA, ROOT, begin, environment, install
from tests.together import until

pytestmark = pytest.mark.slow


TOKEN = "s3cr3t-Token_of-somebody"
INVITE, RESET = "/invite/...", "/forgotten/..."
# Each of these takes tens of megabytes or tenths of a second, and is needed by commands or few pages only.
LATER = ["_duckdb", "scipy.optimize", "scipy.sparse", "scipy.special", "scipy.stats", "langid", "pycld2", "fasttext"]
LATER += ["pyarrow.compute", "pyarrow.parquet"]
LOADED = """
import json, sys
import deploy.wsgi
from django.urls import get_resolver

get_resolver().url_patterns
print(json.dumps([*sys.modules]))
"""


def command():
    """Return the container's command, for this Python and on this machine alone."""
    written = re.search(r"^CMD (\[.*?\])", (ROOT / "deploy/Containerfile").read_text(), re.MULTILINE | re.DOTALL)[1]
    _, *words = json.loads(written.replace("\\\n", ""))
    port = free_port()
    return port, [sys.executable, *words, f"--bind=127.0.0.1:{port}", "--workers=1"]


@contextmanager
def serving(folder, migrated, **env):
    """Run the container's command, write its output to `log`, and yield a function that requests an address."""
    env = environment(folder / DATA) | env
    install(folder / DATA, migrated)
    port, words = command()
    with (
        open(folder / "log", "wb") as log,
        subprocess.Popen(words, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as server,
    ):
        try:
            wait_for_server(server, port)
            ask = partial(_ask, port)
            ask.port = port
            yield ask
        finally:
            server.terminate()


def _ask(port, path, **headers):
    return get(f"http://localhost:{port}{path}", headers)


def get(address, headers):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(address, headers=headers)) as response:
            return response.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_no_log_tells_the_token_of_an_invite_or_of_a_forgotten_password(tmp_path, migrated):
    """Each address is requested, which logs the request and the missing page, and sent as a Referer."""
    invite, reset = reverse("invite", args=[TOKEN]), reverse("reset", args=["MQ", TOKEN])
    addresses = [invite, reset, f"{invite}?next=/", invite.replace("i", "%69"), reset.replace("f", "%66")]
    with serving(tmp_path, migrated) as ask:
        assert [ask(address) for address in addresses] == [404] * len(addresses)
        assert {ask("/login/", Referer=f"http://localhost{address}") for address in addresses} == {200}
    log = (tmp_path / "log").read_text()
    assert TOKEN not in log
    assert [log.count(f'"GET {address} HTTP/1.1" 404') for address in (INVITE, RESET)] == [3, 2]
    assert [log.count(f'"http://localhost{address}"') for address in (INVITE, RESET)] == [3, 2]
    assert [log.count(f"Not Found: {address}") for address in (INVITE, RESET)] == [3, 2]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ('"GET /invite/abc/ HTTP/1.1" 200', '"GET /invite/... HTTP/1.1" 200'),
        ('"GET /forgotten/MQ/abc/ HTTP/1.1" 302', '"GET /forgotten/... HTTP/1.1" 302'),
        ('"POST /welcome/abc/ HTTP/1.1" 302', '"POST /welcome/... HTTP/1.1" 302'),
        ('"GET /shared/abc/ HTTP/1.1" 200', '"GET /shared/... HTTP/1.1" 200'),
        ('"GET /%69nvite%2fabc HTTP/1.1"', '"GET /invite/... HTTP/1.1"'),
        ('"GET /%0a/invite/abc HTTP/1.1"', '"GET /%0A/invite/... HTTP/1.1"'),
        ('"GET /forgotten/ HTTP/1.1"', '"GET /forgotten/ HTTP/1.1"'),
        (
            '"GET /tasks/a%20b/ HTTP/1.1" "Mozilla/5.0 (%s)"',
            '"GET /tasks/a%20b/ HTTP/1.1" "Mozilla/5.0 (%s)"',
        ),
    ],
)
def test_an_address_is_cut_off_where_a_secret_follows_and_all_else_stays(line, shown):
    assert masked(line) == shown


# --- what is killed


def processes(folder, words):
    """Return the ids of processes that use the data folder and whose command lines contain these words."""
    pids = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            ours = f"ASSAY_DATA_DIR={folder / DATA}".encode() in (process / "environ").read_bytes().split(b"\0")
            if ours and words.encode() in (process / "cmdline").read_bytes():
                pids.append(int(process.name))
    return pids


def answers(port):
    with suppress(OSError):
        return get(f"http://localhost:{port}/login/", {}) == 200
    return False


def test_a_killed_watcher_is_started_again_and_a_killed_server_at_once(tmp_path, migrated):
    install(tmp_path / DATA, migrated)
    port = free_port()
    began = [begin(tmp_path, "serve", "--port", port, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)]
    try:
        until(lambda: answers(port) and processes(tmp_path, "annotate.job_watcher"))
        [watcher] = processes(tmp_path, "annotate.job_watcher")
        os.kill(watcher, signal.SIGKILL)
        until(lambda: set(processes(tmp_path, "annotate.job_watcher")) - {watcher})

        workers = set(processes(tmp_path, "manage.py")) - {began[0].pid}
        began[0].kill()
        began[0].wait()
        began.append(begin(tmp_path, "serve", "--port", port, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
        until(lambda: began[1].poll() is not None or (answers(port) and not workers & set(processes(tmp_path, ""))))
        assert began[1].poll() is None, began[1].stderr.read()
    finally:
        for process in began:
            process.terminate()
            process.wait()
            if process.stderr:
                process.stderr.close()
    until(lambda: not processes(tmp_path, ""))


# --- containers

BY_DIGEST = r"docker\.io/library/[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}"


def services():
    return yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())["services"]


def test_a_process_of_the_server_that_is_still_starting_ends_with_it(tmp_path, migrated):
    """The process waits for a lock that the test holds, before gunicorn lets it listen to signals."""
    install(tmp_path / DATA, migrated)
    (tmp_path / DATA / "jobs").mkdir(exist_ok=True)
    words = [*command()[1], "--log-level=info"]
    with open(tmp_path / DATA / "jobs" / "serving", "a") as lock, open(tmp_path / "log", "wb") as log:
        fcntl.flock(lock, fcntl.LOCK_EX)
        env = environment(tmp_path / DATA)
        with subprocess.Popen(words, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as server:
            try:
                until(lambda: _waiting_for_a_lock() & set(processes(tmp_path, "gunicorn")))
            finally:
                server.terminate()
            assert server.wait() == 0
    assert "Worker exiting" in (tmp_path / "log").read_text()  # it was not killed


def _waiting_for_a_lock():
    return {int(line.split()[5]) for line in Path("/proc/locks").read_text().splitlines() if "->" in line}


def test_every_container_has_no_capabilities_and_can_write_to_its_data_and_passing_files_alone():
    assert set(services()) == {"app", "worker", "migrate", "database"}
    for name, service in services().items():
        assert service["read_only"] is True, name
        assert (service["cap_drop"], "cap_add" in service) == (["ALL"], False), name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert "privileged" not in service, name
        folders = [volume.split(":")[1] for volume in service["volumes"]] + service["tmpfs"]
        assert set(folders) <= {"/data", "/tmp", "/var/lib/postgresql/data", "/var/run/postgresql"}, name


def test_the_container_asks_the_server_for_a_page_by_the_name_that_it_answers_to(tmp_path, migrated):
    [_, _, option, code] = services()["app"]["healthcheck"]["test"]
    with serving(tmp_path, migrated, ASSAY_HOSTS="assay.example.org", ASSAY_HTTPS="1") as ask:
        code, env = code.replace("8000", str(ask.port)), {**os.environ, "ASSAY_HOSTS": "assay.example.org"}
        assert subprocess.run([sys.executable, option, code], env=env).returncode == 0
    assert subprocess.run([sys.executable, option, code], env=env, stderr=subprocess.DEVNULL).returncode == 1


def test_jobs_are_done_in_a_container_of_their_own_that_nobody_can_reach():
    worker, app = services()["worker"], services()["app"]
    assert worker["command"] == ["python", "manage.py", "work"]
    assert (worker["ports"], worker["restart"]) == ([], "unless-stopped")
    assert (worker["volumes"], worker["environment"]) == (app["volumes"], app["environment"])


def test_every_image_is_named_by_its_digest_and_no_container_runs_as_root():
    lines = (ROOT / "deploy/Containerfile").read_text().splitlines()
    images = [line.split()[1] for line in lines if line.startswith("FROM ")]
    images += [service["image"] for service in services().values() if "image" in service]
    assert len(images) == 2
    assert all(re.fullmatch(BY_DIGEST, image) for image in images), images
    assert [line for line in lines if line.startswith("USER ")] == ["USER assay"]
    assert services()["database"]["user"] == "postgres"


# Records what a process opens for writing, creates or binds outside of some folders.
WATCH = """
import os, sys

def watch(event, args):
    path = None
    writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT
    if event == "open" and isinstance(args[0], (str, bytes)) and (args[2] or 0) & writes:
        path = args[0]
    elif event in ("os.mkdir", "os.rename", "os.remove", "os.link", "os.symlink"):
        path = args[0]
    elif event == "socket.bind" and isinstance(args[1], (str, bytes)):
        path = args[1]
    if path is not None:
        path = os.path.abspath(os.fsdecode(path))
        if not path.startswith({allowed!r}):
            log = os.open({log!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.write(log, f"{{event}} {{path}}\\n".encode())
            os.close(log)

sys.addaudithook(watch)
"""


def test_the_server_writes_nowhere_but_where_its_container_lets_it(tmp_path, migrated):
    """A page that exists and one that does not. The home folder is not writable, as in a container."""
    passing, log, hook = tmp_path / "tmp", tmp_path / "written", tmp_path / "hook"
    for folder in (passing, hook):
        folder.mkdir()
    allowed = (str(tmp_path / DATA), str(passing), str(log), "/dev/")
    (hook / "sitecustomize.py").write_text(WATCH.format(allowed=allowed, log=str(log)))
    env = {"TMPDIR": str(passing), "HOME": "/nonexistent", "PYTHONPATH": str(hook), "PYTHONDONTWRITEBYTECODE": "1"}
    with serving(tmp_path, migrated, **env) as ask:
        assert [ask("/login/"), ask("/nothing/")] == [200, 404]
    assert not log.exists(), log.read_text()


def test_the_watch_sees_what_is_written_elsewhere(tmp_path):
    log = tmp_path / "written"
    code = WATCH.format(allowed=(str(log),), log=str(log)) + f"open({str(tmp_path / 'x')!r}, 'w').close()"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert log.read_text() == f"open {tmp_path / 'x'}\n"


def test_the_server_starts_without_what_few_pages_need():
    program = [sys.executable, "-c", LOADED]
    loaded = json.loads(subprocess.run(program, stdout=subprocess.PIPE, check=True).stdout)
    assert "annotate.pages.annotators" in loaded
    assert [name for name in LATER if name in loaded] == []


def test_what_the_server_starts_without_is_named_as_it_is_loaded():
    program = [sys.executable, "-c", f"import {', '.join(LATER)}"]
    subprocess.run(program, check=True)
