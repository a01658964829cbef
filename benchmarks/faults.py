"""Hundreds of faults: kills, full disks and lost connections at random points, in the server and in commands.

Clients answer over HTTP and record the acknowledged answers, which are then looked up in the database. Each command
that writes is run again after its fault, and the result is compared, file by file and table by table, with that of an
undisturbed run. It runs on SQLite, or on PostgreSQL if DATABASE_URL names a PostgreSQL database (python -m
tests.postgres). No data are needed.
"""

import os
import random
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks import faults_commands as commands
from benchmarks import faults_server as server
from benchmarks.faults_disk import may_mount, small_disk
from benchmarks.place import BenchmarkFailed, Place, copy_of, new_place
from benchmarks.tables import show

WHAT = ("server", "commands")
KILLS_OF_WHOLE, KILLS_OF_WORKERS = 0.1, 0.4  # of all kills; the others are of commands
OTHERS = 0.1  # of all kills: the lost connections and full disks of each sort
RECORDS_PER_FAULT = 40  # so that there is always something left to answer


def add_options(parser) -> None:
    parser.add_argument("--kills", type=int, default=200, help="kills in all (default %(default)s)")
    parser.add_argument(
        "--fault-answers",
        type=int,
        default=50_000,
        help="acknowledged answers between the kills of the server, at least (default %(default)s)",
    )
    parser.add_argument("--befalls", nargs="*", choices=WHAT, default=WHAT, help="server, commands (default: both)")
    parser.add_argument(
        "--at-once", type=int, default=os.cpu_count(), help="commands at the same time (default: one per core)"
    )


@dataclass
class Sum:
    """The results of all kills, and the violations after all faults."""

    kills: int = 0
    acknowledged: int = 0
    lost: int = 0
    replaced: int = 0
    too_many: int = 0
    half_written: int = 0
    unrepeatable: int = 0
    bad: list[str] = field(default_factory=list)


def run(folder: Path, options) -> None:
    """FOLDER is not read."""
    total, others = Sum(), max(1, round(options.kills * OTHERS))
    print(f"Faults come at points drawn by the seed {options.seed}; kills: {options.kills}.\n")
    if not may_mount():
        print("Full disks are not tested, because mounting a small disk requires root.\n")
    whole, workers = round(options.kills * KILLS_OF_WHOLE), round(options.kills * KILLS_OF_WORKERS)
    if "server" in options.befalls:
        _server(whole, workers, others, options, total)
    if "commands" in options.befalls:
        _commands(options.kills - whole - workers, others, options.seed, options.at_once, total)
    print(
        f"In {total.kills:,} kills {total.lost:,} of {total.acknowledged:,} acknowledged answers were lost, "
        f"{total.replaced:,} replaced, {total.too_many:,} units handed out twice, "
        f"{total.half_written:,} files were half-written, and {total.unrepeatable:,} runs could not be repeated.\n"
    )
    if total.bad:
        raise BenchmarkFailed("\n".join(total.bad))


def _server(whole: int, workers: int, others: int, options, total: Sum) -> None:
    chance, rows = random.Random(f"{options.seed} server"), []
    answers = -(-options.fault_answers // max(1, whole + workers))
    with new_place() as base:
        records = (whole + workers + 4 * others) * RECORDS_PER_FAULT + options.fault_answers // server.REDUNDANCY
        tokens = server.prepare(base, records)
        on_postgres = base.database == "PostgreSQL"
        # name -> fault, how often, and whether it is a kill
        sorts: dict[str, tuple[server.Fault, int, bool]] = {
            "kill -9 of the whole server": (server.whole, whole, True),
            "kill -9 of a worker": (server.worker, workers, True),
        }
        if on_postgres:
            sorts["lost connections"] = (server.cut_off, others, False)
            sorts["PostgreSQL restarted"] = (server.restarted, -(-others // 4), False)

        def note(name: str, times: int, place: Place, notes: server.Notes) -> server.Losses:
            losses = server.count_losses(place, notes)
            counts = [losses.acknowledged, losses.lost, losses.replaced, losses.unasked, losses.too_many]
            rows.append([name, times, *counts, notes.failed])
            print(f"{name}, {times} times: {losses}", file=sys.stderr, flush=True)
            if any(counts[1:]):
                total.bad.append(f"{name}: {losses}")
            return losses

        # The manual has several workers on PostgreSQL; on SQLite a second one is there so that one is left.
        processes = 3 if on_postgres else 2
        for name, (fault, times, is_kill) in sorts.items():
            with copy_of(base) as place:
                with server.at_work(place, tokens, processes) as (running, notes):
                    server.befallen(running, notes, fault, times, chance, *([answers] if is_kill else []))
                losses = note(name, times, place, notes)
                if is_kill:
                    total.kills += times
                    total.acknowledged += losses.acknowledged
                    total.lost += losses.lost
                    total.replaced += losses.replaced
                    total.too_many += losses.too_many
        if may_mount():
            times = -(-others // 4)
            with small_disk() as disk, copy_of(base, on=disk.folder) as place:
                with server.at_work(place, tokens, processes) as (running, notes):
                    server.out_of_room(notes, disk, times, chance)
                note("full disk", times, place, notes)
        head = ["fault", "times", "acknowledged", "lost", "replaced", "nobody sent", "handed twice", "5xx"]
        show(f"The server, {processes} workers, {server.PEOPLE} people at work, {base.database}", head, rows)


def _commands(kills: int, others: int, seed: str, at_once: int, total: Sum) -> None:
    sorts: dict[str, tuple[commands.Fault, int]] = {"kill -9": (commands.killed, kills)}
    with new_place() as base, ThreadPoolExecutor(at_once) as pool:
        if base.database == "PostgreSQL":
            sorts["lost connections"] = (commands.cut_off, others)
        if may_mount():
            sorts["full disk"] = (commands.without_room, others)
        commands.prepare(base)
        expected = list(pool.map(partial(commands.undisturbed, base), commands.COMMANDS))
        for name, (fault, times) in sorts.items():
            count = -(-times // len(commands.COMMANDS))

            def befallen(words: str, of: commands.Undisturbed, name=name, fault=fault, count=count) -> commands.Tally:
                tally = commands.befallen(base, words, fault, count, seed, of)
                print(f"{name}: {words}: {_counts([tally])}", file=sys.stderr, flush=True)
                return tally

            # PostgreSQL makes a checkpoint of all databases when one is dropped: so one disk is full at a time.
            mapped = map if fault is commands.without_room else pool.map
            tallies = list(mapped(befallen, commands.COMMANDS, expected))
            rows = [[words, *_counts([tally])] for words, tally in zip(commands.COMMANDS, tallies, strict=True)]
            head = ["command", "times", "ended before", "done already", "half-written", "not repeatable", "ill told"]
            show(f"Commands, {name}, {base.database}", head, [*rows, ["all", *_counts(tallies)]])
            for tally in tallies:
                total.bad += [*tally.half_written, *tally.unrepeatable, *tally.unexplained]
            if fault is commands.killed:
                times, _, _, half_written, unrepeatable, _ = _counts(tallies)
                total.kills += times
                total.half_written += half_written
                total.unrepeatable += unrepeatable


def _counts(tallies: Sequence[commands.Tally]) -> list[int]:
    return [
        sum(tally.faults for tally in tallies),
        sum(tally.too_late for tally in tallies),
        sum(tally.done_already for tally in tallies),
        sum(len(tally.half_written) for tally in tallies),
        sum(len(tally.unrepeatable) for tally in tallies),
        sum(len(tally.unexplained) for tally in tallies),
    ]
