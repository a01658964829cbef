"""Run a command with a temporary PostgreSQL server: `python -m tests.postgres [--quick] pytest`.

The server is in a temporary folder, listens only on a socket there, and is removed when the command ends.
All other settings are PostgreSQL's defaults, so it compiles statements, updates statistics and waits for the disk. With
--quick, it does not wait for the disk, which is good for tests but falsifies benchmarks.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from pwd import getpwnam
from urllib.parse import quote

CONFIG = """
listen_addresses = ''
unix_socket_directories = '{folder}'
max_connections = 200
"""
QUICK = """
fsync = off
synchronous_commit = off
full_page_writes = off
"""


def find_binaries() -> Path | None:
    """Return the folder of initdb and pg_ctl. On Debian, it is outside of PATH, and the newest version is used."""
    if program := shutil.which("initdb"):
        return Path(program).resolve().parent
    folders = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(folders, key=lambda path: int(re.sub(r"\D", "", path.parent.name) or 0), default=None)


def server_account() -> str | None:
    """Return the account for the server, because PostgreSQL does not run as root; None for the current account."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return getpwnam(name).pw_name
        except KeyError:
            continue
    raise SystemExit("PostgreSQL cannot run as root, and there is no account postgres or nobody to run it.")


@contextmanager
def server(binaries: Path, *, quick: bool = False):
    """Start a server and yield the URL of its database. quick: whether it does not wait for the disk."""
    account = server_account()
    # A socket's path has at most 107 bytes, and the host of a URL is read in lower case, so TMPDIR is not used.
    folder = Path(tempfile.mkdtemp(prefix="assay-pg-", dir="/tmp"))
    data, log = folder / "data", folder / "log"

    def run(program: str, *arguments: str) -> None:
        command = [binaries / program, "-D", data, *arguments]
        done = subprocess.run(
            command, user=account, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        if done.returncode:
            detail = log.read_text() if log.exists() else ""
            raise SystemExit(f"{program} failed: {done.stdout}{done.stderr}{detail}")

    try:
        if account:
            shutil.chown(folder, account)
        run(
            "initdb",
            "--auth=trust",
            "--username=postgres",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
        )
        with open(data / "postgresql.conf", "a") as file:
            file.write(CONFIG.format(folder=folder) + (QUICK if quick else ""))
        try:
            # pg_ctl starts the server in a new session, so Ctrl-C in the terminal does not reach it.
            run("pg_ctl", "start", "-w", "-l", str(log))
            yield f"postgresql://postgres@{quote(str(folder), safe='')}/postgres"
        finally:
            if (data / "postmaster.pid").exists():
                run("pg_ctl", "stop", "-w", "-m", "immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_to_the_end(command: list[str], url: str) -> int:
    child = subprocess.Popen(command, env={**os.environ, "DATABASE_URL": url})
    try:
        return child.wait()
    except BaseException:
        child.terminate()
        child.wait()
        raise


def main(command: list[str]) -> int:
    quick = command[:1] == ["--quick"]
    if not (command := command[quick:]):
        raise SystemExit("Usage: python -m tests.postgres [--quick] COMMAND...")
    binaries = find_binaries()
    if binaries is None:
        print("PostgreSQL tests skipped: no initdb was found; install the Debian package postgresql.")
        return int(os.environ.get("ASSAY_REQUIRE_ALL") == "1")
    for number in (signal.SIGTERM, signal.SIGHUP):
        # An exception, so that the server is stopped.
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    with server(binaries, quick=quick) as url:
        return run_to_the_end(command, url)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
