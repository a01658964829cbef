"""The test runner behind `make test` and `make test-slow`: python -m tests [--slow] [arguments of pytest]

It runs the linters and the quick tier of the tests, or the slow tier with --slow, or the tests named by the arguments,
whatever their tier. It ends with the time of each part and the slowest ten tests.

Each part uses all cores. The linters run in parallel with the first part, because a core is often idle while a browser
waits.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

from tests.postgres import find_binaries

PYTHON = sys.executable
PYTEST = [PYTHON, "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal"]
CHECKS: dict[str, list[str]] = {
    "ruff check": [PYTHON, "-m", "ruff", "check", "."],
    "ruff format": [PYTHON, "-m", "ruff", "format", "--check", "."],
    "mypy": [PYTHON, "-m", "mypy"],
    "makemigrations": [PYTHON, "manage.py", "django", "makemigrations", "--check", "--dry-run"],
}
# tests/conftest.py describes which tests each tier contains.
PARTS: dict[str, list[str]] = {
    "tests on SQLite": [*PYTEST, "--part", "sqlite"],
    "tests on PostgreSQL": [PYTHON, "-m", "tests.postgres", "--quick", *PYTEST, "--part", "postgresql"],
}
ON_SQLITE_ALONE = {"tests on SQLite": PYTEST}
NOTHING_COLLECTED = 5
# If the caller wants no caches, hundreds of processes would compile the same modules and assertions again.
ENVIRONMENT = {"DATABASE_URL": "", "PYTHONDONTWRITEBYTECODE": ""}


def run(command: Sequence[str], **how: object) -> tuple[int, float]:
    """Run a command. Return its exit status and its duration (seconds)."""
    began = time.monotonic()
    done = subprocess.run(command, env={**os.environ, **ENVIRONMENT}, **how)  # type: ignore[call-overload]
    return done.returncode, time.monotonic() - began


def check(name: str) -> tuple[str, int, float, str]:
    with tempfile.TemporaryFile("w+") as output:
        status, seconds = run(CHECKS[name], stdout=output, stderr=subprocess.STDOUT)
        output.seek(0)
        return name, status, seconds, output.read()


def slowest(reports: Path, number: int = 10) -> list[tuple[float, str, str]]:
    """Return the slowest tests of all parts as (seconds, part, test), including their set-up."""
    cases = [
        (float(case.get("time", 0)), report.stem, f"{case.get('classname')}::{case.get('name')}")
        for report in reports.glob("*.xml")
        for case in ElementTree.parse(report).iter("testcase")
    ]
    return sorted(cases, reverse=True)[:number]


def main(arguments: list[str]) -> int:
    parts = PARTS
    if find_binaries() is None:
        print(
            "No PostgreSQL was found (Debian: postgresql), so all tests run on SQLite, but those that need its locks."
        )
        if os.environ.get("ASSAY_REQUIRE_ALL") == "1":
            return 1
        parts = ON_SQLITE_ALONE
    tier, checked = (["--tier", "slow"], {}) if arguments[:1] == ["--slow"] else (["--tier", "quick"], CHECKS)
    arguments = arguments[1:] if arguments[:1] == ["--slow"] else arguments
    failed, times, ran = [], [], False
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as beside:
        checks = beside.map(check, checked)
        for name, command in parts.items():
            print(f"== {name}", flush=True)
            status, seconds = run([*command, f"--junitxml={Path(folder, name)}.xml", *(arguments or tier)])
            times.append((name, seconds))
            ran = ran or status != NOTHING_COLLECTED
            failed += [name] if status not in (0, NOTHING_COLLECTED) else []
        for name, status, seconds, output in checks:
            times.append((name, seconds))
            if status:
                failed.append(name)
                print(f"== {name}\n{output}")
        print("\nThe slowest ten:")
        for seconds, part, test in slowest(Path(folder)):
            print(f"{seconds:7.1f} s  {part}: {test}")
    print("\nThe parts (the checks ran beside the first):")
    for name, seconds in times:
        print(f"{seconds:7.1f} s  {name}")
    if not ran:
        failed.append("no test was found")
    print(f"Failed: {', '.join(failed)}." if failed else "Everything passed.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
