"""Clients for a running server: `python -m benchmarks.server_load ADDRESS TASK PEOPLE --label en`."""

import argparse
import sys
from pathlib import Path

from benchmarks.server_load.people import TOOLS
from benchmarks.server_load.work import Done, work
from benchmarks.tables import show

OF_ANSWERS = "end after this many; answers under way then also count, at most one per person (default %(default)s)"
HEAD = ["", "people", "answers", "answers/s", "median ms", "95% ms", "too often", "refused", "errors"]


def row(name: str, people: int, done: Done, most: int) -> list[object]:
    return [
        name,
        people,
        done.answers,
        round(done.a_second, 1),
        round(done.median_ms, 1),
        round(done.p95_ms, 1),
        done.more_often_than(most),
        done.refused.total(),
        done.errors.total(),
    ]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server_load", description=__doc__)
    parser.add_argument("address", help="of the server, such as http://127.0.0.1:8000")
    parser.add_argument("task", help="the name of the task, or the number of another tool's project")
    parser.add_argument("people", type=Path, help="a file with a name, a space, and a password or token on each line")
    parser.add_argument("--tool", choices=TOOLS, default="page", help="how they work (default %(default)s)")
    parser.add_argument("--label", required=True, help="what they answer")
    parser.add_argument("--answers", type=int, default=10_000, help=OF_ANSWERS)
    parser.add_argument("--seconds", type=float, default=60.0, help="or after this time (default %(default)s)")
    parser.add_argument("--most", type=int, default=1, help="answers per unit (default %(default)s)")
    options = parser.parse_args(arguments)
    try:
        listed = [line.split(maxsplit=1) for line in options.people.read_text(encoding="utf-8").splitlines() if line]
    except OSError as error:
        parser.error(f"{options.people} cannot be read: {error.strerror}.")
    if wrong := [number for number, words in enumerate(listed, 1) if len(words) != 2]:
        parser.error(f"Line {wrong[0]} of {options.people} is not a name and a password or token.")
    make = TOOLS[options.tool]
    people = [make(options.address, options.task, name, secret.strip(), options.label) for name, secret in listed]
    done = work(people, answers=options.answers, seconds=options.seconds)
    show(f"{options.address}, {options.task}", HEAD, [row(options.tool, len(people), done, options.most)])
    for what, number in (*done.refused.items(), *done.errors.items()):
        print(f"{what}: {number}")
    return 0 if done.answers else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
