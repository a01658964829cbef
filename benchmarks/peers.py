"""Assay beside Label Studio and doccano: answers a second of people who work at the same time, in turns on one machine.

Each tool is installed by pip in an environment of its own below --peers, where it stays, and gets as many server
processes as `assay serve` starts. Assay runs on SQLite and, if DATABASE_URL names a PostgreSQL server, on PostgreSQL,
too. The people, the servers and the databases share the machine.
"""

import os
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from benchmarks.load import at_assay
from benchmarks.place import BenchmarkFailed, free_port, wait_for_server
from benchmarks.server_load import doccano_project, label_studio_project
from benchmarks.server_load.__main__ import HEAD, row
from benchmarks.server_load.people import TOOLS
from benchmarks.server_load.work import Done, work
from benchmarks.tables import show
from tests.running import ROOT

DOCS = ROOT / "annotate/docs/how-to/server.md"
MARKED = re.compile(r"(<!-- measured: peers -->\n).*?(<!-- end of measured -->)", re.DOTALL)


class Peer(NamedTuple):
    """A tool. packages: installed by pip. project: the module that creates its project, run by the tool's own Python.
    variables: environment variables by data folder. serve: the command by folder of programs, port and processes."""

    packages: tuple[str, ...]
    project: str
    variables: Callable[[Path], dict[str, str]]
    serve: Callable[[Path, int, int], list[object]]


PEERS = {
    "doccano": Peer(
        ("doccano==1.8.4", "setuptools<81", "marshmallow<4", "numpy<2"),
        doccano_project.__file__,
        lambda home: {"DOCCANO_HOME": str(home), "DEBUG": "False", "DATABASE_URL": f"sqlite:///{home}/db.sqlite3"},
        lambda programs, port, processes: [programs / "doccano", "webserver", "--port", port, "--workers", processes],
    ),
    "label-studio": Peer(
        ("label-studio==1.23.2", "gunicorn"),
        label_studio_project.__file__,
        lambda home: {
            "LABEL_STUDIO_BASE_DATA_DIR": str(home),
            "DJANGO_DB": "sqlite",
            "DJANGO_SETTINGS_MODULE": "label_studio.core.settings.label_studio",
            "SENTRY_DSN": "",
            "FRONTEND_SENTRY_DSN": "",
            "COLLECT_ANALYTICS": "false",
            "LATEST_VERSION_CHECK": "false",
        },
        lambda programs, port, processes: [
            *(programs / "gunicorn", "label_studio.core.wsgi:application", f"--bind=127.0.0.1:{port}"),
            *(f"--workers={processes}", "--timeout=120", "--pythonpath", _package(programs, "label_studio")),
        ],
    ),
}


def add_options(parser) -> None:
    parser.add_argument(
        "--peers", type=Path, default=Path(".venv/peers"), help="the folder of their environments (default %(default)s)"
    )
    parser.add_argument("--peer-people", type=int, default=32, help="at the same time (default %(default)s)")
    parser.add_argument("--peer-units", type=int, default=10_000, help="that wait (default %(default)s)")
    parser.add_argument("--peer-seconds", type=float, default=30.0, help="of each round (default %(default)s)")
    parser.add_argument("--peer-runs", type=int, default=2, help="of each round (default %(default)s)")
    parser.add_argument("--peer-docs", action="store_true", help="write the table into the documentation")


def run(folder: Path, options) -> None:
    rounds = _rounds(options)
    by_tool: dict[str, list[tuple[Done, int | None]]] = {name: [] for name in rounds}
    for number in range(options.peer_runs):
        # Alternate the order, so that other work on the machine slows all.
        for name in list(rounds)[:: -1 if number % 2 else 1]:
            done, lost = rounds[name]()
            if not done.answers:
                raise BenchmarkFailed(f"{name} took no answer: {dict(done.refused) or dict(done.errors)}")
            by_tool[name].append((done, lost))
            print(f"{name}: {done.a_second:.1f} answers/s", file=sys.stderr, flush=True)
    title = f"{options.peer_people} people, {options.peer_units:,} waiting, {_processes()} processes of each server"
    rows = [
        [*row(f"{name}, run {number}", options.peer_people, done, 1), "–" if lost is None else lost]
        for name, runs in by_tool.items()
        for number, (done, lost) in enumerate(runs, 1)
    ]
    show(title, [*HEAD, "lost"], rows)
    lines = [f"{title}, {os.cpu_count()} cores:\n", *_table(by_tool)]
    print("\n".join(lines))
    if options.peer_docs:
        text = DOCS.read_text(encoding="utf-8")
        block = "\n".join(["", *lines, "", ""])
        DOCS.write_text(MARKED.sub(lambda match: match[1] + block + match[2], text), encoding="utf-8")


def _rounds(options) -> dict[str, Callable[[], tuple[Done, int | None]]]:
    size = (options.peer_units, options.peer_people, "page", options.peer_seconds)

    def assay(*, sqlite: bool) -> tuple[Done, int | None]:
        return at_assay(*size, sqlite=sqlite, processes=None)[:2]

    def peer(name: str) -> tuple[Done, int | None]:
        programs = _installed(name, options.peers.resolve())
        return at_peer(name, programs, options.peer_units, options.peer_people, options.peer_seconds), None

    rounds: dict[str, Callable[[], tuple[Done, int | None]]] = {"Assay, SQLite": lambda: assay(sqlite=True)}
    if os.environ.get("DATABASE_URL", "").startswith("postgres"):
        rounds["Assay, PostgreSQL"] = lambda: assay(sqlite=False)
    return rounds | {_version(name): lambda name=name: peer(name) for name in PEERS}


def _table(by_tool: dict[str, list[tuple[Done, int | None]]]) -> Iterator[str]:
    """Yield a Markdown table: each tool's mean over the runs, and its ratio to doccano's."""
    yield "| tool | answers a second | ratio to doccano | median ms | 95% within ms | given to several |"
    yield "|---|---:|---:|---:|---:|---:|"
    of_doccano = mean(done.a_second for done, _ in by_tool[_version("doccano")])
    for name, runs in by_tool.items():
        rate = mean(done.a_second for done, _ in runs)
        middle, late = (mean(getattr(done, figure) for done, _ in runs) for figure in ("median_ms", "p95_ms"))
        twice, answers = map(sum, zip(*((d.more_often_than(1), d.answers) for d, _ in runs), strict=True))
        cells = [f"{rate:.0f}", f"{rate / of_doccano:.1f}", f"{middle:,.0f}", f"{late:,.0f}"]
        cells.append(f"{twice:,} of {answers:,}")
        yield f"| {name} | {' | '.join(cells)} |"


def at_peer(name: str, programs: Path, units: int, people: int, seconds: float) -> Done:
    """Let the same people work in a new project of another tool. programs: the folder of its environment's programs."""
    peer = PEERS[name]
    invited = [(f"reader{number}@example.org", f"a long password {number}") for number in range(people)]
    with tempfile.TemporaryDirectory(prefix="assay-peer-") as home:
        env = {key: value for key, value in os.environ.items() if key != "DJANGO_SETTINGS_MODULE"}
        env |= peer.variables(Path(home)) | {"PATH": f"{programs}:{env['PATH']}"}
        secrets = [word for account in invited for word in account]
        project = _call([programs / "python", peer.project, units, *secrets], env).split()[-1]
        with _served(peer, programs, env) as address:
            made = [TOOLS[name](address, project, account, password, "en") for account, password in invited]
            return work(made, answers=units, seconds=seconds)


@contextmanager
def _served(peer: Peer, programs: Path, env: dict[str, str]) -> Iterator[str]:
    port = free_port()
    command = map(str, peer.serve(programs, port, _processes()))
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(list(command), env=env, **quiet)
    try:
        wait_for_server(server, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def _installed(name: str, folder: Path) -> Path:
    """Return the folder of programs of a tool's environment, which is created if it is missing."""
    programs = folder / name / "bin"
    complete = folder / name / "complete"
    if not complete.exists():
        print(f"Installing {name} in {folder / name} ...", file=sys.stderr, flush=True)
        venv.create(folder / name, with_pip=True, clear=True)
        _call([programs / "python", "-m", "pip", "install", "--quiet", *PEERS[name].packages], dict(os.environ))
        complete.touch()
    return programs


def _version(name: str) -> str:
    return PEERS[name].packages[0].replace("==", " ")


def _package(programs: Path, name: str) -> Path:
    return next(programs.parent.glob(f"lib/python3*/site-packages/{name}"))


def _processes() -> int:
    return os.cpu_count() or 1


def _call(command: Iterable[object], env: dict[str, str]) -> str:
    words = list(map(str, command))
    done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise BenchmarkFailed(f"{' '.join(words)[:500]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout
