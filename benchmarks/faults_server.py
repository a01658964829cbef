"""The server while people answer over HTTP: killed completely or in part, disconnected from its database, out of space.

Each client records its requests and the acknowledgements. Afterwards, each of them is looked up in the database.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psycopg

from benchmarks.faults_commands import CUT_OFF
from benchmarks.faults_disk import Disk
from benchmarks.place import BenchmarkFailed, Place, free_port
from tests.postgres import find_binaries, server_account
from tests.running import ROOT

TASK, REDUNDANCY, PEOPLE = "asked", 3, 6
HANGS = 900.0  # seconds
# A fault comes after up to this many more answers, and up to this many seconds later: during the next ones.
ANSWERS, MOMENT = 12, 0.2
# Lease, person, label; a skip has no label.
Answer = tuple[int, str, str]


@dataclass
class Notes:
    """The answers that the clients sent, and those that the server acknowledged."""

    sent: set[Answer] = field(default_factory=set)
    acknowledged: list[Answer] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    strange: list[str] = field(default_factory=list)
    over: bool = False
    changed: threading.Condition = field(default_factory=threading.Condition)

    def note(self, answer: Answer) -> None:
        with self.changed:
            self.acknowledged.append(answer)
            self.changed.notify_all()

    @property
    def failed(self) -> int:
        """Responses that report a failure of the server, such as 507 for a full disk."""
        with self.changed:
            return sum(count for status, count in self.statuses.items() if status >= 500)

    def wait_for(self, more: int) -> None:
        """Wait until this many more answers have been acknowledged."""
        with self.changed:
            aim = len(self.acknowledged) + more
            if not self.changed.wait_for(lambda: len(self.acknowledged) >= aim, HANGS):
                raise BenchmarkFailed(f"No request succeeded for {HANGS:g} s. {self.strange[-1:]}")


def prepare(place: Place, records: int) -> dict[str, str]:
    """Create the task and its people. Return the tokens by name."""
    rows = (
        json.dumps({"id": f"r{n}", "language": "en", "question": f"Question {n}?", "passage": f"Passage {n}."})
        for n in range(records)
    )
    (place.folder / "records.jsonl").write_text("\n".join(rows) + "\n")
    names = [f"person{n}" for n in range(PEOPLE)]
    lines = ["username,name,languages", *(f"{name},Invented,en:5" for name in names)]
    (place.folder / "people.csv").write_text("\n".join(lines) + "\n")
    place.manage("django", "migrate", "--verbosity=0")
    fields = ("--fields", "question passage", "--licence", "CC0-1.0")
    place.manage("import_corpus", "records", place.folder / "records.jsonl", *fields)
    untested = ("--test-items", "0", "--gold-share", "0", "--redundancy", str(REDUNDANCY))
    place.manage("open_task", TASK, "--kind", "qa_match", "--corpus", "records", "--seed", "1", *untested)
    place.manage("add_annotators", place.folder / "people.csv")
    call = f"from annotate.actions.registry import call_command as call\nfor n in {names}: call('create_token', n)"
    tokens = place.manage("django", "shell", "--verbosity=0", "--command", call).split()
    return dict(zip(names, tokens, strict=True))


@dataclass
class Server:
    """A process group with `assay serve` on a fixed port."""

    place: Place
    workers: int
    port: int = field(default_factory=free_port)
    process: subprocess.Popen | None = None

    def start(self) -> None:
        words = ["serve", f"--port={self.port}", f"--workers={self.workers}", "--threads=4"]
        with open(self.place.folder / "server.log", "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, ROOT / "manage.py", *words],
                env=self.place.env,
                cwd=self.place.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        if self.process is None or self.process.poll() is not None:
            raise BenchmarkFailed(f"The server exited:\n{(self.place.folder / 'server.log').read_text()[-4000:]}")
        return self.process.pid

    def children(self) -> list[int]:
        return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]

    def kill(self) -> None:
        os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()

    def kill_a_worker(self, chance: random.Random) -> None:
        deadline = time.monotonic() + HANGS
        while not (workers := self.children()) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(chance.choice(workers), signal.SIGKILL)


@contextmanager
def at_work(place: Place, tokens: dict[str, str], workers: int) -> Iterator[tuple[Server, Notes]]:
    """Run the server and all clients until the block ends."""
    server, notes = Server(place, workers), Notes()
    server.start()
    people = [
        threading.Thread(target=_work, args=(server.port, name, token, notes), daemon=True)
        for name, token in tokens.items()
    ]
    for person in people:
        person.start()
    try:
        notes.wait_for(1)
        yield server, notes
    finally:
        notes.over = True
        for person in people:
            person.join(HANGS)
        if server.process and server.process.poll() is None:
            server.kill()


def _work(port: int, name: str, token: str, notes: Notes) -> None:
    """Take and answer units as one person. After a lost connection, send the same answer again, or start anew."""
    chance = random.Random(name)
    headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}
    connection = HTTPConnection("127.0.0.1", port, timeout=60)

    def post(path: str, **body: object) -> dict | None:
        try:
            connection.request("POST", f"/api/v1/{path}", json.dumps(body), headers)
            response = connection.getresponse()
            text = response.read().decode()
        except (HTTPException, OSError):
            connection.close()
            time.sleep(0.05)  # between attempts to reach the server
            return None
        with notes.changed:
            notes.statuses[response.status] += 1
        if response.status == 200:
            return json.loads(text)
        if response.status not in (429, 503, 507):
            notes.strange.append(f"{path}: {response.status} {text[:200]}")
        time.sleep(0.05)
        return None

    def chosen(taken: dict | None) -> Answer | None:
        if not taken or not taken["lease"]:
            return None
        return taken["lease"]["id"], name, "" if chance.random() < 0.05 else chance.choice("01")

    waiting: Answer | None = None
    while not notes.over:
        if waiting is None:
            waiting = chosen(post(f"tasks/{TASK}/next/"))
            continue
        lease, _, label = waiting
        notes.sent.add(waiting)
        act = {"label": label} if label else {}
        if closed := post(f"leases/{lease}/{'judge' if label else 'skip'}/", take_next=True, **act):
            notes.note(waiting)
            waiting = chosen(closed["next"])
        elif chance.random() < 0.5:
            waiting = None
    connection.close()


Fault = Callable[[Server, random.Random], None]


def whole(server: Server, chance: random.Random) -> None:
    server.kill()
    server.start()


def worker(server: Server, chance: random.Random) -> None:
    server.kill_a_worker(chance)


def cut_off(server: Server, chance: random.Random) -> None:
    with psycopg.connect(server.place.env["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(CUT_OFF)


def restarted(server: Server, chance: random.Random) -> None:
    """Stop PostgreSQL immediately and start it again."""
    url = server.place.env["DATABASE_URL"]
    with psycopg.connect(url) as connection:
        [data] = connection.execute("SHOW data_directory").fetchone() or [""]
    log = Path(unquote(urlsplit(url).hostname or "")) / "log"
    command = [find_binaries() / "pg_ctl", "restart", "-w", "-m", "immediate", "-D", data, "-l", log]
    subprocess.run(command, user=server_account(), cwd=data, check=True, stdin=subprocess.DEVNULL, capture_output=True)


def befallen(
    server: Server, notes: Notes, fault: Fault, times: int, chance: random.Random, answers: int = ANSWERS // 2
) -> None:
    """Cause faults while people answer, and wait after each until they can answer again.

    answers: the number between two faults, on average
    """
    for _ in range(times):
        notes.wait_for(chance.randint(1, 2 * answers))
        time.sleep(chance.uniform(0, MOMENT))
        fault(server, chance)
    notes.wait_for(max(2 * PEOPLE, times * answers - len(notes.acknowledged)))


def out_of_room(notes: Notes, disk: Disk, times: int, chance: random.Random) -> None:
    """Keep the disk full until no requests have succeeded for a while, and then free space."""
    for _ in range(times):
        notes.wait_for(chance.randint(1, ANSWERS))
        disk.leave(0)
        before = notes.failed
        deadline = time.monotonic() + HANGS
        while notes.failed < before + PEOPLE:
            if time.monotonic() > deadline:
                raise BenchmarkFailed("No client noticed the full disk.")
            time.sleep(0.02)
        disk.empty()
    notes.wait_for(2 * PEOPLE)


@dataclass(frozen=True)
class Losses:
    """acknowledged: answers and skips; lost: how many of them the database lacks; replaced: how many no longer count;
    unasked: stored answers that nobody sent; too_many: units with more answers than they need, because they were
    handed out twice."""

    acknowledged: int
    lost: int
    replaced: int
    unasked: int
    too_many: int


def count_losses(place: Place, notes: Notes) -> Losses:
    """Compare the database with the acknowledged answers, after the people have stopped."""
    rows = json.loads(place.manage("django", "shell", "--verbosity=0", "--command", STORED))
    stored, live = {tuple(answer) for _, *answer in rows}, {tuple(answer) for is_live, *answer in rows if is_live}
    too_many = int(place.manage("django", "shell", "--verbosity=0", "--command", TOO_MANY))
    acknowledged = set(notes.acknowledged)
    lost, replaced = len(acknowledged - stored), len((acknowledged & stored) - live)
    return Losses(len(notes.acknowledged), lost, replaced, len(stored - notes.sent), too_many)


STORED = """
import json
from annotate.models import Judgment
columns = ("voided_at", "lease_id", "annotator__user__username", "label")
print(json.dumps([(at is None, *answer) for at, *answer in Judgment.objects.values_list(*columns)]))
"""
TOO_MANY = f"""
from django.db.models import Count
from annotate.models import Judgment
answers = Judgment.objects.live().answers().values("unit").annotate(times=Count("pk"))
print(answers.filter(times__gt={REDUNDANCY}).count())
"""
