"""Many people who work at the same time over HTTP, through the pages and the API.

The server, the database and the people share this machine. Each round uses a new task in a new installation. Only
acknowledged answers count. The time of an answer includes the next unit. With --load-servers, several servers with data
folders of their own work behind a proxy (proxy.py). The column of busy cores shows what the limit is: all of them, if
they add up to this machine.
"""

import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

from benchmarks.place import BenchmarkFailed, Place, cpu_seconds_of, new_place, serving_by_default
from benchmarks.proxy import several_servers
from benchmarks.server_load.__main__ import HEAD, row
from benchmarks.server_load.people import TOOLS, Person
from benchmarks.server_load.work import Done, work
from benchmarks.tables import show
from tests.running import ROOT

WORKERS = 2
LOAD_WORK = Path(__file__).with_name("load_work.py")
FIELDS = ("query", "title", "description")
GOLD = 400  # gold answers of a task of records
PILOT = 100  # answers of a pilot
FOR_EVER = 1e9  # seconds
# The database's statistics when people begin.
MOMENTS = {
    "new": "nobody has answered, and it has no statistics",
    "analyzed": "nobody has answered, and it has statistics",
    "pilot": "100 answers, and then it has statistics",
    "earlier": "5,000 answers in another task, and then it has statistics",
}


def add_options(parser) -> None:
    parser.add_argument(
        "--load-people", type=int, default=32, help="people who work at the same time (default %(default)s)"
    )
    parser.add_argument(
        "--load-units",
        type=int,
        nargs="+",
        default=[10_000],
        help="waiting units, with one round for each number (default 10000)",
    )
    parser.add_argument("--load-seconds", type=float, default=30.0, help="of each round (default %(default)s)")
    parser.add_argument("--load-by", nargs="+", choices=["page", "api"], default=["page", "api"], help="how they work")
    parser.add_argument(
        "--load-of",
        nargs="+",
        choices=["posts", "records", "gold"],
        default=["posts"],
        help="gold: records, one in five of them a hidden gold answer (default posts)",
    )
    parser.add_argument(
        "--load-moments",
        nargs="+",
        choices=MOMENTS,
        default=["earlier"],
        help="; ".join(f"{name}: {what}" for name, what in MOMENTS.items()) + " (default earlier)",
    )
    parser.add_argument("--load-processes", type=int, help="of the server (default: what `assay serve` starts)")
    parser.add_argument(
        "--load-servers",
        type=int,
        nargs="+",
        default=[0],
        help="servers of one process behind a proxy, with one round for each number (default: no proxy)",
    )
    parser.add_argument("--load-beside", type=Path, metavar="CHECKOUT", help="another version, measured in turn")
    parser.add_argument("--load-runs", type=int, default=1, help="of each round (default %(default)s)")


def run(folder: Path, options) -> None:
    trees = [ROOT, *([options.load_beside.resolve()] if options.load_beside else [])]
    rounds = product(options.load_units, options.load_of, options.load_moments, options.load_by, options.load_servers)
    rows = []
    for (units, what, moment, way, servers), number in product(rounds, range(options.load_runs)):
        # Alternate, so that other work on the machine slows both.
        for tree in trees[:: -1 if number % 2 else 1]:
            how = {"what": what, "moment": moment, "tree": tree, "processes": options.load_processes}
            how["servers"] = servers
            done, lost, database = at_assay(units, options.load_people, way, options.load_seconds, **how)
            name = f"{units:,} {what}, {moment}, {way}, {database}" + (f", {tree.name}" if len(trees) > 1 else "")
            name += f", servers: {servers}" if servers else ""
            rows.append([*row(name, options.load_people, done, 1), lost, *_cpu(done), _busy(done)])
            print(f"{name}: {done.a_second:.1f} answers/s, ms of CPU: {_cpu(done)}", file=sys.stderr, flush=True)
    processes = options.load_processes or "as many as it starts by itself"
    title = (
        f"{options.load_people} people for {options.load_seconds:g} s, processes of the server: {processes}, all on "
    )
    show(f"{title}{os.cpu_count()} cores", [*HEAD, "lost", "server", "database", "cores"], rows)
    print(
        "too often: acknowledged answers to a unit that had one; lost: acknowledged and not stored; server, database: "
        "milliseconds of CPU for an answer; cores: busy with the server, database, people and proxy.\n"
    )


def at_assay(
    units: int,
    people: int,
    way: str,
    seconds: float,
    migrated: Path | None = None,
    *,
    sqlite: bool = False,
    what: str = "posts",
    moment: str = "earlier",
    tree: Path = ROOT,
    processes: int | None = WORKERS,
    servers: int = 0,
) -> tuple[Done, int, str]:
    """sqlite: use SQLite even if DATABASE_URL is set. tree: the checkout whose program is measured. processes: of the
    server (None: its default). servers: behind a proxy, with one process each (0: one server without a proxy)."""
    with new_place(sqlite=sqlite, migrated=migrated) as place:
        place.env |= {"DJANGO_SETTINGS_MODULE": "deploy.settings", "PYTHONPATH": str(tree)}
        place.root = tree
        place.manage("django", "migrate", "--verbosity=0")
        if what != "posts":
            _open_records(place, units, gold=what == "gold")
        prepared = "open" if moment == "earlier" else "new"
        invited = place.run(LOAD_WORK, prepared, str(units if what == "posts" else 0), str(people)).splitlines()
        label = "" if what == "posts" else "Good"
        with _serving(place, processes, servers) as (address, cpu_seconds):
            readers = [_reader(address, way, line, label) for line in invited]
            if moment == "pilot":
                work(readers, answers=PILOT, seconds=FOR_EVER)
            if moment in ("pilot", "analyzed"):
                place.run(LOAD_WORK, "analyze")
            if moment == "pilot":
                readers = [_reader(address, way, line, label) for line in invited]
            before = _stored(place)[0]
            done = work(readers, answers=units, seconds=seconds, cpu_seconds=cpu_seconds)
        stored, too_many = _stored(place)
        if too_many:
            raise BenchmarkFailed(f"{too_many} units have two answers")
        return done, done.answers - (stored - before), place.database


@contextmanager
def _serving(place: Place, processes: int | None, servers: int) -> Iterator[tuple[str, Callable[[], list[float]]]]:
    """Yield an address, and a function that returns the seconds of CPU of server, database, people and proxy."""

    def of_people() -> float:
        return sum(os.times()[:2])

    if not servers:
        with serving_by_default(place, processes) as address:
            yield address, lambda: [*place.cpu_seconds(), of_people(), 0.0]
        return
    with several_servers(place, servers) as (address, places, proxy):
        yield (
            address,
            lambda: [
                sum(cpu_seconds_of(installation.server) for installation in places),
                place.cpu_seconds()[1],
                of_people(),
                cpu_seconds_of(proxy),
            ],
        )


def _cpu(done: Done) -> list[float]:
    """Return the milliseconds of CPU per answer of the server and of the database."""
    return [round(1000 * seconds / max(done.answers, 1), 2) for seconds in done.cpu[:2]]


def _busy(done: Done) -> str:
    return " ".join(f"{seconds / max(done.seconds, 1e-9):.2f}" for seconds in done.cpu)


def _stored(place: Place) -> tuple[int, int]:
    stored, too_many = map(int, place.run(LOAD_WORK, "answers").split())
    return stored, too_many


def _open_records(place: Place, units: int, *, gold: bool) -> None:
    """Open a task of ads with the commands. gold: one unit in five is a hidden gold answer."""
    lots = random.Random(units)
    words = [f"word{number}" for number in range(2_000)]
    rows = [
        {"id": f"r{n}", "language": "en", **{name: " ".join(lots.choices(words, k=6)) for name in FIELDS}}
        for n in range(units + GOLD)
    ]
    answers = [
        {"id": row["id"], "label": lots.choice(["Good", "Bad"]), "purpose": "queue", "explanation": ""}
        for row in rows[:GOLD]
    ]
    for name, lines in (("ads.jsonl", rows), ("gold.jsonl", answers)):
        (place.folder / name).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    ads = ("--licence", "CC0-1.0", "--fields", " ".join(FIELDS), "--source", "made")
    place.manage("import_corpus", "ads", place.folder / "ads.jsonl", *ads)
    of_gold = ("--gold", place.folder / "gold.jsonl") if gold else ()
    place.manage(
        *("open_task", "load", "--corpus", "ads", "--design", "records", "--languages", "en", "--size", str(units)),
        *("--kind", "ad_relevance", "--redundancy", "1", "--gold-share", "0.2" if gold else "0", *of_gold),
        *("--test-items", "0", "--pause-below", "0", "--seed", "s3"),
    )


def _reader(address: str, way: str, line: str, label: str) -> Person:
    name, token, password = line.split(maxsplit=2)
    return TOOLS[way](address, "load", name, token if way == "api" else password, label)
