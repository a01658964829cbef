"""Many people at work at once over HTTP, by page and by API; and at doccano, where it is installed.

Server, database and people share this machine. Each round is on a new task of a new installation. An answer is what is
acknowledged, its time that of the answer and the next unit together.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.place import BenchmarkFailed, free_port, new_place, serving, wait_for_server
from tests.benchmarks.tables import show
from tests.load import doccano_project
from tests.load.__main__ import HEAD, row
from tests.load.people import TOOLS, Person
from tests.load.work import Done, work

WORKERS = 2


def add_options(parser) -> None:
    parser.add_argument("--load-people", type=int, default=32, help="at work at once (default %(default)s)")
    parser.add_argument(
        "--load-units", type=int, nargs="+", default=[10_000], help="units that wait, a round for each (default 10000)"
    )
    parser.add_argument("--load-seconds", type=float, default=30.0, help="of each round (default %(default)s)")
    parser.add_argument("--load-by", nargs="+", choices=["page", "api"], default=["page", "api"], help="how they work")
    parser.add_argument("--doccano", type=Path, help="the program of doccano, to be measured beside it")


def run(folder: Path, options) -> None:
    rows = []
    for units in options.load_units:
        for way in options.load_by:
            done, lost, database = at_assay(units, options.load_people, way, options.load_seconds)
            rows.append([*row(f"{units:,} units, {way}, {database}", options.load_people, done, 1), lost])
    if options.doccano:
        done = at_doccano(options.doccano, options.load_units[0], options.load_people, options.load_seconds)
        rows.append([*row(f"{options.load_units[0]:,} units, doccano", options.load_people, done, 1), "–"])
    title = f"{options.load_people} people for {options.load_seconds:g} s, {WORKERS} processes of the server, all on "
    show(f"{title}{os.cpu_count()} cores", [*HEAD, "lost"], rows)
    print("too often: acknowledged answers to a unit that had one; lost: acknowledged and not stored.\n")


def at_assay(units: int, people: int, way: str, seconds: float, migrated: Path | None = None) -> tuple[Done, int, str]:
    with new_place(migrated=migrated) as place:
        place.manage("django", "migrate", "--verbosity=0")
        place.env |= {"DJANGO_SETTINGS_MODULE": "deploy.settings"}
        invited = place.run("-m", "tests.benchmarks.load_work", "open", str(units), str(people)).splitlines()
        with serving(place, workers=WORKERS, threads=4) as address:
            done = work([_reader(address, way, line) for line in invited], answers=units, seconds=seconds)
        stored, different = map(int, place.run("-m", "tests.benchmarks.load_work", "said").split())
        if stored != different:
            raise BenchmarkFailed(f"{stored - different} units have two answers")
        return done, done.answers - stored, place.database


def _reader(address: str, way: str, line: str) -> Person:
    name, token, password = line.split(maxsplit=2)
    return TOOLS[way](address, "load", name, token if way == "api" else password, "en")


def at_doccano(program: Path, units: int, people: int, seconds: float) -> Done:
    invited = [(f"reader{number}", f"a long password {number}") for number in range(people)]
    with tempfile.TemporaryDirectory(prefix="assay-doccano-") as home:
        env = {**os.environ, "DOCCANO_HOME": home, "DEBUG": "False"}
        env.pop("DATABASE_URL", None)
        env.pop("DJANGO_SETTINGS_MODULE", None)
        python = program.parent / "python"
        _call([program, "init"], env)
        where = _call([python, "-c", "import backend; print(backend.__path__[0])"], env).splitlines()[-1]
        env["DATABASE_URL"] = f"sqlite:///{home}/db.sqlite3"
        secrets = [word for each in invited for word in each]
        project = _call([python, doccano_project.__file__, where, str(units), *secrets], env).splitlines()[-1]
        with _doccano(program, env) as address:
            made = [TOOLS["doccano"](address, project, name, password, "en") for name, password in invited]
            return work(made, answers=units, seconds=seconds)


@contextmanager
def _doccano(program: Path, env: dict[str, str]) -> Iterator[str]:
    port = free_port()
    command = [program, "webserver", "--port", str(port), "--workers", str(WORKERS)]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(command, env=env, **quiet)
    try:
        wait_for_server(server, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def _call(command: list, env: dict[str, str]) -> str:
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise BenchmarkFailed(f"{' '.join(map(str, command))} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout
