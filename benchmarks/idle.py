"""The start and the memory of the server: seconds until the first response, and memory before and after work.

No data are needed. For comparison, the same gunicorn with a page of one line is measured in turns. Memory is each
process's proportional share (PSS), in which pages shared by several processes count once.
"""

import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from statistics import median

from benchmarks.place import ROOT, free_port, new_place
from benchmarks.tables import show

LINE = """
def application(environ, start_response):
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
"""
WORKERS, ROUNDS, REQUESTS = 2, 3, 500


def add_options(parser) -> None:
    pass


def run(folder: Path, options) -> None:
    """FOLDER is not read."""
    with new_place() as place:
        place.manage("django", "migrate", "-v0")
        (place.folder / "line.py").write_text(LINE)
        ours = ("--config=python:deploy.server", "--threads=4")
        plain = (f"--pythonpath={place.folder}", "line", "--threads=4", "--no-control-socket", "--log-level=warning")
        took = {"Assay": [], "a page of one line": []}
        for _ in range(ROUNDS):
            for name, command in zip(took, (ours, plain), strict=True):
                took[name].append(_served(command, place.env))
        show(
            f"{WORKERS} processes, the median of {ROUNDS} starts on {place.database}",
            ["", "answers after s", "MB idle", f"MB after {REQUESTS} pages"],
            [[name, *(median(figures) for figures in zip(*rounds, strict=True))] for name, rounds in took.items()],
        )


def _served(options: tuple[str, ...], env: dict[str, str]) -> tuple[float, float, float]:
    """Seconds until the first answer; megabytes then, and after more of them."""
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", f"--bind=127.0.0.1:{port}", f"--workers={WORKERS}", *options]
    began = time.monotonic()
    server = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL)
    try:
        while not _asked(port):
            time.sleep(0.005)
        ready = time.monotonic() - began
        # The second process may still be starting.
        while len(_processes(server.pid)) <= WORKERS:
            time.sleep(0.1)
        time.sleep(1)
        idle = sum(map(_share, _processes(server.pid)))
        for _ in range(REQUESTS):
            _asked(port)
        return ready, idle, sum(map(_share, _processes(server.pid)))
    finally:
        server.terminate()
        server.wait()


def _asked(port: int) -> bool:
    """Whether the page was sent that anybody may see."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/login/") as answer:
            return answer.status == 200
    except urllib.error.URLError:
        return False


def _processes(server: int) -> list[int]:
    """Return the server and its child processes."""
    children = Path(f"/proc/{server}/task/{server}/children").read_text()
    return [server, *map(int, children.split())]


def _share(process: int) -> float:
    """Return the memory (megabytes) as reported by Linux."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / 1e6
